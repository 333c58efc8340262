"""Packing plans: pages of a cache with gaps between them, side by side at their destination."""

from __future__ import annotations

import numpy as np
import pytest
from host_runtime import HostRuntime
from hypothesis import given
from hypothesis import strategies as st

from pytest_cudabatch.copies import (
    GUARD_BYTES,
    BoundPlan,
    Direction,
    Mixture,
    copy_one_by_one,
    make_packing_plan,
)

SIZES = (128, 576, 4096)
GAPS = (0, 64, 256)
directions = st.sampled_from([Direction.H2D, Direction.D2H, Direction.D2D])


@given(directions, st.integers(1, 300), st.integers(0, 2**32))
def test_destinations_follow_one_another_as_the_sources_do(
    direction: Direction, count: int, seed: int
) -> None:
    plan = make_packing_plan(direction, count, seed, sizes=SIZES, gaps=GAPS)
    order = np.argsort(plan.dst_offsets)
    sizes, starts, origins = (array[order] for array in (plan.sizes, plan.dst_offsets, plan.src_offsets))
    assert (starts[0], origins[0]) == (GUARD_BYTES, GUARD_BYTES)
    assert (np.diff(starts) == sizes[:-1]).all()
    assert set((np.diff(origins) - sizes[:-1]).tolist()) <= set(GAPS)
    assert set(sizes.tolist()) <= set(SIZES)


def test_descriptors_are_shuffled_and_equal_arguments_give_equal_plans() -> None:
    one, other = (make_packing_plan(Direction.H2D, 200, 5, sizes=SIZES, gaps=GAPS) for _ in range(2))
    assert (np.diff(one.dst_offsets.astype(np.int64)) < 0).any()
    for name in ("sizes", "src_offsets", "dst_offsets"):
        assert np.array_equal(getattr(one, name), getattr(other, name))


@pytest.mark.parametrize("direction", [Direction.H2D, Direction.D2H, Direction.D2D])
def test_its_bytes_can_be_copied_and_verified(direction: Direction) -> None:
    plan = make_packing_plan(direction, 50, 1, sizes=SIZES, gaps=GAPS)
    with BoundPlan(plan, HostRuntime()) as bound:
        bound.fill()
        assert bound.verify() != []
        copy_one_by_one(bound)
        assert bound.verify() == []


def test_mixture_follows_from_the_sizes() -> None:
    mixtures = [
        make_packing_plan(Direction.H2D, 3, 0, sizes=sizes, gaps=(0,)).mixture for sizes in [(64,), (64, 128)]
    ]
    assert mixtures == [Mixture.UNIFORM, Mixture.MIXED]


def test_a_plan_of_nothing_needs_no_memory() -> None:
    plan = make_packing_plan(Direction.H2D, 0, 0, sizes=SIZES, gaps=GAPS)
    assert (plan.count, plan.payload, plan.nbytes) == (0, 0, 0)


@pytest.mark.parametrize(
    ("direction", "count", "sizes", "gaps"),
    [
        (Direction.MIXED, 1, SIZES, GAPS),
        (Direction.H2D, -1, SIZES, GAPS),
        (Direction.H2D, 1, (), GAPS),
        (Direction.H2D, 1, SIZES, ()),
        (Direction.H2D, 1, (-1, 5), GAPS),
        (Direction.H2D, 1, SIZES, (-64,)),
    ],
)
def test_what_cannot_be_a_plan_is_refused(
    direction: Direction, count: int, sizes: tuple[int, ...], gaps: tuple[int, ...]
) -> None:
    with pytest.raises(ValueError, match=f"no {direction.value} plan of {count} copies"):
        make_packing_plan(direction, count, 0, sizes=sizes, gaps=gaps)
