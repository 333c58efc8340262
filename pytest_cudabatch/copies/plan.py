"""Plans: what one batch copies, as offsets into buffers that do not exist yet.

A plan has up to four buffers, a source and a destination in host and in device memory. Within each, the
ranges lie scattered, like the pages of a cache: their order in memory is not their order in the batch.
Each buffer begins and ends with GUARD_BYTES that belong to no range, and gaps lie between destinations,
so that a copy which runs over its end shows.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from pytest_cudabatch.copies.draws import draw_mixed_sizes, draw_uniform_sizes, leave_empty

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "GUARD_BYTES",
    "MIXED_SIZES",
    "UNIFORM_SIZES",
    "WIDE_SIZES",
    "Direction",
    "Mixture",
    "Place",
    "Plan",
    "make_plan",
]

GUARD_BYTES = 4096
"""Bytes before the first and after the last range of each buffer."""

UNIFORM_SIZES = (256, 576, 1152, 2048)
"""Page sizes in bytes, one of which a uniform plan has for all copies."""

MIXED_SIZES = (1, 17, 128, 256, 512, 576, 1001, 1024, 1152, 4096, 8192, 16384)
"""Sizes in bytes that a mixed plan draws from: those that a driver was seen to fail on, and odd ones."""

WIDE_SIZES = (1, 3, 64, 1000, 4096, 65_536, 1_048_576, 4_194_304)
"""Sizes in bytes from one byte to 4 MiB, for ``make_plan(..., sizes=WIDE_SIZES)``."""


@dataclass(frozen=True)
class _Gaps:
    """What the gaps behind ranges are drawn from, in bytes; behind a destination there is always one."""

    source: tuple[int, ...]
    destination: tuple[int, ...]

    @property
    def most(self) -> int:
        """How much the gaps of one copy take at most."""
        return max(self.source) + max(self.destination)


_WIDE_GAPS = _Gaps(source=(0, 64, 256, 1024), destination=(16, 64, 240))
_NARROW_GAPS = _Gaps(source=(0, 16, 32), destination=(16,))
"""Where wide gaps would take more than a quarter of what the plan may."""


class Place(enum.IntEnum):
    """The two memories of a plan; the value indexes its extents."""

    HOST = 0
    DEVICE = 1


class Direction(enum.Enum):
    """Which memories a plan's copies lead from and to; ``MIXED`` has all three kinds in one batch."""

    H2D = "h2d"
    D2H = "d2h"
    D2D = "d2d"
    MIXED = "mixed"


class Mixture(enum.Enum):
    """Whether all copies of a plan have one size, or each has its own."""

    UNIFORM = "uniform"
    MIXED = "mixed"


@dataclass(frozen=True, eq=False)
class Plan:
    """One batch, before it has memory. The arrays are read-only and have one element per descriptor.

    Sizes, offsets and extents are in bytes. An offset is relative to the source or destination buffer
    in the place that ``src_places`` or ``dst_places`` names; the extents are those buffers' lengths,
    guards included, indexed by Place, and 0 where the plan has no such buffer.
    """

    direction: Direction
    mixture: Mixture
    seed: int
    sizes: NDArray[np.uint64]
    src_places: NDArray[np.uint8]
    dst_places: NDArray[np.uint8]
    src_offsets: NDArray[np.uint64]
    dst_offsets: NDArray[np.uint64]
    src_extents: tuple[int, int]
    dst_extents: tuple[int, int]

    @property
    def count(self) -> int:
        """The number of descriptors."""
        return len(self.sizes)

    @property
    def payload(self) -> int:
        """How many bytes the copies move."""
        return int(self.sizes.sum())

    @property
    def nbytes(self) -> int:
        """How many bytes of memory the plan needs, host and device together."""
        return sum(self.src_extents) + sum(self.dst_extents)

    def in_source_order(self) -> Plan:
        """Return the same copies in the order of their sources' offsets."""
        order = np.argsort(self.src_offsets, kind="stable")
        names = ("sizes", "src_places", "dst_places", "src_offsets", "dst_offsets")
        arrays = {name: getattr(self, name)[order] for name in names}
        for array in arrays.values():
            array.setflags(write=False)
        return replace(self, **arrays)

    def __str__(self) -> str:
        return f"{self.direction.value}-{self.mixture.value}-{self.count}"


