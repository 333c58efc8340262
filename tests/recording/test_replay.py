"""What a trace keeps of real processes, and that its replay is the same again."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pytest_cudabatch import native
from pytest_cudabatch.copies import MemoryKind, Trace
from pytest_cudabatch.copies.traces import UNFINISHED

DRIVER = native.library("simcuda/driver-13.0/libcuda.so.1")
RUNTIMES = {
    12: native.library("simcuda/runtime-12.8/libcudart.so.12"),
    13: native.library("simcuda/runtime-13.0/libcudart.so.13"),
}

PRELUDE = f"""
import ctypes, os, sys
from pathlib import Path
import numpy as np
from pytest_cudabatch.copies import BoundPlan, Direction, Mixture, Replay, Trace, make_plan
from pytest_cudabatch.cuda import Runtime
from pytest_cudabatch.implementations import load

def open_runtime(major=13):
    runtimes = {{12: {str(RUNTIMES[12])!r}, 13: {str(RUNTIMES[13])!r}}}
    return Runtime.open(Path(runtimes[major]), driver=Path({str(DRIVER)!r}))

def word(array):
    return ctypes.c_uint64(array.ctypes.data)

def copy(*counts, name="reference", major=13):
    runtime = open_runtime(major)
    stream, implementation = runtime.stream_create(), load(name).open()
    for count in counts:
        with BoundPlan(make_plan(Direction.H2D, Mixture.MIXED, count, 0), runtime) as plan:
            plan.fill()
            implementation.copy(plan, stream)
            runtime.stream_synchronize(stream)
"""

VARIED = """
runtime = open_runtime()
by_runtime = ctypes.CDLL(str(runtime.path)).cudaMemcpyBatchAsync
by_driver = ctypes.CDLL("libcuda.so.1").cuMemcpyBatchAsync
PIECE = 1 << 20
device = [runtime.malloc(PIECE).address for _ in range(3)]
pinned = [runtime.malloc_host(PIECE).address for _ in range(2)]
plain, registered = np.zeros(PIECE + 300_000, np.uint8), np.zeros(PIECE + 300_000, np.uint8)
pageable, at_odds = plain.ctypes.data + 150_001, registered.ctypes.data + 150_003
runtime.check("cudaHostRegister", at_odds, PIECE, 0)
host = [*pinned, pageable, at_odds]
streams = [runtime.stream_create() for _ in range(3)]
random = np.random.default_rng(5)

def batch(number):
    count = int(random.integers(1, 60))
    sizes = random.choice(np.array([1, 17, 576, 4096], np.uint64), count)
    if number % 100 == 7:
        sizes[-1] = 0  # refused, with code 1
    sources, destinations = (
        random.choice(side, count).astype(np.uint64)
        + random.integers(0, PIECE // 8192, count).astype(np.uint64) * np.uint64(8192)
        for side in (host, device)[:: random.choice([-1, 1])]
    )
    orders = [1, 3][: int(random.integers(1, 3)) if count > 1 else 1]
    attributes = np.zeros((len(orders), 6), np.int32)
    attributes[:, 0] = orders
    starts = np.arange(len(orders), dtype=np.uint64)
    stream = [*streams, 1, 2][number % 5]
    parameters = [word(destinations), word(sources), word(sizes), ctypes.c_uint64(count), word(attributes),
                  word(starts), ctypes.c_uint64(len(orders))]
    if number % 3:
        return by_runtime(*parameters, ctypes.c_uint64(stream))
    return by_driver(*parameters, ctypes.byref(ctypes.c_uint64()), ctypes.c_uint64(stream))

codes = [batch(number) for number in range(1000)]
runtime.device_synchronize()
assert set(codes) == {0, 1}
"""

REPLAYED = """
runtime = open_runtime()
with Replay(Trace.load(Path(sys.argv[1])), runtime) as replay:
    for batch in replay:
        code = replay.call(batch)
        assert batch.traced.code in (code, -1), (batch.traced, code)
"""


def record(directory: Path, trace: Path, script: str, *arguments: str) -> tuple[int, dict[str, Any]]:
    """Record a script with a trace; return its exit status and the recording's JSON."""
    output = directory / "recording.json"
    command = [sys.executable, "-m", "pytest_cudabatch", "record", "--json", "-o", str(output)]
    command += ["--trace", str(trace), "--", sys.executable, "-c", PRELUDE + script, *arguments]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False, timeout=120)
    assert done.stderr == ""
    return done.returncode, json.loads(output.read_text())


def evidence_of(process: dict[str, Any]) -> dict[str, Any]:
    """What a replay must have in common with what it replays."""
    kept = (
        "path",
        "abis",
        "calls",
        "descriptors",
        "largest_batch",
        "errors",
        "callers",
        "owners",
        "streams",
        "mismatches",
        "lost",
    )
    return {name: process[name] for name in kept}


