"""Every specimen is caught on exactly its pairings, with its verdict and finding; reference nowhere."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from pytest_cudabatch.implementations import BUILTIN

NEW_DRIVERS = ("13.0", "13.2", "13.5")
BATCH_DRIVERS = ("12.8", "12.9", *NEW_DRIVERS)
DRIVERS = ("12.4", *BATCH_DRIVERS)
CU12 = ("12.8", "12.9")
CU13 = ("13.0", "13.1", "13.2", "13.3", "13.4", "13.5")


def pairings(runtimes: tuple[str, ...], drivers: tuple[str, ...]) -> list[str]:
    return [f"cu{runtime}-d{driver}" for runtime in runtimes for driver in drivers]


EVERY = [*pairings(("12.6", *CU12), DRIVERS), *pairings(CU13, NEW_DRIVERS)]
CLASSES = [*pairings(("12.6", "12.9"), ("12.4", "12.9", "13.5")), "cu13.5-d13.5"]
"""One pairing of each class of behaviour, which is what the costlier cases run on."""
RUNTIME_BATCH = [*pairings(CU12, BATCH_DRIVERS), *pairings(CU13, NEW_DRIVERS)]
"""Where an implementation that asks the runtime has a batch call."""
DRIVER_BATCH = [*pairings(("12.6", *CU12), BATCH_DRIVERS), *pairings(CU13, NEW_DRIVERS)]
"""Where one that asks the driver has."""
OLD_DRIVER = pairings(CU12, ("12.4",))
"""A runtime with the function on a driver without: the call answers 36."""

CRASHED_8_INTO_9 = ("crashed", "SIGSEGV", "wrong-abi", 8, 9)
CRASHED_9_INTO_8 = ("crashed", "SIGSEGV", "wrong-abi", 9, 8)
FAILED_8_INTO_9 = ("failed", None, "wrong-abi", 8, 9)
"""On a driver without the function a libcudart answers 36 before it touches its arguments: no crash shows
the wrong call, only evidence does."""


def failed(code: str) -> tuple[object, ...]:
    return ("failed", None, code, None, None)


CRASHED_UNCHECKED = ("crashed", "SIGSEGV", "lookup-unchecked", None, None)


@dataclass(frozen=True)
class Row:
    """Which cases show it (a ``-k`` expression), and what their cells come to where they do not pass.

    ``spread`` are the pairings on which the cases run, ``schedule`` is the one of simulated CUDA.
    """

    cases: str
    caught: dict[str, tuple[object, ...]] = field(default_factory=dict)
    spread: tuple[str, ...] = tuple(EVERY)
    schedule: str = "fair"

    @classmethod
    def over_classes(cls, cases: str, finding: str, where: Sequence[str] = tuple(CLASSES)) -> Row:
        """Caught on one pairing of each class in ``where``, by whatever adversarial schedule."""
        return cls(cases, dict.fromkeys(where, failed(finding)), tuple(CLASSES), "adversarial:0")


SHOWN: dict[str, Row] = {
    "reference": Row("test_callee or test_the_announced"),
    "per-copy": Row("test_the_announced"),
    "per-copy-coalesced": Row("test_the_announced"),
    "specimen:driver-version": Row(
        "test_callee", dict.fromkeys(pairings(CU12, NEW_DRIVERS), CRASHED_8_INTO_9)
    ),
    "specimen:dlsym-always-9": Row(
        "test_callee", dict.fromkeys(pairings(CU13, NEW_DRIVERS), CRASHED_9_INTO_8)
    ),
    "specimen:dlsym-always-8": Row(
        "test_callee",
        {
            **dict.fromkeys(pairings(CU12, BATCH_DRIVERS), CRASHED_8_INTO_9),
            **dict.fromkeys(OLD_DRIVER, FAILED_8_INTO_9),
        },
    ),
    # Beside one runtime it is right everywhere.
    "specimen:linked-runtime-version": Row("test_callee or test_the_announced"),
    "specimen:unchecked-null": Row("test_a_failed_lookup", dict.fromkeys(EVERY, CRASHED_UNCHECKED)),
    "specimen:no-driver-guard": Row(
        "test_the_announced", dict.fromkeys(OLD_DRIVER, failed("no-driver-guard"))
    ),
    "specimen:silent-fallback": Row(
        "test_the_announced", dict.fromkeys(DRIVER_BATCH, failed("silent-fallback"))
    ),
    "specimen:fallback-ignores-errors": Row(
        "test_an_error_of_a_single_copy", dict.fromkeys(EVERY, failed("unchecked-return"))
    ),
    "specimen:fallback-on-invalid": Row(
        "test_an_invalid_batch", dict.fromkeys(RUNTIME_BATCH, failed("masked-error"))
    ),
    "specimen:leaves-last-error": Row(
        "test_a_handled_error and 801",
        dict.fromkeys([*OLD_DRIVER, *RUNTIME_BATCH], failed("error-left-behind")),
    ),
    "specimen:default-stream": Row(
        "test_special_streams and (null or legacy)", dict.fromkeys(RUNTIME_BATCH, failed("legacy-stream"))
    ),
    "specimen:zero-size-unfiltered": Row(
        "test_entries_without_bytes", dict.fromkeys(RUNTIME_BATCH, failed("zero-size"))
    ),
    # Right, in ways that are hard to see: a path that was not seen would fail the announced one.
    "specimen:no-plt": Row("test_callee or test_the_announced"),
    "specimen:address-taken": Row("test_callee or test_the_announced"),
    "specimen:preloaded-dlsym": Row("test_callee or test_the_announced"),
    "specimen:static-cudart": Row("test_callee or test_the_announced"),
    "specimen:current-device": Row.over_classes("test_another_device", "wrong-context"),
    "specimen:no-capture-check": Row.over_classes(
        "test_a_captured_copy", "capture-lost", [name for name in CLASSES if name in RUNTIME_BATCH]
    ),
    "specimen:straddles-registration": Row.over_classes("test_pages_that_meet", "straddles-registration"),
    "specimen:overreads-attrs": Row(
        "test_nothing_is_read",
        dict.fromkeys(CLASSES, ("crashed", "SIGSEGV", "overread", None, None)),
        tuple(CLASSES),
        "adversarial:0",
    ),
    "specimen:source-freed-early": Row.over_classes("test_batches_in_flight", "source-freed-early"),
    "specimen:missing-order": Row.over_classes("test_copies_stand", "missing-order"),
    "specimen:returns-before-done": Row.over_classes("test_synchronising_the_stream", "early-return"),
    "specimen:off-by-one": Row("test_the_announced", dict.fromkeys(EVERY, failed("guard-overrun"))),
    "specimen:swapped-pages": Row("test_the_announced", dict.fromkeys(EVERY, failed("wrong-bytes"))),
}
"""The table: specimen, pairings, verdict, finding. Every case that a row names comes to the same."""


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


def test_every_implementation_of_ours_is_in_the_table() -> None:
    assert SHOWN.keys() == BUILTIN.keys()
    found = {name: {how[2] for how in row.caught.values()} for name, row in SHOWN.items()}
    found["specimen:linked-runtime-version"] = {"split-owner"}  # test_two_runtimes.py has its own table
    assert found == {name: {recipe.finding} - {None} for name, recipe in BUILTIN.items()}


@pytest.mark.parametrize("implementation", sorted(SHOWN))
def test_caught_on_exactly_its_pairings(pytester: pytest.Pytester, implementation: str) -> None:
    row = SHOWN[implementation]
    status, cells = run(pytester, implementation, "-k", row.cases, f"--cuda-schedule={row.schedule}")
    assert {cell["pairing"] for cell in cells} == set(row.spread)
    for case in {cell["case"] for cell in cells}:
        found = {
            cell["pairing"]: judged(cell)
            for cell in cells
            if cell["case"] == case and cell["verdict"] not in ("passed", "skipped")
        }
        assert found == row.caught, case
    assert status == (1 if row.caught else 0)


@pytest.mark.nightly
@pytest.mark.parametrize("implementation", sorted(SHOWN))
def test_no_case_finds_anything_else(pytester: pytest.Pytester, implementation: str) -> None:
    """Over the whole gate: whatever fails, fails with the specimen's own finding.

    Version and function from two places show in three ways, by how the runtime is linked.
    """
    _, cells = run(pytester, implementation, "-n", "2")
    found = {judged(cell)[2] for cell in cells if cell["verdict"] not in ("passed", "skipped")}
    also = {"silent-fallback", "wrong-abi"} if implementation == "specimen:linked-runtime-version" else set()
    assert found == {BUILTIN[implementation].finding, *also} - {None}


BY_ANY_SCHEDULE = (
    "current-device",
    "missing-order",
    "no-capture-check",
    "overreads-attrs",
    "returns-before-done",
    "source-freed-early",
    "straddles-registration",
)
"""Specimens that are wrong in how their copies lie in time, in contexts and in memory."""


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("name", BY_ANY_SCHEDULE)
def test_caught_by_every_seed(pytester: pytest.Pytester, name: str, seed: int) -> None:
    implementation = f"specimen:{name}"
    row = SHOWN[implementation]
    _, cells = run(pytester, implementation, "-k", row.cases, f"--cuda-schedule=adversarial:{seed}")
    for case in {cell["case"] for cell in cells}:
        found = {
            cell["pairing"]: judged(cell)
            for cell in cells
            if cell["case"] == case and cell["verdict"] != "passed"
        }
        assert found == row.caught, case


ONE_PAIRING = "--cuda-select=runtime==12.9 on driver==13.5"


def passes(pytester: pytest.Pytester, seed: int) -> None:
    """Run the whole suite of the gate with reference by an adversarial schedule."""
    status, cells = run(pytester, "reference", ONE_PAIRING, f"--cuda-schedule=adversarial:{seed}")
    assert {judged(cell)[2] for cell in cells if cell["verdict"] not in ("passed", "skipped")} == set()
    assert status == 0


@pytest.mark.parametrize("seed", range(5))
def test_reference_passes_by_any_seed(pytester: pytest.Pytester, seed: int) -> None:
    passes(pytester, seed)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(5, 200))
def test_reference_passes_by_many_seeds(pytester: pytest.Pytester, seed: int) -> None:
    passes(pytester, seed)


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
        ("specimen:dlsym-always-9", [*pairings(("12.6",), DRIVERS), *OLD_DRIVER]),
    ],
)
def test_paths_follow_the_route(pytester: pytest.Pytester, implementation: str, fallback: list[str]) -> None:
    _, cells = run(pytester, implementation, "-k", "test_callee")
    passed = [cell for cell in cells if cell["verdict"] == "passed"]
    assert sorted(cell["pairing"] for cell in passed if cell["path"] == "fallback") == sorted(fallback)
    assert {cell["path"] for cell in passed} == {"batch", "fallback"}
