"""What holds for every plan, and that plans are what their arguments say."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_cudabatch.copies import (
    GUARD_BYTES,
    MIXED_SIZES,
    UNIFORM_SIZES,
    Direction,
    Mixture,
    Place,
    Plan,
    make_plan,
)

plans = st.builds(
    make_plan,
    st.sampled_from(Direction),
    st.sampled_from(Mixture),
    st.integers(0, 300),
    st.integers(0, 2**32),
    sizes=st.none() | st.lists(st.integers(0, 5000), min_size=1, max_size=8),
)


def buffers(plan: Plan) -> Iterator[tuple[np.ndarray, np.ndarray, int]]:
    """Yield starts and ends of the ranges in each buffer, in memory order, and the buffer's length."""
    sides = [
        (plan.src_places, plan.src_offsets, plan.src_extents),
        (plan.dst_places, plan.dst_offsets, plan.dst_extents),
    ]
    for places, offsets, extents in sides:
        for place in Place:
            members = np.flatnonzero(places == place)
            order = members[np.lexsort((plan.sizes[members], offsets[members]))]  # an empty range comes first
            yield offsets[order].astype(int), (offsets[order] + plan.sizes[order]).astype(int), extents[place]


@given(plans)
def test_no_ranges_of_a_buffer_overlap(plan: Plan) -> None:
    for starts, ends, _ in buffers(plan):
        assert (ends[:-1] <= starts[1:]).all()


@given(plans)
def test_destinations_have_gaps_between_them(plan: Plan) -> None:
    for starts, ends, _ in list(buffers(plan))[2:]:
        assert (starts[1:] - ends[:-1] >= 16).all()


@given(plans)
def test_guards_are_outside_all_ranges(plan: Plan) -> None:
    for starts, ends, extent in buffers(plan):
        if len(starts) == 0:
            assert extent == 0
        else:
            assert starts[0] >= GUARD_BYTES
            assert ends[-1] <= extent - GUARD_BYTES


@given(plans)
def test_sums_and_places_fit_the_direction(plan: Plan) -> None:
    kinds = set(zip(plan.src_places.tolist(), plan.dst_places.tolist(), strict=True))
    host, device = Place.HOST, Place.DEVICE
    possible = {
        Direction.H2D: {(host, device)},
        Direction.D2H: {(device, host)},
        Direction.D2D: {(device, device)},
        Direction.MIXED: {(host, device), (device, host), (device, device)},
    }[plan.direction]
    assert kinds <= possible
    assert len(kinds) == min(plan.count, len(possible))
    assert plan.payload == sum(plan.sizes.tolist())


@given(plans)
def test_arrays_are_what_a_c_call_takes_and_read_only(plan: Plan) -> None:
    for array in (plan.sizes, plan.src_offsets, plan.dst_offsets):
        assert (array.dtype, array.flags.c_contiguous, array.flags.writeable) == (np.uint64, True, False)
        assert len(array) == plan.count


@pytest.mark.parametrize("mixture", Mixture)
@pytest.mark.parametrize("direction", Direction)
def test_equal_arguments_give_equal_plans(direction: Direction, mixture: Mixture) -> None:
    first, second, other = (make_plan(direction, mixture, 500, seed) for seed in (7, 7, 8))
    assert first.dst_offsets.tolist() == second.dst_offsets.tolist()
    assert first.src_offsets.tolist() == second.src_offsets.tolist()
    assert first.sizes.tolist() == second.sizes.tolist()
    assert first.dst_offsets.tolist() != other.dst_offsets.tolist()
    assert str(first) == f"{direction.value}-{mixture.value}-500"


@pytest.mark.parametrize("mixture", Mixture)
@pytest.mark.parametrize("direction", Direction)
@pytest.mark.parametrize("seed", range(5))
def test_4096_descriptors_fit_into_32_mib(direction: Direction, mixture: Mixture, seed: int) -> None:
    assert make_plan(direction, mixture, 4096, seed).nbytes <= 32 << 20


def test_sizes_are_of_the_mixture() -> None:
    uniform = make_plan(Direction.H2D, Mixture.UNIFORM, 100, 1)
    mixed = make_plan(Direction.H2D, Mixture.MIXED, 1000, 1)
    assert len(set(uniform.sizes.tolist())) == 1
    assert set(uniform.sizes.tolist()) < set(UNIFORM_SIZES)
    assert set(mixed.sizes.tolist()) == set(MIXED_SIZES)
    assert set(make_plan(Direction.D2H, Mixture.MIXED, 1000, 1, sizes=(3, 5)).sizes.tolist()) == {3, 5}


def test_ranges_lie_scattered() -> None:
    plan = make_plan(Direction.D2D, Mixture.UNIFORM, 100, 0)
    assert (np.diff(plan.src_offsets.astype(int)) < 0).any()
    assert np.argsort(plan.src_offsets).tolist() != np.argsort(plan.dst_offsets).tolist()


@pytest.mark.parametrize(("count", "sizes"), [(-1, None), (1, ()), (1, (64, -1))])
def test_impossible_plans_are_refused(count: int, sizes: tuple[int, ...] | None) -> None:
    with pytest.raises(ValueError, match=f"no plan of {count} copies"):
        make_plan(Direction.H2D, Mixture.MIXED, count, 0, sizes=sizes)
