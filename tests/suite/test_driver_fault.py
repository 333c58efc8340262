"""A driver that fails inside a valid batch call is blamed by its matched control; nobody else is."""

from __future__ import annotations

import json
from typing import Any

import pytest

FAULTS = "CUDABATCH_SIM_FAULTS"
ONE_PAIRING = "--cuda-select=runtime==12.9 on driver==13.0"
SMALL = "test_bytes_match and h2d-mixed-2"
ALL = {"runs": 5, "right": 5, "valid": 5}


def run(pytester: pytest.Pytester, *arguments: str) -> tuple[pytest.RunResult, dict[str, Any]]:
    """Run one cell, and return it too."""
    result = pytester.runpytest_subprocess(
        *("--cuda-matrix", "--cuda-platform=simulated", "--cuda-report=report.json", ONE_PAIRING, *arguments)
    )
    (cell,) = json.loads((pytester.path / "report.json").read_text())["cells"]
    return result, cell


def judged(cell: dict[str, Any]) -> tuple[object, ...]:
    finding = cell["finding"]
    return (cell["verdict"], cell["signal"], finding["code"], finding["control"])


@pytest.mark.parametrize(
    ("implementation", "callee"),
    [("reference", "libcuda.so.1"), ("specimen:leaves-last-error", "libcudart.so.12")],
    ids=["asks the driver", "asks the runtime"],
)
def test_a_crash_inside_the_driver(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, implementation: str, callee: str
) -> None:
    monkeypatch.setenv(FAULTS, "batch=crash")
    result, cell = run(pytester, "--cuda-suite-only", f"--cuda-implementation={implementation}", "-k", SMALL)
    assert judged(cell) == ("crashed", "SIGSEGV", "driver-fault", ALL)
    assert cell["finding"]["callee"]["file"].endswith(f"/{callee}")
    assert cell["finding"]["fault"]["file"].endswith("/libcuda.so.1")
    result.stdout.fnmatch_lines(
        [
            "driver-fault: crashed, SIGSEGV in 1 cell",
            "  control: without the batch call the same cell was right in 5 of 5 runs, and *valid in 5",
        ]
    )


def test_a_hang_inside_the_driver(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FAULTS, "batch=hang")
    _, cell = run(pytester, "--cuda-suite-only", "--cuda-timeout=2", "-k", SMALL)
    assert judged(cell) == ("hung", None, "driver-fault", ALL)


def test_a_control_that_hangs_too_ends_with_the_budget(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not after five deadlines more; and what was not seen five times blames nobody."""
    monkeypatch.setenv(FAULTS, "batch=hang; per-copy=hang")
    options = ("--cuda-suite-only", "--cuda-timeout=2", "--cuda-budget=3", "-k", SMALL)
    result, cell = run(pytester, *options)
    verdict, _, code, control = judged(cell)
    assert (verdict, code, control["right"]) == ("hung", "hang", 0)
    assert control["runs"] < 5
    result.stdout.fnmatch_lines(["  control: *; --cuda-budget was spent before all 5"])


@pytest.mark.parametrize(
    ("case", "verdict"),
    [("51828-mixed", "crashed"), ("51828-uniform", "passed")],
)
def test_a_fault_of_large_mixed_batches_only(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, case: str, verdict: str
) -> None:
    """As driver 580.159.04 fails; the reference, which sends 1,024 copies a call, is spared."""
    monkeypatch.setenv(FAULTS, "mixed-h2d=crash")
    arguments = ("--cuda-suite-only", "-k", f"test_counts_to_the_device and {case}")
    _, cell = run(pytester, "--cuda-implementation=specimen:leaves-last-error", *arguments)
    assert cell["verdict"] == verdict
    assert (cell["finding"] or {}).get("code") == ("driver-fault" if verdict == "crashed" else None)
    _, cell = run(pytester, *arguments)
    assert (cell["verdict"], cell["path"]) == ("passed", "batch")


@pytest.mark.parametrize(
    ("implementation", "control"),
    [
        ("specimen:swapped-pages", {"runs": 5, "right": 0, "valid": 5}),
        ("specimen:no-driver-guard", {"runs": 5, "right": 5, "valid": 5}),
    ],
    ids=["whose fallback is wrong", "whose fallback is right"],
)
def test_the_control_decides(
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    implementation: str,
    control: dict[str, int],
) -> None:
    monkeypatch.setenv(FAULTS, "batch=crash")
    case = "test_bytes_match and h2d-uniform-2"
    _, cell = run(pytester, "--cuda-suite-only", f"--cuda-implementation={implementation}", "-k", case)
    code = "driver-fault" if control == ALL else "crash"
    assert judged(cell) == ("crashed", "SIGSEGV", code, control)


def test_a_crash_before_the_driver_has_no_control(pytester: pytest.Pytester) -> None:
    """An injected crash lies in the interposer, whatever call it stands for."""
    _, cell = run(pytester, "--cuda-suite-only", "--cuda-inject=batch=crash", "-k", SMALL)
    assert judged(cell) == ("crashed", "SIGSEGV", "crash", None)


WILD = """
import ctypes

NOWHERE = 0x10000


class Attributes(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int) for name in ("order", "a", "b", "c", "d")] + [("flags", ctypes.c_uint)]


