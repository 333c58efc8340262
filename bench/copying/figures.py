"""What the times say: medians and 99th percentiles with bootstrap intervals, and ratios of medians.

Times of one round share what the machine did just then, so the bootstrap draws whole rounds. Contenders that
were measured in the same rounds are drawn together, and their ratio keeps what the rounds had in common.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Estimate", "Times", "quantile", "ratio"]

_RESAMPLES = 2000
_LEVEL = 0.95

Times = NDArray[np.float64]
"""Microseconds; one row a round, one column a repeat."""


@dataclass(frozen=True)
class Estimate:
    """A figure with its 95 % bootstrap interval."""

    value: float
    low: float
    high: float

    def to_json(self) -> dict[str, float]:
        """Return it as JSON data."""
        return {"value": self.value, "low": self.low, "high": self.high}


def quantile(times: Times, q: float, seed: int) -> Estimate:
    """Return the ``q`` quantile of all times (0.5 is the median)."""
    return _estimate(float(np.quantile(times, q)), _resampled(times, _draw(len(times), seed), q))


def ratio(times: Times, base: Times, seed: int, *, paired: bool) -> Estimate:
    """Return the median of ``times`` over that of ``base``; below 1 is faster.

    ``paired``: row i of both is the same round. Only the rounds that both have are compared then.
    """
    if paired:
        shared = min(len(times), len(base))
        times, base = times[:shared], base[:shared]
        draws = base_draws = _draw(shared, seed)
    else:
        draws, base_draws = _draw(len(times), seed), _draw(len(base), seed + 1)
    value = float(np.median(times) / np.median(base))
    return _estimate(value, _resampled(times, draws, 0.5) / _resampled(base, base_draws, 0.5))


def _draw(rounds: int, seed: int) -> NDArray[np.int64]:
    return np.random.default_rng(seed).integers(0, rounds, size=(_RESAMPLES, rounds))


def _resampled(times: Times, draws: NDArray[np.int64], q: float) -> Times:
    return np.quantile(times[draws].reshape(len(draws), -1), q, axis=1)


def _estimate(value: float, resampled: Times) -> Estimate:
    low, high = np.quantile(resampled, [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2])
    return Estimate(value, float(low), float(high))
