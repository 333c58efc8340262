"""Every specimen is caught on exactly its pairings, with its verdict and finding; reference nowhere."""

from __future__ import annotations

import json
from typing import Any

import pytest

NEW_DRIVERS = ("13.0", "13.2", "13.5")
BATCH_DRIVERS = ("12.8", "12.9", *NEW_DRIVERS)
CU12 = ("12.8", "12.9")
CU13 = ("13.0", "13.1", "13.2", "13.3", "13.4", "13.5")

CRASHED_8_INTO_9 = ("crashed", "SIGSEGV", "wrong-abi", 8, 9)
CRASHED_9_INTO_8 = ("crashed", "SIGSEGV", "wrong-abi", 9, 8)
FAILED_8_INTO_9 = ("failed", None, "wrong-abi", 8, 9)
"""On a driver without the function a libcudart answers 36 before it touches its arguments: no crash shows
the wrong call, only evidence does."""


def pairings(runtimes: tuple[str, ...], drivers: tuple[str, ...]) -> list[str]:
    return [f"cu{runtime}-d{driver}" for runtime in runtimes for driver in drivers]


CAUGHT: dict[str, dict[str, tuple[object, ...]]] = {
    "reference": {},
    "specimen:driver-version": dict.fromkeys(pairings(CU12, NEW_DRIVERS), CRASHED_8_INTO_9),
    "specimen:dlsym-always-9": dict.fromkeys(pairings(CU13, NEW_DRIVERS), CRASHED_9_INTO_8),
    "specimen:dlsym-always-8": {
        **dict.fromkeys(pairings(CU12, BATCH_DRIVERS), CRASHED_8_INTO_9),
        **dict.fromkeys(pairings(CU12, ("12.4",)), FAILED_8_INTO_9),
    },
}


def run(pytester: pytest.Pytester, implementation: str, *arguments: str) -> tuple[int, list[dict[str, Any]]]:
    result = pytester.runpytest_subprocess(
        "--cuda-matrix",
        "--cuda-platform=simulated",
        "--cuda-suite-only",
        f"--cuda-implementation={implementation}",
        "--cuda-report=report.json",
        *arguments,
    )
    cells: list[dict[str, Any]] = json.loads((pytester.path / "report.json").read_text())["cells"]
    return int(result.ret), cells


def judged(cell: dict[str, Any]) -> tuple[object, ...]:
    finding = cell["finding"] or {"code": None, "given": None, "taken": None}
    return (cell["verdict"], cell["signal"], finding["code"], finding["given"], finding["taken"])


@pytest.mark.parametrize("implementation", sorted(CAUGHT))
def test_caught_on_exactly_its_pairings(pytester: pytest.Pytester, implementation: str) -> None:
    status, cells = run(pytester, implementation, "-k", "test_callee")
    assert len(cells) == 36
    found = {cell["pairing"]: judged(cell) for cell in cells if cell["verdict"] != "passed"}
    assert found == CAUGHT[implementation]
    assert status == (1 if CAUGHT[implementation] else 0)


@pytest.mark.nightly
@pytest.mark.parametrize("implementation", sorted(CAUGHT))
def test_caught_by_every_case(pytester: pytest.Pytester, implementation: str) -> None:
    _, cells = run(pytester, implementation, "-n", "2")
    found = {(cell["case"], cell["pairing"]): judged(cell) for cell in cells if cell["verdict"] != "passed"}
    cases = {cell["case"] for cell in cells}
    assert found == {
        (case, pairing): how for case in cases for pairing, how in CAUGHT[implementation].items()
    }


def test_the_diagnosis_names_both_sides(pytester: pytest.Pytester) -> None:
    _, (cell,) = run(
        pytester,
        "specimen:driver-version",
        "-k",
        "test_callee",
        "--cuda-select=runtime==12.9 on driver==13.0",
    )
    finding = cell["finding"]
    names = [finding[side]["file"].rpartition("/")[2] for side in ("caller", "callee")]
    assert names == ["libspecimen-driver-version.so", "libcudart.so.12"]
    assert finding["function"] == "cudaMemcpyBatchAsync"
    assert finding["caller"]["offset"] > 0
    assert (cell["phase"], cell["path"], cell["abi_called"]) == ("call", "none", "v13000")


@pytest.mark.parametrize(
    ("implementation", "fallback"),
    [
        # reference asks the driver, a dlsym implementation the runtime: the announced path follows.
        ("reference", pairings(("12.6", *CU12), ("12.4",))),
        (
            "specimen:dlsym-always-9",
            [*pairings(("12.6",), ("12.4", *BATCH_DRIVERS)), *pairings(CU12, ("12.4",))],
        ),
    ],
)
def test_paths_follow_the_route(pytester: pytest.Pytester, implementation: str, fallback: list[str]) -> None:
    _, cells = run(pytester, implementation, "-k", "test_callee")
    passed = [cell for cell in cells if cell["verdict"] == "passed"]
    assert sorted(cell["pairing"] for cell in passed if cell["path"] == "fallback") == sorted(fallback)
    assert {cell["path"] for cell in passed} == {"batch", "fallback"}
