"""Fallbacks of implementations that know nothing of us, driven by injection: what each fault comes to."""

from __future__ import annotations

import json
from typing import Any

import pytest

IMPLEMENTATION = '''
import ctypes

from pytest_cudabatch.abi import MemcpyAttributes

NOT_AVAILABLE = (36, 801)


class Direct:
    """Calls the runtime's function of CUDA 13; what comes after a refusal is up to the kind."""

    def __init__(self, kind):
        self.name = kind

    def expected_path(self, plan, pairing):
        return "batch"

    def open(self):
        self.runtime = ctypes.CDLL("libcudart.so.13")
        return self

    def copy(self, plan, stream):
        stream = ctypes.c_void_p(stream)
        if stream.value in (None, 1):  # the batch call does not take the default stream
            return self.one_by_one(plan, stream, plan.count)
        code = self.batch(plan, stream)
        if code not in NOT_AVAILABLE or self.name == "none":
            return code
        self.runtime.cudaGetLastError()
        return self.one_by_one(plan, stream, plan.count - (self.name == "short"))

    def batch(self, plan, stream):
        lists = [array.ctypes.data_as(ctypes.c_void_p) for array in (plan.dsts, plan.srcs, plan.sizes)]
        attributes, first = MemcpyAttributes(src_access_order=1), ctypes.c_size_t(0)
        one, count = ctypes.c_size_t(1), ctypes.c_size_t(plan.count)
        pointers = ctypes.byref(attributes), ctypes.byref(first)
        return self.runtime.cudaMemcpyBatchAsync(*lists, count, *pointers, one, stream)

    def one_by_one(self, plan, stream, count):
        for dst, src, size in zip(plan.dsts.tolist(), plan.srcs.tolist(), plan.sizes.tolist()):
            if count == 0:
                break
            count -= 1
            arguments = ctypes.c_void_p(dst), ctypes.c_void_p(src), ctypes.c_size_t(size), 4, stream
            code = self.runtime.cudaMemcpyAsync(*arguments)
            if code and self.name != "careless":
                return code
        return 0


right, none, short, careless = map(Direct, ("right", "none", "short", "careless"))
'''

SAME_BYTES = "test_the_fallback_does_the_same_as_the_batch"
RETURNED = "test_an_error_of_a_single_copy_is_returned"


@pytest.mark.parametrize(
    ("kind", "expected", "says"),
    [
        ("right", {}, None),
        (
            "none",
            # On null and legacy it copies one by one without being refused.
            {
                SAME_BYTES: {"non-blocking-36", "non-blocking-801", "per-thread-801"},
                RETURNED: {"1", "3", "8"},
            },
            "none has no fallback: it returned the batch call's",
        ),
        (
            "short",
            {SAME_BYTES: {"non-blocking-36", "non-blocking-801", "per-thread-801"}},
            "destination",
        ),
        ("careless", {RETURNED: {"1", "3", "8"}}, "assert 0 == 1"),
    ],
)
def test_fallback_is_driven_and_judged(
    pytester: pytest.Pytester, kind: str, expected: dict[str, set[str]], says: str | None
) -> None:
    pytester.makepyfile(outside=IMPLEMENTATION)
    pytester.makeini("[pytest]\npythonpath = .\n")
    finding = {"none": "no-driver-guard", "short": "wrong-bytes", "careless": "unchecked-return"}.get(kind)
    cells = run(pytester, f"outside:{kind}", f"{SAME_BYTES} or {RETURNED}")
    assert len(cells) == 8
    caught: dict[str, set[str]] = {}
    for cell in cells:
        name, _, parameters = cell["nodeid"].rpartition("::")[2].partition("[")
        if cell["verdict"] == "skipped":  # 7 of 8 copies: the last one cannot fail
            assert (kind, name, parameters.partition("-")[0]) == ("short", RETURNED, "8")
        elif cell["verdict"] != "passed":
            assert (cell["verdict"], cell["finding"]["code"]) == ("failed", finding)
            assert says is not None
            assert says in cell["finding"]["summary"]
            caught.setdefault(name, set()).add(parameters.partition("-outside:")[0])
    assert caught == expected


def run(pytester: pytest.Pytester, implementation: str, cases: str) -> list[dict[str, Any]]:
    pytester.runpytest_subprocess(
        "--cuda-matrix",
        "--cuda-platform=simulated",
        "--cuda-suite-only",
        "--cuda-select=runtime==13.0 on driver==13.0",
        f"--cuda-implementation={implementation}",
        "--cuda-report=report.json",
        "-k",
        cases,
    )
    cells: list[dict[str, Any]] = json.loads((pytester.path / "report.json").read_text())["cells"]
    return cells
