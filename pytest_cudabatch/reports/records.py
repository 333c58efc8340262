"""What a run leaves behind, as data: planned cells, errors, texts, and whole reports read back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = [
    "CellText",
    "FailureText",
    "PlannedCell",
    "RecordedCell",
    "RunError",
    "RunRecord",
    "unfinished_errors",
]

RUNNING, NOT_STARTED = "running", "not-started"
"""The states of a planned cell without a result."""


@dataclass(frozen=True)
class PlannedCell:
    """A cell that a run was going to run."""

    nodeid: str
    case: str
    implementation: str | None
    pairing: str | None

    def to_json(self) -> dict[str, str | None]:
        """Return the cell as the report and the journal have it."""
        return dict(vars(self))


@dataclass(frozen=True)
class RunError:
    """What went wrong beside the verdicts: one line, and the cells that it cost.

    ``unfinished`` is given where the cells have no result: ``running`` when the record ends, or
    ``not-started``.
    """

    summary: str
    cells: tuple[PlannedCell, ...] = ()
    unfinished: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the error as the report has it."""
        data: dict[str, Any] = {"summary": self.summary}
        if self.cells:
            data["cells"] = [cell.to_json() for cell in self.cells]
        if self.unfinished:
            data["unfinished"] = self.unfinished
        return data


@dataclass(frozen=True)
class FailureText:
    """One failed report of a cell: its phase, its first line and the whole."""

    when: str
    message: str
    text: str


@dataclass(frozen=True)
class CellText:
    """What a cell said for people: failures, why it was skipped, and the properties of its test."""

    failures: tuple[FailureText, ...] = ()
    reason: str | None = None
    properties: tuple[tuple[str, str], ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the texts as the journal has them."""
        return {
            "failures": [dict(vars(failure)) for failure in self.failures],
            "reason": self.reason,
            "properties": [list(pair) for pair in self.properties],
        }


@dataclass(frozen=True)
class RecordedCell:
    """A finished cell as a report holds it (``data``), with its texts where a journal kept them."""

    data: Mapping[str, Any]
    text: CellText = CellText()

    @property
    def verdict(self) -> str:
        """The cell's verdict."""
        return str(self.data["verdict"])


@dataclass(frozen=True)
class RunRecord:
    """One run as a file has it. ``source`` is the file's name; ``unfinished`` maps cells to their states."""

    source: str
    run: Mapping[str, Any]
    host: Mapping[str, Any]
    cells: tuple[RecordedCell, ...]
    errors: tuple[RunError, ...]
    unfinished: Mapping[PlannedCell, str]

    @property
    def all_errors(self) -> tuple[RunError, ...]:
        """The errors, and those that say what has no result."""
        planned = len(self.unfinished) + len(self.cells)
        return (*self.errors, *unfinished_errors(self.unfinished, planned))


def unfinished_errors(unfinished: Mapping[PlannedCell, str], planned: int) -> tuple[RunError, ...]:
    """Say in one error for each state which of ``planned`` cells have no result."""
    words = {RUNNING: "without a result when the record ends: running", NOT_STARTED: "not started"}
    found = []
    for state, word in words.items():
        cells = tuple(cell for cell, its_state in unfinished.items() if its_state == state)
        if cells:
            found.append(RunError(f"{len(cells)} of {planned} planned cells: {word}", cells, state))
    return tuple(found)
