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
    WIDE_SIZES,
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
    empty=st.floats(0, 1),
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


LIMIT = 32 << 20
COUNTS = (1, 2, 1025, 4097, 16_384, 51_828, 65_537, 131_072)


@pytest.mark.parametrize("sizes", [None, WIDE_SIZES], ids=["default", "wide"])
@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("mixture", Mixture)
def test_a_limited_plan_fits_and_uses_what_it_may(
    mixture: Mixture, count: int, sizes: tuple[int, ...] | None
) -> None:
    plan = make_plan(Direction.MIXED, mixture, count, 5, sizes=sizes, nbytes_limit=LIMIT)
    assert plan.nbytes <= LIMIT
    assert (plan.sizes > 0).all()
    if mixture is Mixture.MIXED and count >= 51_828:
        assert plan.nbytes > LIMIT // 8 * 7
    if mixture is Mixture.MIXED and count >= 12:
        assert set(plan.sizes.tolist()) == set(sizes or MIXED_SIZES)
    assert len(set(plan.sizes.tolist())) == 1 or mixture is Mixture.MIXED


@pytest.mark.parametrize("direction", Direction)
def test_a_limited_plan_keeps_its_gaps_and_guards(direction: Direction) -> None:
    plan = make_plan(direction, Mixture.MIXED, 131_072, 1, nbytes_limit=LIMIT)
    for side, (starts, ends, extent) in enumerate(buffers(plan)):
        if len(starts):
            assert (starts[1:] - ends[:-1] >= (16 if side >= 2 else 0)).all()
            assert (starts[0], extent - ends[-1]) >= (GUARD_BYTES, GUARD_BYTES)


def test_a_limit_changes_nothing_that_fits_anyway() -> None:
    free, limited = (make_plan(Direction.H2D, Mixture.MIXED, 500, 3, nbytes_limit=n) for n in (None, LIMIT))
    assert free.sizes.tolist() == limited.sizes.tolist()
    assert free.src_offsets.tolist() == limited.src_offsets.tolist()


def test_a_uniform_plan_too_large_for_every_default_size_has_the_largest_that_fits() -> None:
    sizes = make_plan(Direction.D2H, Mixture.UNIFORM, 131_072, 0, nbytes_limit=LIMIT).sizes
    assert set(sizes.tolist()) == {(LIMIT - 8 * GUARD_BYTES - 48 * 131_072) // 2 // 131_072}


@pytest.mark.parametrize("mixture", Mixture)
def test_a_limit_that_cannot_be_kept_is_refused(mixture: Mixture) -> None:
    with pytest.raises(ValueError, match=r"100 copies with sizes out of \(.*\) do not fit into 0 bytes"):
        make_plan(Direction.H2D, mixture, 100, 0, nbytes_limit=10_000)
    with pytest.raises(ValueError, match=r"9 copies with sizes out of \(4194304,\) do not fit into 16755144"):
        make_plan(Direction.H2D, mixture, 9, 0, sizes=(4 << 20,), nbytes_limit=LIMIT)


def test_empty_copies_are_those_asked_for_and_the_others_stay() -> None:
    full = make_plan(Direction.MIXED, Mixture.MIXED, 50, 2)
    some = make_plan(Direction.MIXED, Mixture.MIXED, 50, 2, empty={0, 7, 49})
    assert np.flatnonzero(some.sizes == 0).tolist() == [0, 7, 49]
    assert some.src_places.tolist() == full.src_places.tolist()
    kept = some.sizes > 0
    assert some.sizes[kept].tolist() == full.sizes[kept].tolist()


@pytest.mark.parametrize(("fraction", "count"), [(0.0, 0), (0.25, 50), (1.0, 200)])
def test_a_fraction_of_the_copies_is_empty(fraction: float, count: int) -> None:
    first, second = (make_plan(Direction.D2D, Mixture.UNIFORM, 200, 4, empty=fraction) for _ in range(2))
    assert np.count_nonzero(first.sizes == 0) == count
    assert first.sizes.tolist() == second.sizes.tolist()


@pytest.mark.parametrize("empty", [{3}, {-1}, -0.1, 1.5])
def test_impossible_empty_copies_are_refused(empty: set[int] | float) -> None:
    with pytest.raises(ValueError, match=r"no empty copies|cannot be empty"):
        make_plan(Direction.H2D, Mixture.MIXED, 3, 0, empty=empty)


def test_ranges_lie_scattered() -> None:
    plan = make_plan(Direction.D2D, Mixture.UNIFORM, 100, 0)
    assert (np.diff(plan.src_offsets.astype(int)) < 0).any()
    assert np.argsort(plan.src_offsets).tolist() != np.argsort(plan.dst_offsets).tolist()


@pytest.mark.parametrize(("count", "sizes"), [(-1, None), (1, ()), (1, (64, -1))])
def test_impossible_plans_are_refused(count: int, sizes: tuple[int, ...] | None) -> None:
    with pytest.raises(ValueError, match=f"no plan of {count} copies"):
        make_plan(Direction.H2D, Mixture.MIXED, count, 0, sizes=sizes)
