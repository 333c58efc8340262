"""Drawing the sizes of a plan's copies, so that all of them fit into what the plan may take."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["draw_mixed_sizes", "draw_uniform_sizes", "leave_empty"]

_HALVINGS = 60
"""Steps of the search for a weight: as many as a double can tell apart."""


def draw_uniform_sizes(
    choices: Sequence[int], count: int, budget: int | None, random: np.random.Generator
) -> NDArray[np.uint64]:
    """Return ``count`` times one of ``choices`` with which all of them fit into ``budget`` bytes (None: any).

    Raises ValueError where not even the smallest does.
    """
    fitting = [size for size in choices if budget is None or size * count <= budget]
    if not fitting:
        raise _too_small(choices, count, budget)
    return np.full(count, random.choice(fitting), dtype=np.uint64)


def draw_mixed_sizes(
    choices: Sequence[int], count: int, budget: int | None, random: np.random.Generator
) -> NDArray[np.uint64]:
    """Return ``count`` sizes out of ``choices`` which together fit into ``budget`` bytes (None: any).

    Where all choices fit side by side, each of them occurs. Without need all are equally likely; a budget
    makes large ones as much rarer as it takes. Raises ValueError where not even the smallest fit.
    """
    sizes = np.array(choices, dtype=np.uint64)
    if budget is not None and int(sizes.min()) * count > budget:
        raise _too_small(choices, count, budget)
    mean = None if budget is None or count == 0 else budget / count
    drawn = random.choice(sizes, size=count, p=_weights(sizes, mean))
    order = random.permutation(count)
    if len(sizes) <= count and (budget is None or _fit_side_by_side(sizes, count, budget)):
        drawn[order[: len(sizes)]] = sizes
    return drawn if budget is None else _trim(drawn, order, int(sizes.min()), budget)


def leave_empty(
    sizes: NDArray[np.uint64], empty: Collection[int] | float, random: np.random.Generator
) -> NDArray[np.uint64]:
    """Return ``sizes`` with 0 at the indices ``empty``, or at that fraction of all, chosen at random.

    Raises ValueError for a fraction outside 0 to 1, and for an index that does not exist.
    """
    if isinstance(empty, (int, float)):
        if not 0 <= empty <= 1:
            raise ValueError(f"a fraction of {empty} of the copies cannot be empty")
        chosen = random.permutation(len(sizes))[: round(empty * len(sizes))]
    else:
        chosen = np.array(sorted(empty), dtype=np.intp)
        if len(chosen) and not 0 <= chosen[0] <= chosen[-1] < len(sizes):
            raise ValueError(f"no empty copies {sorted(empty)} among {len(sizes)}")
    sizes[chosen] = 0
    return sizes


def _too_small(choices: Sequence[int], count: int, budget: int | None) -> ValueError:
    return ValueError(f"{count} copies with sizes out of {tuple(choices)} do not fit into {budget} bytes")


def _weights(sizes: NDArray[np.uint64], mean: float | None) -> NDArray[np.float64]:
    """Return the probability of each size: equal ones, or those nearest to it whose mean is ``mean``.

    Nearest means of the greatest entropy: exp(-k * size), with k found by bisection.
    """
    relative = sizes.astype(np.float64) / max(float(sizes.max()), 1.0)
    equal = np.full(len(sizes), 1 / len(sizes))
    if mean is None or float(sizes.mean()) <= mean:
        return equal
    wanted = mean / float(sizes.max())
    low, high = 0.0, 1e9  # at the upper end only the smallest size is left
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        weights = np.exp(-middle * (relative - relative.min()))
        low, high = (middle, high) if weights @ relative / weights.sum() > wanted else (low, middle)
    weights = np.exp(-high * (relative - relative.min()))
    normalised: NDArray[np.float64] = weights / weights.sum()
    return normalised


def _fit_side_by_side(sizes: NDArray[np.uint64], count: int, budget: int) -> bool:
    """Whether one copy of each size, and the smallest for all the others, fit."""
    return int(sizes.sum()) + (count - len(sizes)) * int(sizes.min()) <= budget


def _trim(
    drawn: NDArray[np.uint64], order: NDArray[np.intp], smallest: int, budget: int
) -> NDArray[np.uint64]:
    """Make the last in ``order`` as small as can be, as many of them as it takes to stay in the budget."""
    above = np.cumsum(drawn[order] - np.uint64(smallest), dtype=np.uint64)
    drawn[order[above > np.uint64(budget - smallest * len(drawn))]] = smallest
    return drawn
