"""What sources hold: bytes that follow from a seed, without an array as long as the buffer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["CANVAS", "STALE", "Pattern"]

CANVAS = 0xFF
"""What destinations hold before the copies. No source byte has this value, so a byte not copied shows."""

STALE = 0xEE
"""What a source holds while its right bytes are withheld."""

_PERIOD = 1_048_573  # a prime, so that ranges at round distances from each other hold other bytes


class Pattern:
    """Endless bytes: one random block over and over. Equal seeds give equal bytes, none of them CANVAS.

    ``bytes`` holds the block and as much of its repetition that any range of up to ``longest`` bytes
    lies in it in one piece, at ``starts(offset)``.
    """

    def __init__(self, seed: tuple[int, int], longest: int) -> None:
        block = np.frombuffer(np.random.default_rng(seed).bytes(_PERIOD), dtype=np.uint8)
        self.bytes = np.resize(np.minimum(block, CANVAS - 1), _PERIOD + longest)

    def starts(self, offsets: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Return where in ``bytes`` the ranges at ``offsets`` of the pattern begin."""
        starts: NDArray[np.uint64] = offsets % np.uint64(_PERIOD)
        return starts

    def pieces(self, nbytes: int) -> Iterator[tuple[int, NDArray[np.uint8]]]:
        """Yield the pattern's first ``nbytes`` bytes in pieces, each with its offset."""
        for start in range(0, nbytes, _PERIOD):
            yield start, self.bytes[: min(_PERIOD, nbytes - start)]
