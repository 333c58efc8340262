"""What a run planned and what became of it, in the controller: the ground for reports and the exit status."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import pytest

from pytest_cudabatch.runner import BUDGET_SPENT
from pytest_cudabatch.verdicts import Cell, Verdict

__all__ = ["Ledger"]


@dataclass
class Ledger:
    """The cells that were planned, those that finished, and everything that went wrong beside them.

    ``errors`` are one-line summaries for the report, ``unstarted`` the ids that a budget left out.
    """

    cells: list[Cell] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    unstarted: list[str] = field(default_factory=list)
    planned: set[str] = field(default_factory=set)
    reported: set[str] = field(default_factory=set)

    def plan(self, nodeids: Iterable[str]) -> None:
        """Remember which cells the session will run; each worker of xdist tells the same ones."""
        self.planned.update(nodeids)

    def hear(self, report: pytest.TestReport) -> None:
        """Note that an item came to an end, which its teardown's report or a failed set-up tells."""
        if report.when == "teardown" or not report.passed:
            self.reported.add(report.nodeid)
        if report.skipped and BUDGET_SPENT in report.longreprtext:
            self.unstarted.append(report.nodeid)

    @property
    def lost(self) -> list[str]:
        """The planned cells of which nothing was heard, in order of their ids."""
        return sorted(self.planned - self.reported)

    @property
    def nothing_ran(self) -> bool:
        """Whether no cell came to a result: all were skipped, unavailable or left out."""
        return not any(_has_result(cell) for cell in self.cells)

    def unfinished_business(self) -> Iterator[str]:
        """Say, for the report, what is missing in it."""
        if self.lost:
            yield f"{len(self.lost)} of {len(self.planned)} planned cells have no result"
        if self.unstarted:
            yield f"{len(self.unstarted)} cells were not started: {BUDGET_SPENT}"

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


def _has_result(cell: Cell) -> bool:
    """Whether the cell came to a result: neither skipped nor unavailable."""
    return cell.verdict not in (Verdict.SKIPPED, Verdict.UNAVAILABLE)


def _ran(cell: Cell) -> bool:
    """Whether the cell came to a result on a pairing."""
    return cell.identity.pairing is not None and _has_result(cell)
