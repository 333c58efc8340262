"""Copying ranges in numpy gives what copying them one by one gives."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pytest_cudabatch.copies.ranges import copy_ranges


@given(
    st.lists(st.tuples(st.integers(0, 700), st.integers(0, 40), st.integers(0, 300)), max_size=60),
    st.randoms(),
)
def test_same_as_a_loop_of_slices(drawn: list[tuple[int, int, int]], random: np.random.Generator) -> None:
    """Each range: size, gap behind its destination, source offset."""
    sizes = [size for size, _, _ in drawn]
    dst_offsets = np.cumsum([0, *(size + gap for size, gap, _ in drawn)])
    order = list(range(len(drawn)))
    random.shuffle(order)
    src = np.random.default_rng(len(drawn)).integers(0, 255, 1100, dtype=np.uint8)
    expected = np.full(int(dst_offsets[-1]) + 5, 255, dtype=np.uint8)
    for (size, _, origin), start in zip(drawn, dst_offsets[:-1], strict=True):
        expected[start : start + size] = src[origin : origin + size]

    dst = np.full_like(expected, 255)
    starts = np.array([dst_offsets[i] for i in order], dtype=np.uint64)
    origins = np.array([drawn[i][2] for i in order], dtype=np.uint64)
    copy_ranges(dst, starts, src, origins, np.array([sizes[i] for i in order], dtype=np.uint64))

    assert dst.tolist() == expected.tolist()


def test_a_range_may_be_the_whole_array() -> None:
    src = np.arange(13, dtype=np.uint8)
    dst = np.zeros(13, dtype=np.uint8)
    zero = np.zeros(1, dtype=np.uint64)
    copy_ranges(dst, zero, src, zero, np.array([13], dtype=np.uint64))
    assert dst.tolist() == src.tolist()
