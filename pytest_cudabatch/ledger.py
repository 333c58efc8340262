"""What a run planned and what became of it, in the controller: the ground for reports and the exit status.

Everything that is noted here goes into the journals at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pytest

from pytest_cudabatch.reports import (
    NOT_STARTED,
    RUNNING,
    CellText,
    FailureText,
    Journal,
    PlannedCell,
    RunError,
    unfinished_errors,
)
from pytest_cudabatch.runner import BUDGET_SPENT, REFUSED_ATTRIBUTE, SPOILED
from pytest_cudabatch.trial import first_line
from pytest_cudabatch.verdicts import Cell, Verdict

__all__ = ["Ledger"]

PHASES = ("setup", "call", "teardown")


@dataclass
class Ledger:
    """The cells that were planned, those that finished, and everything that went wrong beside them.

    ``unstarted`` are the ids that a budget left out, ``spoilers`` those that spoiled the process that they
    shared, each with how it did.
    """

    journals: Sequence[Journal] = ()
    cells: list[Cell] = field(default_factory=list)
    unstarted: list[str] = field(default_factory=list)
    spoilers: dict[str, str] = field(default_factory=dict)
    planned: dict[str, PlannedCell] = field(default_factory=dict)
    started: set[str] = field(default_factory=set)
    ended: set[str] = field(default_factory=set)
    reasons: dict[str, str] = field(default_factory=dict)
    """Why a case was skipped, by case; of several reasons the first."""

    _errors: dict[str, list[str]] = field(default_factory=dict)
    _telling: dict[str, list[pytest.TestReport]] = field(default_factory=dict)
    """The reports of cells under way that failed or were skipped."""

    def plan(self, cells: Iterable[PlannedCell]) -> None:
        """Remember which cells the session will run; each worker of xdist tells the same ones."""
        added = {cell.nodeid: cell for cell in cells if cell.nodeid not in self.planned}
        self.planned.update(added)
        for journal in self.journals if added else ():
            journal.planned(added.values())

    def start(self, nodeid: str) -> None:
        """Remember that a cell is about to run."""
        self.started.add(nodeid)
        for journal in self.journals:
            journal.started(nodeid)

    def hear(self, report: pytest.TestReport, cell: Cell | None) -> None:
        """Note what a report tells; ``cell`` comes with the last one of a cell."""
        if not report.passed:
            self._telling.setdefault(report.nodeid, []).append(report)
        if cell is not None:
            self._finish(report, cell)
        elif (reason := getattr(report, REFUSED_ATTRIBUTE, None)) is not None:
            if reason == BUDGET_SPENT:
                self.unstarted.append(report.nodeid)
            self.error(reason, report.nodeid)
        elif report.when not in PHASES:  # xdist's own report of a cell whose worker died
            self.error(first_line(report), report.nodeid)

    def _finish(self, report: pytest.TestReport, cell: Cell) -> None:
        self.cells.append(cell)
        self.ended.add(report.nodeid)
        if spoiled := [str(value) for name, value in report.user_properties if name == SPOILED]:
            self.spoilers[report.nodeid] = spoiled[0]
        text = _text(report, self._telling.pop(report.nodeid, []))
        if text.reason is not None:
            self.reasons.setdefault(cell.identity.case, text.reason)
        for journal in self.journals:
            journal.cell(cell.to_json(), text)

    def error(self, summary: str, nodeid: str | None = None) -> None:
        """Note what went wrong, and which cell has no verdict for it."""
        names = self._errors.setdefault(summary, [])
        if nodeid is not None:
            names.append(nodeid)
            self.ended.add(nodeid)
            self._telling.pop(nodeid, None)
        for journal in self.journals:
            journal.error(summary, nodeid)

    def skipped_everywhere(self) -> dict[str, str]:
        """Return the cases that came to no result on any pairing, and why."""
        with_result = {cell.identity.case for cell in self.cells if _has_result(cell)}
        return {
            cell.identity.case: self.reasons.get(cell.identity.case, cell.verdict.value)
            for cell in self.cells
            if cell.identity.case not in with_result
        }

    @property
    def lost(self) -> list[str]:
        """The planned cells of which nothing was heard, in the order of their plan."""
        return [nodeid for nodeid in self.planned if nodeid not in self.ended]

    @property
    def nothing_ran(self) -> bool:
        """Whether no cell came to a result: all were skipped, unavailable or left out."""
        return not any(_has_result(cell) for cell in self.cells)

    def errors(self) -> Iterator[RunError]:
        """Say, for the report, what went wrong and what is missing in it."""
        for summary, nodeids in self._errors.items():
            yield RunError(summary, tuple(self.planned[name] for name in nodeids if name in self.planned))
        states = {
            self.planned[nodeid]: RUNNING if nodeid in self.started else NOT_STARTED for nodeid in self.lost
        }
        yield from unfinished_errors(states, len(self.planned))

    def shortcomings(self, required: Mapping[str, int], strict_on: str | None) -> Iterator[str]:
        """Say why a run without failures fails all the same.

        ``required`` are numbers of cells by platform; ``strict_on`` is the platform that a strict run guards,
        None for a run that is not strict.
        """
        if self.lost:
            yield f"{len(self.lost)} cells were never reported, the first is {self.lost[0]}"
        ran = Counter(cell.platform for cell in self.cells if _ran(cell))
        for platform, number in required.items():
            if ran[platform] < number:
                yield f"--cuda-require={platform}:{number}: {ran[platform]} cells ran there"
        if strict_on is not None:
            yield from (f"--cuda-strict: {problem}" for problem in self._not_strict(ran, strict_on))

    def _not_strict(self, ran: Mapping[str | None, int], platform: str) -> Iterator[str]:
        if not ran[platform]:
            yield f"no cell ran on platform {platform}"
        if self.unstarted:
            yield f"{len(self.unstarted)} cells were not started"
        unavailable = sum(cell.verdict is Verdict.UNAVAILABLE for cell in self.cells)
        if unavailable:
            yield f"{unavailable} cells were unavailable"
        unknown = sum(_ran(cell) and cell.path == "unknown" for cell in self.cells)
        if unknown:
            yield f"the path of {unknown} cells is unknown"


def _text(last: pytest.TestReport, telling: Sequence[pytest.TestReport]) -> CellText:
    """Return what a cell's reports say for people; those of ``telling`` failed or were skipped."""
    reasons = [reason for report in (*telling, last) if (reason := _reason(report)) is not None]
    return CellText(
        failures=tuple(
            FailureText(str(report.when), first_line(report), report.longreprtext)
            for report in telling
            if report.failed
        ),
        reason=reasons[0] if reasons else None,
        properties=tuple((str(name), str(value)) for name, value in last.user_properties),
    )


def _reason(report: pytest.TestReport) -> str | None:
    """Return why a report was skipped or xfailed, without pytest's own word in front."""
    expected: str | None = getattr(report, "wasxfail", None)
    if expected is not None:
        return expected
    if report.skipped and isinstance(report.longrepr, tuple):
        return report.longrepr[2].removeprefix("Skipped: ")
    return None


def _has_result(cell: Cell) -> bool:
    """Whether the cell came to a result: neither skipped nor unavailable."""
    return cell.verdict not in (Verdict.SKIPPED, Verdict.UNAVAILABLE)


def _ran(cell: Cell) -> bool:
    """Whether the cell came to a result on a pairing."""
    return cell.identity.pairing is not None and _has_result(cell)
