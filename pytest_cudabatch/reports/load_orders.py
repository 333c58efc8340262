"""The load-order matrix of the terminal's summary: what an extension links, and what was loaded before it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pytest_cudabatch.verdicts import Cell, Verdict

__all__ = ["LoadOrders"]

_CASE = re.compile(r"cudabatch/test_two_runtimes\.py::test_load_order\[(shared|static)-(.+)\]")


class LoadOrders:
    """The cells of the suite's load-order case, by the runtime that is linked and what was loaded first."""

    def __init__(self, cells: Sequence[Cell]) -> None:
        self._cells: dict[tuple[str, str], Cell] = {}
        for cell in cells:
            match, pairing = _CASE.fullmatch(cell.identity.case), cell.identity.pairing
            if match and pairing and cell.verdict is not Verdict.SKIPPED:
                self._cells[f"{match[1]} {pairing.runtime.version.major}", match[2]] = cell
        self.linked = sorted({linked for linked, _ in self._cells})
        self.loaded = list(dict.fromkeys(loaded for _, loaded in self._cells))

    def __bool__(self) -> bool:
        return bool(self._cells)

    def cell(self, linked: str, loaded: str) -> Cell | None:
        """Return the cell of that combination; None where it did not run."""
        return self._cells.get((linked, loaded))

    @staticmethod
    def word(cell: Cell) -> str:
        """Return the finding's code, else the verdict."""
        return cell.finding.code.value if cell.finding else cell.verdict.value
