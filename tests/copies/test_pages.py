"""Page plans: pools of a KV cache, and the pages that are copied between them."""

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
    PagePlan,
    Place,
    copy_one_by_one,
    make_page_plan,
    make_plan,
)
from pytest_cudabatch.copies.plan import Mixture

directions = st.sampled_from([Direction.H2D, Direction.D2H])


def pools(bound: BoundPlan, plan: PagePlan) -> tuple[np.ndarray, np.ndarray]:
    """Return the memory as operators take it: [part, layer, token], [part, page, layer, token]."""
    shape = plan.geometry
    device, host = (
        HostRuntime.view(bound.buffer(place))[GUARD_BYTES:-GUARD_BYTES]
        for place in (Place.DEVICE, Place.HOST)
    )
    tokens = (shape.page_tokens, shape.token_bytes)
    return (
        device.reshape(shape.parts, shape.layers, -1, shape.token_bytes),
        host.reshape(shape.parts, shape.pool_pages, shape.layers, *tokens),
    )


@given(directions, st.integers(1, 5000), st.integers(0, 2**32))
def test_there_are_as_many_copies_as_were_asked_for(direction: Direction, count: int, seed: int) -> None:
    plan = make_page_plan(direction, count, seed)
    shape = plan.geometry
    assert plan.count == count == shape.parts * shape.layers * len(shape.device_pages)
    assert set(plan.sizes.tolist()) == {shape.page_bytes}
    assert len(set(plan.dst_offsets.tolist())) == count
    assert len(shape.host_pages) == len(shape.device_pages) < shape.pool_pages


@pytest.mark.parametrize("direction", [Direction.H2D, Direction.D2H])
@pytest.mark.parametrize("count", [1, 2, 8, 25, 1025])
def test_an_operator_over_the_pools_does_what_the_copies_do(direction: Direction, count: int) -> None:
    plan = make_page_plan(direction, count, 3)
    shape = plan.geometry
    with BoundPlan(plan, HostRuntime()) as bound:
        bound.fill()
        assert bound.verify() != []
        device, host = pools(bound, plan)
        for on_device, on_host in zip(shape.device_pages, shape.host_pages, strict=True):
            tokens = slice(on_device * shape.page_tokens, (on_device + 1) * shape.page_tokens)
            if direction is Direction.H2D:
                device[:, :, tokens] = host[:, on_host]
            else:
                host[:, on_host] = device[:, :, tokens]
        assert bound.verify() == []
        bound.fill()
        copy_one_by_one(bound)
        assert bound.verify() == []


def test_pools_lie_where_their_offsets_say() -> None:
    shape = make_page_plan(Direction.H2D, 48, 0, page_bytes=64).geometry
    assert (shape.parts, shape.layers, len(shape.host_pages)) == (2, 8, 3)
    assert (shape.page_tokens, shape.token_bytes, shape.pool_pages) == (16, 4, 4)
    assert shape.device_pool_offset(1, 2) == GUARD_BYTES + (8 + 2) * 4 * 64
    assert shape.host_pool_offset(1) == GUARD_BYTES + 8 * 4 * 64
    assert shape.tokens_of(np.array([2, 0]))[[0, 15, 16, 31]].tolist() == [32, 47, 0, 15]


@pytest.mark.parametrize("size", [1, 3, 511, 4097])
def test_pages_of_any_size(size: int) -> None:
    assert set(make_page_plan(Direction.D2H, 6, 1, page_bytes=size).sizes.tolist()) == {size}


@given(st.integers(1, 200_000))
def test_a_limit_is_kept(count: int) -> None:
    assert make_page_plan(Direction.H2D, count, 1, nbytes_limit=32 << 20).nbytes <= 32 << 20


@pytest.mark.parametrize(
    ("direction", "count", "limit"),
    [(Direction.D2D, 4, None), (Direction.MIXED, 4, None), (Direction.H2D, 0, None), (Direction.H2D, 4, 100)],
)
def test_what_cannot_be_planned(direction: Direction, count: int, limit: int | None) -> None:
    with pytest.raises(ValueError, match="copies"):
        make_page_plan(direction, count, 0, page_bytes=64, nbytes_limit=limit)


def test_a_plan_with_two_buffers_in_a_place_has_no_one_buffer_there() -> None:
    plan = make_plan(Direction.D2D, Mixture.UNIFORM, 4, 0)
    with BoundPlan(plan, HostRuntime()) as bound:
        for place, count in [(Place.DEVICE, 2), (Place.HOST, 0)]:
            with pytest.raises(ValueError, match=f"has {count} buffers"):
                bound.buffer(place)
