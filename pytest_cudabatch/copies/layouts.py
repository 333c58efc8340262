"""Plans whose layout is given: pages out of a cache, packed side by side at their destination."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from pytest_cudabatch.copies.plan import GUARD_BYTES, Direction, Mixture, Place, Plan

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["make_packing_plan"]

_ENDS = {
    Direction.H2D: (Place.HOST, Place.DEVICE),
    Direction.D2H: (Place.DEVICE, Place.HOST),
    Direction.D2D: (Place.DEVICE, Place.DEVICE),
}


def make_packing_plan(
    direction: Direction, count: int, seed: int, *, sizes: Sequence[int], gaps: Sequence[int]
) -> Plan:
    """Make the plan that gathers ``count`` pages of a cache into one packed stretch.

    Equal arguments give equal plans. Each page's size in bytes is drawn from ``sizes``, and so is the gap
    behind it in the source, from ``gaps``. The destination has the pages in the same order with nothing
    between them, so that a copy which overruns shows as wrong bytes of its neighbour. The descriptors are
    shuffled. Raises ValueError for a negative number, no size or gap to draw from, or the mixed direction.
    """
    if count < 0 or not sizes or not gaps or min(*sizes, *gaps) < 0 or direction not in _ENDS:
        raise ValueError(f"no {direction.value} plan of {count} copies, sizes {sizes}, gaps {gaps}")
    random = np.random.default_rng(seed)
    in_order = random.choice(np.array(sizes, dtype=np.uint64), size=count)
    pitches = in_order + random.choice(np.array(gaps, dtype=np.uint64), size=count)
    shuffled = random.permutation(count)
    source, destination = _ENDS[direction]
    arrays = (
        in_order[shuffled],
        np.full(count, source, dtype=np.uint8),
        np.full(count, destination, dtype=np.uint8),
        _starts(pitches)[shuffled],
        _starts(in_order)[shuffled],
    )
    for array in arrays:
        array.setflags(write=False)
    mixture = Mixture.UNIFORM if len(set(sizes)) == 1 else Mixture.MIXED
    src_extents, dst_extents = (
        _extents(source, int(pitches.sum())),
        _extents(destination, int(in_order.sum())),
    )
    return Plan(direction, mixture, seed, *arrays, src_extents, dst_extents)


def _starts(lengths: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return where each stretch begins when they follow one another behind the guard."""
    starts: NDArray[np.uint64] = np.cumsum(lengths, dtype=np.uint64) - lengths + np.uint64(GUARD_BYTES)
    return starts


def _extents(place: Place, length: int) -> tuple[int, int]:
    """Return a plan's extents where all of its ``length`` bytes lie in ``place``."""
    guarded = length + 2 * GUARD_BYTES if length else 0
    return (guarded, 0) if place is Place.HOST else (0, guarded)