def make_plan(
    direction: Direction,
    mixture: Mixture,
    count: int,
    seed: int,
    *,
    sizes: Sequence[int] | None = None,
    nbytes_limit: int | None = None,
    empty: Collection[int] | float = 0.0,
) -> Plan:
    """Make the plan that these arguments stand for; equal arguments give equal plans.

    ``count`` is the number of descriptors, ``sizes`` what their sizes in bytes are drawn from (0 is
    allowed; default: UNIFORM_SIZES or MIXED_SIZES). With the defaults a plan of 4,096 descriptors
    needs less than 32 MiB. ``nbytes_limit`` is the most memory in bytes that the plan may need: sizes
    are drawn, and gaps kept small, so that it fits; a uniform plan for which no default size is small
    enough has the largest size that is. ``empty`` are the indices of copies of no bytes, or which
    fraction of all copies (0 to 1) has none.

    Raises ValueError for a negative count or size, an empty ``sizes``, a limit that cannot be kept, and
    for indices or a fraction that cannot be.
    """
    if count < 0 or (sizes is not None and (len(sizes) == 0 or min(sizes) < 0)):
        raise ValueError(f"no plan of {count} copies with sizes out of {sizes}")
    random = np.random.default_rng(seed)
    gaps = _gaps_within(nbytes_limit, count)
    budget = None if nbytes_limit is None else _payload_within(nbytes_limit, count, gaps)
    choices = sizes if sizes is not None else _default_sizes(mixture, count, budget)
    draw = draw_uniform_sizes if mixture is Mixture.UNIFORM else draw_mixed_sizes
    drawn = leave_empty(draw(choices, count, budget, random), empty, np.random.default_rng((seed, count)))
    return _scatter(direction, mixture, seed, drawn, gaps, random)


def _default_sizes(mixture: Mixture, count: int, budget: int | None) -> Sequence[int]:
    if mixture is Mixture.MIXED:
        return MIXED_SIZES
    if budget is None or count * min(UNIFORM_SIZES) <= budget:
        return UNIFORM_SIZES
    return (max(budget // count, 1),)


def _gaps_within(limit: int | None, count: int) -> _Gaps:
    return _WIDE_GAPS if limit is None or count * _WIDE_GAPS.most <= limit // 4 else _NARROW_GAPS


def _payload_within(limit: int, count: int, gaps: _Gaps) -> int:
    """Return how many bytes the copies may move; they lie in memory twice, in up to four buffers."""
    guards = 2 * 2 * len(Place) * GUARD_BYTES
    return max(limit - guards - count * gaps.most, 0) // 2


def _scatter(
    direction: Direction,
    mixture: Mixture,
    seed: int,
    sizes: NDArray[np.uint64],
    gaps: _Gaps,
    random: np.random.Generator,
) -> Plan:
    """Give each copy its places and its offsets there."""
    src_places, dst_places = _draw_places(direction, len(sizes), random)
    src_offsets, src_extents = _lay_out(sizes, src_places, gaps.source, random)
    dst_offsets, dst_extents = _lay_out(sizes, dst_places, gaps.destination, random)
    for array in (sizes, src_places, dst_places, src_offsets, dst_offsets):
        array.setflags(write=False)
    return Plan(
        direction,
        mixture,
        seed,
        sizes,
        src_places,
        dst_places,
        src_offsets,
        dst_offsets,
        src_extents,
        dst_extents,
    )


def _draw_places(
    direction: Direction, count: int, random: np.random.Generator
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Return each descriptor's source and destination Place; a mixed plan takes the kinds in turn."""
    host, device = int(Place.HOST), int(Place.DEVICE)
    kinds = {
        Direction.H2D: [(host, device)],
        Direction.D2H: [(device, host)],
        Direction.D2D: [(device, device)],
        Direction.MIXED: [(host, device), (device, host), (device, device)],
    }[direction]
    turn = random.permutation(count) % len(kinds)
    places = np.array(kinds, dtype=np.uint8)[turn]
    return np.ascontiguousarray(places[:, 0]), np.ascontiguousarray(places[:, 1])


def _lay_out(
    sizes: NDArray[np.uint64], places: NDArray[np.uint8], gaps: tuple[int, ...], random: np.random.Generator
) -> tuple[NDArray[np.uint64], tuple[int, int]]:
    """Scatter the ranges over the buffer of their place, a gap after each; return offsets, extents."""
    offsets = np.zeros(len(sizes), dtype=np.uint64)
    extents = [0, 0]
    for place in Place:
        members = random.permutation(np.flatnonzero(places == place))
        if len(members) == 0:
            continue
        pitches = sizes[members] + random.choice(np.array(gaps, dtype=np.uint64), size=len(members))
        ends = np.cumsum(pitches, dtype=np.uint64) + np.uint64(GUARD_BYTES)
        offsets[members] = ends - pitches
        extents[place] = int(ends[-1]) + GUARD_BYTES
    return offsets, (extents[0], extents[1])
