"""What the interposer says of a batch call's arguments, where a rule answers the call."""

from __future__ import annotations

import pytest

from pytest_cudabatch.errors import EvidenceError
from pytest_cudabatch.interposer import Call
from pytest_cudabatch.interposer.layout import EVIDENCE_ALLOCATIONS

from .programs import Programs
from .simulated import run_simulated

CALL = """
NOWHERE = 0x10000
import mmap
page = mmap.mmap(-1, mmap.PAGESIZE)
page_address = ctypes.addressof(ctypes.c_char.from_buffer(page))
host_address = ctypes.addressof(host)
evidence_file.declare_allocations(0, [(host_address, 64), (device.value, 64)])

def call(dsts=None, srcs=None, sizes=None, count=1, attributes=None, firsts=None, number=1, handle=stream):
    dsts = words(device.value) if dsts is None else dsts
    srcs = words(host_address) if srcs is None else srcs
    sizes = words(64) if sizes is None else sizes
    attributes = byref(MemcpyAttributes(src_access_order=1)) if attributes is None else attributes
    firsts = words(0) if firsts is None else firsts
    lists = (dsts, srcs, sizes, c_uint64(count), attributes, firsts, c_uint64(number))
    return driver.cuMemcpyBatchAsync_v2(*lists, handle)

evidence_file.inject("batch=801")
"""

HALVES = (
    "srcs=words(host_address, host_address + 32), dsts=words(device.value, device.value + 32), "
    "sizes=words(32, 32)"
)

RIGHT = {
    "one copy": "",
    "two copies": f"{HALVES}, count=2",
    "two attributes": f"{HALVES}, count=2, number=2, firsts=words(0, 1), "
    "attributes=(MemcpyAttributes * 2)(MemcpyAttributes(1), MemcpyAttributes(3, 2, 0, 1, 0, 1))",
    "the per-thread stream": "handle=c_void_p(2)",
    "what lies past the count": "dsts=words(device.value, NOWHERE), srcs=words(host_address, NOWHERE), "
    "sizes=words(64, 0)",
}
WRONG = {
    "a source nowhere": "srcs=words(NOWHERE)",
    "a destination nowhere": "dsts=words(0)",
    "a range past its allocation": "sizes=words(65)",
    "a range before its allocation": "srcs=words(host_address - 1)",
    "a size that wraps around": "srcs=words(host_address + 1), sizes=words(2**64 - 1)",
    "a size of 0": "sizes=words(0)",
    "the second copy alone": f"{HALVES.replace('32, 32', '32, 33')}, count=2",
    "no copies": "count=0",
    "destinations that cannot be read": "dsts=c_void_p(NOWHERE)",
    "sources that are no address": "srcs=c_void_p(0xDEAD << 48)",
    "sizes without an address": "sizes=c_void_p(0)",
    "more copies than there can be": "count=2**61",
    "an array that ends too soon": "sizes=c_void_p(page_address + mmap.PAGESIZE - 8), count=2**20",
    "attributes that cannot be read": "attributes=c_void_p(NOWHERE)",
    "indices that cannot be read": "firsts=c_void_p(NOWHERE)",
    "no attributes": "number=0",
    "more attributes than copies": "number=2",
    "an order of 0": "attributes=byref(MemcpyAttributes(0))",
    "an order of 4": "attributes=byref(MemcpyAttributes(4))",
    "flags of 2": "attributes=byref(MemcpyAttributes(1, 0, 0, 0, 0, 2))",
    "a location of type 7": "attributes=byref(MemcpyAttributes(1, 0, 0, 7))",
    "a first index of 1": f"{HALVES}, count=2, firsts=words(1)",
    "indices that do not rise": f"{HALVES}, count=2, number=2, firsts=words(0, 0), "
    "attributes=(MemcpyAttributes * 2)(MemcpyAttributes(1), MemcpyAttributes(1))",
    "an index past the count": f"{HALVES}, count=2, number=2, firsts=words(0, 2), "
    "attributes=(MemcpyAttributes * 2)(MemcpyAttributes(1), MemcpyAttributes(1))",
}


def judged(programs: Programs, *arguments: str) -> list[bool | None]:
    """Make each call in one process and return what the evidence says of it; all of them are answered."""
    script = CALL + "".join(f"assert call({text}) == 801\n" for text in arguments)
    calls = run_simulated(programs, script).evidence.calls
    return [call.arguments_right for call in calls if call.is_batch]


def test_right_arguments(programs: Programs) -> None:
    found = judged(programs, *RIGHT.values())
    assert dict(zip(RIGHT, found, strict=True)) == dict.fromkeys(RIGHT, True)


def test_wrong_arguments(programs: Programs) -> None:
    """None of them is followed: what cannot be read is found out without a fault."""
    found = judged(programs, *WRONG.values())
    assert dict(zip(WRONG, found, strict=True)) == dict.fromkeys(WRONG, False)


def test_a_destroyed_stream_is_wrong(programs: Programs) -> None:
    script = CALL + "runtime.cudaStreamDestroy(stream)\nassert call() == 801\n"
    (seen,) = batches(run_simulated(programs, script).evidence.calls)
    assert (seen.given, seen.arguments_right) == (8, False)


def batches(calls: tuple[Call, ...]) -> list[Call]:
    return [call for call in calls if call.is_batch]


@pytest.mark.parametrize(
    ("script", "rules"),
    [
        ("evidence_file.declare_allocations(0, [])\nassert call() == 801\n", "answered, nothing declared"),
        ("", "made"),
    ],
    ids=["nothing was declared", "no rule answers"],
)
def test_what_is_not_known(programs: Programs, script: str, rules: str) -> None:
    if script:
        source = CALL + script
    else:
        source = CALL.replace('evidence_file.inject("batch=801")', "") + "assert call() == 0\n"
    (seen,) = batches(run_simulated(programs, source).evidence.calls)
    assert seen.arguments_right is None, rules


def test_a_runtimes_own_call_is_judged_too(programs: Programs) -> None:
    """The nine-parameter call that a 12.x runtime makes of its driver."""
    seen = batches(run_simulated(programs, CALL + "assert batch() == 801\n", major=12).evidence.calls)
    assert [(call.function, call.arguments_right) for call in seen] == [
        ("cudaMemcpyBatchAsync", None),
        ("cuMemcpyBatchAsync", True),
    ]


def test_there_is_room_for_so_many_allocations(programs: Programs) -> None:
    file = programs.evidence_file
    file.declare_allocations(0, [(0x1000, 1)] * EVIDENCE_ALLOCATIONS)
    with pytest.raises(EvidenceError, match="room for 64 allocations, not 65"):
        file.declare_allocations(0, [(0x1000, 1)] * (EVIDENCE_ALLOCATIONS + 1))
