"""Rules about copies and about single functions: whose calls are answered, and how others see it."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_cudabatch import native
from pytest_cudabatch.interposer import AppliedInjection, CopyPath, Owner

from .programs import Programs
from .simulated import run_simulated

FOUR_BATCHES = """
inject()
codes = [(batch(), runtime.cudaGetLastError()) for _ in range(4)]
say(codes=codes)
"""

OK, REFUSED = [0, 0], [801, 801]


@pytest.mark.parametrize("major", [12, 13])
@pytest.mark.parametrize(
    ("which", "codes", "fired"),
    [
        ("", [REFUSED] * 4, 4),
        ("@1", [REFUSED, OK, OK, OK], 1),
        ("@3", [OK, OK, REFUSED, OK], 1),
        ("@3+", [OK, OK, REFUSED, REFUSED], 2),
        ("@5+", [OK] * 4, 0),
    ],
)
def test_runtime_sees_and_keeps_what_its_driver_is_made_to_answer(
    programs: Programs, major: int, which: str, codes: list[list[int]], fired: int
) -> None:
    rule = f"batch{which}=801"
    ended = run_simulated(programs, FOUR_BATCHES, rule, major)
    assert ended.said == [{"codes": codes}]
    evidence = ended.evidence
    assert evidence.injections == (AppliedInjection(rule, 4, fired),)
    assert evidence.injected == fired
    driver_calls = [call for call in evidence.calls if call.is_batch and not call.under_test]
    assert [(call.returned, call.injected) for call in driver_calls] == [
        (code, code == 801) for code, _ in codes
    ]
    assert [(call.returned, call.injected) for call in evidence.batch_calls()] == [
        (code, False) for code, _ in codes
    ]
    assert {call.owner for call in driver_calls} == {Owner.DRIVER}


DIRECT = """
inject()
say(codes=[batch(driver.cuMemcpyBatchAsync_v2, 8) for _ in range(2)], copied=on_device())
say(codes=[batch(driver.cuMemcpyBatchAsync, 9) for _ in range(2)], copied=on_device())
"""


def test_driver_called_by_the_code_under_test_is_answered_too(programs: Programs) -> None:
    ended = run_simulated(programs, DIRECT, "batch@2+=36")
    assert ended.said == [{"codes": [0, 36], "copied": 2016}, {"codes": [36, 36], "copied": 2016}]
    assert [(call.given, call.returned, call.injected) for call in ended.evidence.batch_calls()] == [
        (8, 0, False),
        (8, 36, True),
        (9, 36, True),
        (9, 36, True),
    ]


NOTHING_COPIED = """
assert runtime.cudaMemset(device, 0, c_uint64(64)) == 0
inject()
say(code=batch(), copied=on_device())
"""


def test_real_function_is_not_called_even_where_the_code_says_success(programs: Programs) -> None:
    ended = run_simulated(programs, NOTHING_COPIED, "batch=0")
    assert ended.said == [{"code": 0, "copied": 0}]
    assert ended.evidence.injected == 1


SINGLES = """
inject()
codes = [(single(), runtime.cudaGetLastError()) for _ in range(3)]
say(codes=codes)
"""


@pytest.mark.parametrize(
    ("which", "codes"), [("", [700] * 3), ("@2", [0, 700, 0]), ("@2+", [0, 700, 700]), ("@4", [0, 0, 0])]
)
def test_single_copies_of_the_code_under_test(programs: Programs, which: str, codes: list[int]) -> None:
    ended = run_simulated(programs, SINGLES, f"per-copy{which}=700")
    assert ended.said == [
        {"codes": [[code, 0] for code in codes]}
    ]  # the runtime was not called: no last error
    own = [call for call in ended.evidence.calls if call.under_test]
    assert [(call.returned, call.injected) for call in own] == [(code, code == 700) for code in codes]
    # The driver's function, which the runtime calls, is not counted.
    assert ended.evidence.injections == (AppliedInjection(f"per-copy{which}=700", 3, codes.count(700)),)
    assert ended.evidence.per_copy_count == 3
    assert ended.evidence.path is CopyPath.FALLBACK


EXACT = """
inject()
handle, found = c_void_p(0x5555), c_void_p(0x5555)
say(
    batch=batch(),
    driver_batch=batch(driver.cuMemcpyBatchAsync_v2, 8),
    create=runtime.cudaStreamCreate(byref(handle)),
    destroy=runtime.cudaStreamDestroy(stream),
    look_up=driver.cuGetProcAddress_v2(b"cuInit", byref(found), 12000, c_uint64(0), None),
    found=found.value is not None,
)
"""

EXACT_TRUTH = {"batch": 0, "driver_batch": 0, "create": 0, "destroy": 0, "look_up": 0, "found": True}


@pytest.mark.parametrize(
    ("rule", "changed"),
    [
        ("cudaMemcpyBatchAsync=36", {"batch": 36}),
        ("cuMemcpyBatchAsync_v2=37", {"driver_batch": 37}),
        ("cudaStreamCreate=2", {"create": 2}),
        ("cudaStreamCreate=0", {}),
        ("cudaStreamDestroy=400", {"destroy": 400}),
        ("cuGetProcAddress_v2=null", {"found": False}),
        ("cuGetProcAddress_v2=999", {"look_up": 999, "found": False}),
        ("cudaMemcpyBatchAsync_ptsz=36", {}),
    ],
)
def test_function_by_its_own_name(programs: Programs, rule: str, changed: dict[str, Any]) -> None:
    ended = run_simulated(programs, EXACT, rule)
    assert ended.said == [{**EXACT_TRUTH, **changed}]
    seen = 0 if rule.startswith("cudaMemcpyBatchAsync_ptsz") else 1
    assert ended.evidence.injections == (AppliedInjection(rule, seen, seen),)


WHO_ASKS = """
claim()
evidence_file.inject("cuDriverGetVersion=35")
driver = ctypes.CDLL(os.environ["TEST_DRIVER"], mode=RTLD_GLOBAL)
asker = ctypes.CDLL(os.environ["TEST_ASKER"])
say(code=asker.ask_version(b"cuDriverGetVersion", byref(c_int())))
"""


@pytest.mark.parametrize(
    ("name", "soname", "under_test"),
    [
        ("libcudart.so.12", "libcudart.so.12", False),
        ("renamed.so", "libcudart.so.13", False),
        ("libcudart-1a2b3c.so.12", "", True),
        ("libcudart.so.12.9.79", "", False),
        ("libcuda.so.580.95", "libcuda.so.1", False),
        ("libcuda.so.580.95", "", False),
        ("libcuda.so", "", False),
        ("libcuda.so.1", "libvgpu.so", True),
        ("libcuda.so.backup", "", True),
        ("libcudadebugger.so.1", "libcudadebugger.so.1", True),
        ("libcopy.so", "libcopy.so", True),
    ],
)
def test_code_under_test_is_who_is_neither_runtime_nor_driver(
    programs: Programs, name: str, soname: str, under_test: bool
) -> None:
    flags = ["-fno-optimize-sibling-calls", *([f"-Wl,-soname,{soname}"] if soname else [])]
    asker = programs.compiler.library(name, "asker.c", *flags)
    driver = native.library("simcuda/driver-13.0/libcuda.so.1")
    ended = programs.run(WHO_ASKS, {"driver": driver, "asker": asker})
    assert (ended.status, ended.errors) == (0, "")
    assert ended.said == [{"code": 35 if under_test else 0}]
    [query] = ended.evidence.version_queries
    assert (query.caller.file, query.under_test, query.injected) == (str(asker), under_test, under_test)


NO_STREAM = """
claim()
runtime, caller = load("TEST_RUNTIME"), load("TEST_CALLER")
evidence_file.inject("cudaStreamCreate=0")
untouched = c_uint64(1 << 46)
assert runtime.cudaStreamCreate(byref(untouched)) == 0
caller.caller_copy(words(0, 0, 0, 1, 0, 0, 1, untouched.value, 1 << 45, 0))
"""


def test_stream_that_was_not_created_is_no_stream(programs: Programs) -> None:
    compiler = programs.compiler
    runtime = compiler.library("libcudart.so.14", "inert_runtime.c", "-Wl,-soname,libcudart.so.14")
    ended = programs.run(NO_STREAM, {"runtime": runtime, "caller": compiler.caller("dlsym-default")})
    assert (ended.status, ended.errors) == (0, "")
    [call] = ended.evidence.batch_calls()
    assert (call.given, call.stream) == (None, None)
