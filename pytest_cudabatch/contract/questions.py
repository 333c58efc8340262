"""A question of the contract: a row put to an entry. All questions there are for a runtime."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pytest_cudabatch.abi import BatchAbi
from pytest_cudabatch.contract.entries import ENTRIES, Entry
from pytest_cudabatch.contract.lookups import LOOKUP_ROWS, LookupRow
from pytest_cudabatch.contract.rows import BATCH_ROWS, BatchRow

__all__ = ["ROWS", "Question", "Row", "questions_for"]

Row = BatchRow | LookupRow

ROWS: dict[str, Row] = {**BATCH_ROWS, **LOOKUP_ROWS}
"""Every row by its name, in the order of the tables."""


@dataclass(frozen=True, order=True)
class Question:
    """The names of a row and of the entry that it is put to."""

    row: str
    entry: str

    @property
    def alone(self) -> bool:
        """Whether it needs a process of its own from the start."""
        return ROWS[self.row].alone


def questions_for(abi: BatchAbi) -> Iterator[Question]:
    """Yield the questions to ask where the loaded runtime is of that ABI, row by row."""
    for row in ROWS.values():
        for entry in ENTRIES:
            if _fits(row, entry, abi):
                yield Question(row.name, entry.name)


def _fits(row: Row, entry: Entry, abi: BatchAbi) -> bool:
    if isinstance(row, LookupRow):
        return entry.name in row.entries
    return entry.shape in row.shapes and (not row.nine_only or entry.has_fail_index(abi))
