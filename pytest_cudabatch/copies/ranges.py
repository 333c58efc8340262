"""Copying many byte ranges within numpy arrays, without a Python loop over the ranges."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.lib.stride_tricks import as_strided

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["copy_ranges"]


def copy_ranges(
    dst: NDArray[np.uint8],
    dst_offsets: NDArray[np.uint64],
    src: NDArray[np.uint8],
    src_offsets: NDArray[np.uint64],
    sizes: NDArray[np.uint64],
) -> None:
    """Copy ``sizes[i]`` bytes from ``src_offsets[i]`` of ``src`` to ``dst_offsets[i]`` of ``dst``, for all i.

    Destinations must not overlap. Each range is cut into pieces of a power of two, one for each bit of
    its size; all pieces of one length are rows of a matrix, which numpy moves in one go.
    """
    lengths, targets, origins = (array.astype(np.int64) for array in (sizes, dst_offsets, src_offsets))
    longest = int(lengths.max(initial=0))
    for bit in range(longest.bit_length()):
        piece = 1 << bit
        chosen = np.flatnonzero(lengths & piece)
        if len(chosen) == 0:
            continue
        start = lengths[chosen] & (piece - 1)  # the shorter pieces of the same range come first
        rows = _windows(src, piece)[origins[chosen] + start]
        _windows(dst, piece)[targets[chosen] + start] = rows


def _windows(array: NDArray[np.uint8], length: int) -> NDArray[np.uint8]:
    """Return the matrix whose row i is the ``length`` bytes from ``array[i]`` on; rows share memory."""
    return as_strided(array, (max(len(array) - length + 1, 0), length), (1, 1))
