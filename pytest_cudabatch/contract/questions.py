"""A question of the contract: a row put to an entry. All questions there are for a runtime."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pytest_cudabatch.abi import BatchAbi, CudaVersion
from pytest_cudabatch.contract import beside_rows, box_rows, rows
from pytest_cudabatch.contract.call_rows import CALL_ROWS, CallRow
from pytest_cudabatch.contract.entries import ENTRIES, Entry
from pytest_cudabatch.contract.lookups import LOOKUP_ROWS, LookupRow
from pytest_cudabatch.contract.row_table import BATCH_ROWS, BatchRow

__all__ = ["ROWS", "Question", "Row", "questions_for"]

_ENTERED = (rows, beside_rows, box_rows)
"""Imported for the rows that they enter into BATCH_ROWS, in this order."""

Row = BatchRow | CallRow | LookupRow

ROWS: dict[str, Row] = {**BATCH_ROWS, **CALL_ROWS, **LOOKUP_ROWS}
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


def questions_for(abi: BatchAbi, version: CudaVersion | None = None) -> Iterator[Question]:
    """Yield the questions to ask where the loaded runtime is of that ABI, row by row.

    With its ``version``, without those about functions that it does not have yet.
    """
    entries = [entry for entry in ENTRIES if version is None or entry.since is None or version >= entry.since]
    for row in ROWS.values():
        for entry in entries:
            if _fits(row, entry, abi):
                yield Question(row.name, entry.name)


def _fits(row: Row, entry: Entry, abi: BatchAbi) -> bool:
    if isinstance(row, (CallRow, LookupRow)):
        return entry.name in row.entries
    return entry.shape in row.shapes and (not row.nine_only or entry.has_fail_index(abi))
