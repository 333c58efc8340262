"""What can be wrong with a buffer's bytes after the copies, and finding all of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["MOST_PROBLEMS", "GuardOverrun", "Problem", "Ranges", "WrongBytes", "find_problems"]

MOST_PROBLEMS = 20
"""How many problems of a kind are listed for one buffer; each of them says how many there are."""


@dataclass(frozen=True)
class WrongBytes:
    """A copy whose destination differs from its source: from byte ``offset`` of the copy on.

    ``wrong`` of its ``size`` bytes differ; ``copies`` copies of the buffer do.
    """

    buffer: str
    descriptor: int
    offset: int
    expected: int
    got: int
    wrong: int
    size: int
    copies: int

    def __str__(self) -> str:
        return (
            f"copy {self.descriptor} into the {self.buffer}: {self.wrong} of {self.size} bytes wrong, the "
            f"first at byte {self.offset} ({self.got:#04x}, expected {self.expected:#04x}); "
            f"wrong copies in all: {self.copies}"
        )


@dataclass(frozen=True)
class GuardOverrun:
    """Bytes that no copy may write were written: ``length`` of them in a row, from ``offset`` of the buffer.

    In a destination these are the guards and gaps, in a source all bytes. ``after_descriptor`` is the
    copy whose destination lies before them; ``places`` counts such rows in the buffer.
    """

    buffer: str
    offset: int
    length: int
    after_descriptor: int | None
    got: int
    places: int

    def __str__(self) -> str:
        behind = "" if self.after_descriptor is None else f", behind copy {self.after_descriptor}"
        return (
            f"{self.length} bytes of the {self.buffer} written that no copy may write, the first "
            f"({self.got:#04x}) at byte {self.offset}{behind}; such places in all: {self.places}"
        )


Problem = WrongBytes | GuardOverrun


@dataclass(frozen=True, eq=False)
class Ranges:
    """The ranges of a buffer that copies write, in memory order: whose they are, starts and sizes (bytes)."""

    descriptors: NDArray[np.int64]
    starts: NDArray[np.int64]
    sizes: NDArray[np.int64]

    @classmethod
    def sort(
        cls, descriptors: NDArray[np.intp], starts: NDArray[np.uint64], sizes: NDArray[np.uint64]
    ) -> Ranges:
        """Take ranges, which must not overlap, in any order."""
        order = np.argsort(starts)
        return cls(*(array[order].astype(np.int64) for array in (descriptors, starts, sizes)))

    @classmethod
    def none(cls) -> Ranges:
        """Return the ranges of a buffer that nothing may write, a source."""
        nothing = np.empty(0, dtype=np.int64)
        return cls(nothing, nothing, nothing)

    def last_before(self, positions: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return for each position the index of the last range that starts at or before it, else -1."""
        return np.searchsorted(self.starts, positions, side="right") - 1

    def contain(self, positions: NDArray[np.intp], ranges: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Return whether each position lies in the range of that index (-1: in none)."""
        ends = np.append(self.starts + self.sizes, 0)  # the index -1 finds the appended end
        return positions < ends[ranges]


def find_problems(
    buffer: str, actual: NDArray[np.uint8], expected: NDArray[np.uint8], ranges: Ranges
) -> list[Problem]:
    """Compare a whole buffer and say what differs, wrong copies first, at most MOST_PROBLEMS of each kind."""
    if np.array_equal(actual, expected):
        return []
    differing = np.flatnonzero(actual != expected)
    owners = ranges.last_before(differing)
    inside = ranges.contain(differing, owners)
    return [
        *_wrong_copies(buffer, actual, expected, ranges, differing[inside]),
        *_overruns(buffer, actual, ranges, differing[~inside]),
    ]


def _wrong_copies(
    buffer: str,
    actual: NDArray[np.uint8],
    expected: NDArray[np.uint8],
    ranges: Ranges,
    differing: NDArray[np.intp],
) -> list[WrongBytes]:
    hit, first, counts = np.unique(ranges.last_before(differing), return_index=True, return_counts=True)
    return [
        WrongBytes(
            buffer=buffer,
            descriptor=int(ranges.descriptors[hit[k]]),
            offset=int(differing[first[k]] - ranges.starts[hit[k]]),
            expected=int(expected[differing[first[k]]]),
            got=int(actual[differing[first[k]]]),
            wrong=int(counts[k]),
            size=int(ranges.sizes[hit[k]]),
            copies=len(hit),
        )
        for k in np.argsort(ranges.descriptors[hit])[:MOST_PROBLEMS]
    ]


def _overruns(
    buffer: str, actual: NDArray[np.uint8], ranges: Ranges, differing: NDArray[np.intp]
) -> list[GuardOverrun]:
    """Join neighbouring bytes behind one range into one problem."""
    if len(differing) == 0:
        return []
    owners = ranges.last_before(differing)
    breaks = np.flatnonzero((np.diff(differing) != 1) | (np.diff(owners) != 0)) + 1
    firsts = np.concatenate(([0], breaks))
    lengths = np.diff(firsts, append=len(differing))
    return [
        GuardOverrun(
            buffer=buffer,
            offset=int(differing[first]),
            length=int(length),
            after_descriptor=int(ranges.descriptors[owners[first]]) if owners[first] >= 0 else None,
            got=int(actual[differing[first]]),
            places=len(firsts),
        )
        for first, length in zip(firsts[:MOST_PROBLEMS], lengths[:MOST_PROBLEMS], strict=True)
    ]