def test_a_run_of_a_thousand_batches_replays_to_the_same_evidence(tmp_path: Path) -> None:
    first, second = tmp_path / "first.trace", tmp_path / "second.trace"
    status, recorded = record(tmp_path, first, VARIED)
    assert (status, recorded["trace"]["batches"], recorded["trace"]["skipped"]) == (0, 1000, 0)
    status, replayed = record(tmp_path, second, REPLAYED, str(first))
    assert status == 0
    [original], [again] = recorded["processes"], replayed["processes"]
    assert evidence_of(again) == evidence_of(original)
    assert original["calls"] == {"batch": 1000, "per_copy": 0}
    assert original["abis"] == ["v12080", "v13000"]
    trace = Trace.load(first)
    assert Trace.load(second) == trace
    assert sorted(trace.region_kinds) == [
        *[MemoryKind.DEVICE] * 3,
        *[MemoryKind.PINNED] * 2,
        MemoryKind.REGISTERED,
        MemoryKind.PAGEABLE,
    ]
    assert set(trace.batch_streams) == {0, 1, 2, -2, -3}
    assert set(trace.functions) == {"cudaMemcpyBatchAsync", "cuMemcpyBatchAsync"}
    assert set(trace.batch_attributes) == {1, 2}
    assert int((trace.batch_codes == 1).sum()) == 210  # on the legacy stream, or with an empty copy
    assert len(trace.sizes) == original["descriptors"]


def test_a_call_that_crashed_crashes_again(tmp_path: Path) -> None:
    crash = tmp_path / "crash.trace"
    status, recorded = record(tmp_path, crash, "copy(10, name='specimen:driver-version', major=12)")
    assert status == 128 + signal.SIGSEGV
    [batch] = Trace.load(crash)
    assert (batch.code, batch.given, batch.count) == (UNFINISHED, 8, 10)
    status, replayed = record(
        tmp_path, tmp_path / "again.trace", REPLAYED.replace("open_runtime()", "open_runtime(12)"), str(crash)
    )
    assert status == 128 + signal.SIGSEGV
    [once], [again] = recorded["processes"][0]["mismatches"], replayed["processes"][0]["mismatches"]
    assert [(call["given"], call["taken"], call["callee"]) for call in (once, again)] == [
        (8, 9, once["callee"])
    ] * 2
    assert Trace.load(tmp_path / "again.trace") == Trace.load(crash)


def test_processes_have_batches_regions_and_streams_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "two.trace"
    script = "if os.fork() == 0:\n    copy(3, 4)\n    os._exit(0)\nos.wait()\ncopy(5)\n"
    status, _ = record(tmp_path, path, script)
    trace = Trace.load(path)
    assert (status, len(trace.processes), list(trace.batch_processes)) == (0, 2, [0, 0, 1])
    assert [batch.count for batch in trace] == [3, 4, 5]
    assert list(trace.batch_streams) == [0, 0, 0]
    assert [sorted(map(int, {*batch.src_regions, *batch.dst_regions})) for batch in trace] == [
        [0, 1],
        [2, 3],
        [4, 5],
    ]
    second = trace.of_process(1)
    assert [batch.count for batch in second] == [5]
    assert np.array_equal(second.src_offsets, trace.batch(2).src_offsets)
    with pytest.raises(IndexError, match="has 2 processes"):
        trace.of_process(2)


def test_a_stream_that_takes_anothers_handle_is_another(tmp_path: Path) -> None:
    path = tmp_path / "streams.trace"
    script = """
runtime = open_runtime()
implementation = load("reference").open()
handles = []
with BoundPlan(make_plan(Direction.H2D, Mixture.UNIFORM, 2, 0), runtime) as plan:
    plan.fill()
    for _ in range(3):
        handles.append(runtime.stream_create())
        implementation.copy(plan, handles[-1])
        implementation.copy(plan, handles[-1])
        runtime.stream_synchronize(handles[-1])
        runtime.stream_destroy(handles[-1])
"""
    assert record(tmp_path, path, script)[0] == 0
    assert list(Trace.load(path).batch_streams) == [0, 0, 1, 1, 2, 2]


def test_arrays_that_are_not_there_leave_a_batch_out(tmp_path: Path) -> None:
    path = tmp_path / "wild.trace"
    script = """
copy(3)
runtime = open_runtime()
stream = runtime.stream_create()
function = ctypes.CDLL(str(runtime.path)).cudaMemcpyBatchAsync
function.argtypes = [ctypes.c_uint64] * 8
some = np.full(8, 1, np.uint64)
attributes, starts = np.array([1, 0, 0, 0, 0, 0], np.int32), np.zeros(1, np.uint64)
function(
    some.ctypes.data, 0x1000, some.ctypes.data, 2, attributes.ctypes.data, starts.ctypes.data, 1, stream
)
"""
    status, recorded = record(tmp_path, path, script)
    assert status == 128 + signal.SIGSEGV
    assert recorded["processes"][0]["unfinished"][0]["count"] == 2
    assert (recorded["trace"]["batches"], recorded["trace"]["skipped"]) == (1, 1)
    assert [batch.count for batch in Trace.load(path)] == [3]


REPLAYING_TEST = """
from pathlib import Path

def test_production(batch_copy, copy_plan, cuda_stream):
    for plan in copy_plan.trace(Path(__file__).with_name("production.trace")):
        batch_copy.check(plan, cuda_stream)
"""


def test_a_trace_is_a_cell_test_of_three_lines(pytester: pytest.Pytester) -> None:
    record(pytester.path, pytester.path / "production.trace", "copy(3, 70, 200)")
    pytester.makepyfile(REPLAYING_TEST)
    options = ("--cuda-matrix", "--cuda-platform=simulated", "--cuda-no-suite")
    one = "--cuda-select=runtime==12.9 on driver==13.0"
    result = pytester.runpytest_subprocess(*options, one)
    result.assert_outcomes(passed=1)
    wrong = "--cuda-implementation=specimen:swapped-pages"
    result = pytester.runpytest_subprocess(*options, one, wrong)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*wrong-bytes*"])