class Bound:
    def copy(self, plan, stream):
        runtime = ctypes.CDLL("libcudart.so.12")
        wild = (ctypes.c_void_p * plan.count)(*([NOWHERE] * plan.count))
        address = ctypes.c_void_p
        dsts, sizes = address(plan.dsts.ctypes.data), address(plan.sizes.ctypes.data)
        first, failed = ctypes.c_size_t(0), ctypes.c_size_t(0)
        code = runtime.cudaMemcpyBatchAsync(
            dsts, wild, sizes, ctypes.c_size_t(plan.count), ctypes.byref(Attributes(ORDER)),
            ctypes.byref(first), ctypes.c_size_t(1), ctypes.byref(failed), address(stream),
        )
        if code != 801:
            return code
        runtime.cudaGetLastError()
        for dst, src, size in zip(plan.dsts.tolist(), plan.srcs.tolist(), plan.sizes.tolist()):
            runtime.cudaMemcpyAsync(address(dst), address(src), ctypes.c_size_t(size), 4, address(stream))
        return 0


class Wild:
    name = "wild"

    def expected_path(self, plan, pairing):
        return "batch"

    def open(self):
        return Bound()


wild = Wild()
"""

HANDS_ON = """
import ctypes
from ctypes import byref, c_int, c_size_t, c_uint64, c_void_p


class Attributes(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int) for name in ("order", "a", "b", "c", "d")] + [("flags", ctypes.c_uint)]


class Bound:
    def copy(self, plan, stream):
        driver, found, status = ctypes.CDLL("libcuda.so.1"), c_void_p(), c_int()
        driver.cuGetProcAddress_v2(b"cuMemcpyBatchAsync", byref(found), 12080, c_uint64(0), byref(status))
        dsts, srcs, sizes = (c_void_p(array.ctypes.data) for array in (plan.dsts, plan.srcs, plan.sizes))
        if found:
            first, failed = c_size_t(0), c_size_t(0)
            two, three = [c_void_p] * 2, [c_void_p] * 3
            function = ctypes.CFUNCTYPE(c_int, *three, c_size_t, *two, c_size_t, *two)(found.value)
            return function(
                dsts, srcs, sizes, plan.count, ctypes.addressof(attributes := Attributes(1)),
                ctypes.addressof(first), 1, ctypes.addressof(failed), stream,
            )
        for dst, src, size in zip(plan.dsts.tolist(), plan.srcs.tolist(), plan.sizes.tolist()):
            driver.cuMemcpyAsync(c_uint64(dst), c_uint64(src + WRONG), c_size_t(size), c_void_p(stream))
        return 0


class HandsOn:
    name = "hands-on"

    def expected_path(self, plan, pairing):
        return "batch"

    def open(self):
        return Bound()


hands_on = HandsOn()
"""

OWN_TEST = """
def test_copy(batch_copy, copy_plan, cuda_stream):
    batch_copy.check(copy_plan("h2d", "uniform", 4), cuda_stream, announce=("batch", "fallback"))
"""


def test_a_batch_of_wild_addresses_is_no_fault_of_the_driver(pytester: pytest.Pytester) -> None:
    """The crash lies in libcuda and the fallback is right; the addresses of the batch call were not."""
    pytester.makepyfile(wild_cb=WILD.replace("ORDER", "1"), test_own=OWN_TEST)
    pytester.syspathinsert()
    _, cell = run(pytester, "--cuda-no-suite", "--cuda-implementation=wild_cb:wild")
    assert judged(cell) == ("crashed", "SIGSEGV", "crash", {"runs": 5, "right": 5, "valid": 0})
    assert cell["finding"]["fault"]["file"].endswith("/libcuda.so.1")


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [("0", ("driver-fault", ALL)), ("1", ("crash", {"runs": 5, "right": 0, "valid": 5}))],
    ids=["right", "wrong"],
)
def test_who_hands_801_on_is_controlled_without_a_function_to_be_had(
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    wrong: str,
    expected: tuple[str, dict[str, int]],
) -> None:
    """As vLLM's operator, which copies one by one only where a look-up finds nothing."""
    monkeypatch.setenv(FAULTS, "batch=crash")
    pytester.makepyfile(hands_on_cb=HANDS_ON.replace("WRONG", wrong), test_own=OWN_TEST)
    pytester.syspathinsert()
    _, cell = run(pytester, "--cuda-no-suite", "--cuda-implementation=hands_on_cb:hands_on")
    assert judged(cell) == ("crashed", "SIGSEGV", *expected)


def test_a_fault_that_there_is_not_is_told(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FAULTS, "batch=explode")
    result, cell = run(pytester, "--cuda-suite-only", "-k", SMALL)
    assert cell["verdict"] == "failed"
    result.stdout.fnmatch_lines(
        ["pytest-cudabatch: CUDABATCH_SIM_FAULTS: batch=explode is no fault of the simulated driver: *"]
    )
