"""How far a run is: live on a terminal, plain lines elsewhere, and what came to no result anywhere."""

from __future__ import annotations

import re
from typing import Any

import pexpect
import pytest

from pytest_cudabatch import progress
from pytest_cudabatch.ledger import Ledger
from pytest_cudabatch.reports import PlannedCell
from pytest_cudabatch.verdicts import Cell, CellIdentity, Judgement, Verdict

MATRIX = (
    "--cuda-matrix",
    "--cuda-platform=simulated",
    "--cuda-select=runtime==12.9 on driver>=13.0,<=13.2",
    "--cuda-no-suite",
)
CELLS = """
import pytest

def test_good(cuda_pairing):
    pass

def test_wrong(cuda_pairing):
    assert cuda_pairing is None

def test_here_and_there(cuda_pairing):
    if cuda_pairing.id == "cu12.9-d13.0":
        pytest.skip("not there")

def test_nowhere(cuda_pairing):
    pytest.skip("no such thing")
"""


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def ledger_of(planned: int, started: int, *verdicts: Verdict) -> Ledger:
    names = [f"test_{number}" for number in range(planned)]
    ledger = Ledger()
    ledger.plan(PlannedCell(name, name, None, None) for name in names)
    for name in names[:started]:
        ledger.start(name)
    for name, verdict in zip(names, verdicts, strict=False):
        ledger.cells.append(finished(name, verdict))
        ledger.ended.add(name)
    return ledger


def finished(name: str, verdict: Verdict) -> Cell:
    values: dict[str, Any] = dict.fromkeys(("abi_called", "signal", "exit_code"))
    numbers = {"batch_calls": 0, "per_copy_calls": 0, "seconds": 0.1}
    identity = CellIdentity(name, name, None, None, None)
    return Cell(identity, Judgement(verdict), "exit", "passed", "none", **values, **numbers)


@pytest.mark.parametrize(
    ("ledger", "seconds", "text"),
    [
        (ledger_of(10, 0), 5, "0 of 10 cells done, 0 failed, 0 running"),
        (
            ledger_of(10, 4, Verdict.PASSED, Verdict.CRASHED),
            10,
            "2 of 10 cells done, 1 failed, 2 running, about 40 s left",
        ),
        (
            ledger_of(100, 2, Verdict.HUNG),
            3,
            "1 of 100 cells done, 1 failed, 1 running, about 5 min left",
        ),
        (ledger_of(2, 2, Verdict.PASSED, Verdict.SKIPPED), 9, "2 of 2 cells done, 0 failed, 0 running"),
    ],
)
def test_line(ledger: Ledger, seconds: float, text: str) -> None:
    clock = Clock()
    line = progress.ProgressLine(ledger, clock)
    clock.now += seconds
    assert line.text() == text


def test_live_line_on_a_terminal(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(CELLS)
    child = pytester.spawn_pytest(" ".join(map(repr, MATRIX)))
    child.expect(r"collected 8 items")
    child.expect(r"1 of 8 cells done, 0 failed, [01] running, about \d+ s left")
    child.expect(r"7 of 8 cells done, 2 failed, [01] running, about \d+ s left")
    child.expect(r"2 failed, 3 passed, 3 skipped")
    child.expect(pexpect.EOF)
    child.close()
    # pytest's letters are not among it: a file's line of them would begin with its name.
    shown = (pytester.path / "spawn.out").read_text().partition("FAILURES")[0]
    assert "test_live_line_on_a_terminal.py" not in shown.partition("collected")[2]


@pytest.mark.parametrize(("option", "spoken"), [((), True), (("-q",), False), (("-n2",), True)])
def test_plain_lines_elsewhere(pytester: pytest.Pytester, option: tuple[str, ...], spoken: bool) -> None:
    pytester.makepyfile(CELLS)
    pytester.makeconftest(
        """
        from pytest_cudabatch import progress

        progress.PLAIN_SECONDS = 0.0
        """
    )
    result = pytester.runpytest_subprocess(*MATRIX, *option)
    lines = [line for line in result.outlines if re.match(r"\d of 8 cells done, ", line)]
    assert bool(lines) is spoken
    if spoken:
        assert lines[-1].startswith("8 of 8 cells done, 2 failed, 0 running")


def test_a_short_run_has_no_plain_line(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(CELLS)
    assert "cells done" not in pytester.runpytest_subprocess(*MATRIX, "-k", "good").stdout.str()


def test_what_was_skipped_everywhere_is_listed(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_it=CELLS)
    result = pytester.runpytest_subprocess(*MATRIX)
    start = next(number for number, line in enumerate(result.outlines) if " skipped everywhere " in line)
    assert result.outlines[start + 1] == "test_it.py::test_nowhere: no such thing"
    assert "cuda matrix" in result.outlines[start + 2]
