"""What a cell has of its own and keeps in its config: its evidence, and what pairings there are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_cudabatch.interposer import Evidence, EvidenceFile, Injection
    from pytest_cudabatch.pairings import Pairing

__all__ = ["EVIDENCE", "PAIRINGS", "CellEvidence"]


@dataclass(frozen=True)
class CellEvidence:
    """This cell's slot of the evidence file."""

    file: EvidenceFile
    slot: int

    def read(self) -> Evidence:
        """Return what the interposer has recorded so far."""
        return self.file.read(self.slot)

    def request(self, injections: Iterable[Injection]) -> None:
        """Ask for faults from now on."""
        self.file.request(self.slot, injections)

    def declare_allocations(self, allocations: Iterable[tuple[int, int]]) -> None:
        """Say which memory the next batch calls are about, as (address, bytes)."""
        self.file.declare_allocations(self.slot, allocations)


EVIDENCE: pytest.StashKey[CellEvidence] = pytest.StashKey()
"""Where a cell's config keeps its evidence; set before the cell's set-up."""

PAIRINGS: pytest.StashKey[Sequence[Pairing]] = pytest.StashKey()
"""Where a cell's config keeps all pairings of the run."""
