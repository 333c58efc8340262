"""A plan's buffers: right copies pass, every kind of wrong one is found, nothing leaks."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from host_runtime import HostRuntime

from pytest_cudabatch.copies import (
    CANVAS,
    BoundPlan,
    Direction,
    GuardOverrun,
    Mixture,
    Place,
    WrongBytes,
    copy_one_by_one,
    make_plan,
)
from pytest_cudabatch.errors import CudaError


def bind(
    direction: Direction = Direction.MIXED, mixture: Mixture = Mixture.MIXED, count: int = 200
) -> BoundPlan:
    bound = BoundPlan(make_plan(direction, mixture, count, seed=3), HostRuntime())
    bound.fill()
    return bound


@pytest.mark.parametrize("count", [0, 1, 3, 300])
@pytest.mark.parametrize("mixture", Mixture)
@pytest.mark.parametrize("direction", Direction)
def test_the_oracle_copies_right(direction: Direction, mixture: Mixture, count: int) -> None:
    with bind(direction, mixture, count) as bound:
        copy_one_by_one(bound)
        assert bound.verify() == []


@pytest.mark.parametrize("direction", Direction)
def test_without_copies_every_byte_of_each_is_wrong(direction: Direction) -> None:
    with bind(direction, count=15) as bound:
        found = bound.verify()
        assert sorted(problem.descriptor for problem in found) == list(range(15))
        assert [problem.wrong for problem in found] == [problem.size for problem in found]
        assert {problem.got for problem in found} == {CANVAS}


@pytest.mark.parametrize("empty", [{0}, {19}, {3, 4, 5}, 0.5, 1.0])
@pytest.mark.parametrize("direction", Direction)
def test_empty_copies_change_nothing(direction: Direction, empty: set[int] | float) -> None:
    with BoundPlan(make_plan(direction, Mixture.MIXED, 20, 3, empty=empty), HostRuntime()) as bound:
        bound.fill()
        copy_one_by_one(bound)
        assert bound.verify() == []
        image = bound.expected()
        assert sum(np.count_nonzero(bytes_ != CANVAS) for bytes_ in image.values()) == bound.plan.payload


def test_a_write_to_an_empty_copy_is_an_overrun() -> None:
    with BoundPlan(make_plan(Direction.D2H, Mixture.MIXED, 20, 3, empty={6}), HostRuntime()) as bound:
        bound.fill()
        copy_one_by_one(bound)
        ctypes.memset(int(bound.dsts[6]), 1, 2)
        (problem,) = bound.verify()
        assert isinstance(problem, GuardOverrun)
        assert (problem.offset, problem.length) == (int(bound.plan.dst_offsets[6]), 2)
        assert problem.after_descriptor == 6


@pytest.mark.parametrize("mixture", Mixture)
def test_131072_copies_and_sizes_up_to_4_mib(mixture: Mixture) -> None:
    for count, sizes in ((131_072, None), (3, (4 << 20, (4 << 20) - 1))):
        plan = make_plan(Direction.MIXED, mixture, count, 1, sizes=sizes, nbytes_limit=32 << 20)
        with BoundPlan(plan, HostRuntime()) as bound:
            bound.fill()
            assert len(bound.verify()) == min(20 * len(bound.expected()), count)
            copy_one_by_one(bound)
            assert bound.verify() == []
            end = int(bound.dsts[-1] + bound.sizes[-1])
            ctypes.memset(end, 0, 1)
            (problem,) = bound.verify()
            assert isinstance(problem, GuardOverrun)
            assert problem.after_descriptor == count - 1


def test_filling_again_wipes_the_destinations() -> None:
    with bind(count=5) as bound:
        copy_one_by_one(bound)
        bound.fill()
        assert len(bound.verify()) == 5
        copy_one_by_one(bound)
        assert bound.verify() == []


def test_two_copies_that_took_each_others_source_are_wrong() -> None:
    with bind(Direction.H2D, Mixture.UNIFORM) as bound:
        copy_one_by_one(bound)
        size = int(bound.sizes[0])
        ctypes.memmove(int(bound.dsts[0]), int(bound.srcs[1]), size)
        ctypes.memmove(int(bound.dsts[1]), int(bound.srcs[0]), size)
        found = bound.verify()
        assert [(type(problem), problem.descriptor) for problem in found] == [
            (WrongBytes, 0),
            (WrongBytes, 1),
        ]


def test_one_byte_too_many_is_an_overrun_behind_its_copy() -> None:
    with bind(Direction.D2H) as bound:
        copy_one_by_one(bound)
        ctypes.memmove(int(bound.dsts[7]), int(bound.srcs[7]), int(bound.sizes[7]) + 1)
        (problem,) = bound.verify()
        end = int(bound.plan.dst_offsets[7] + bound.sizes[7])
        assert isinstance(problem, GuardOverrun)
        assert (problem.buffer, problem.offset, problem.length) == ("host destination", end, 1)
        assert problem.after_descriptor == 7


def test_a_write_to_a_source_is_found() -> None:
    with bind(Direction.H2D) as bound:
        copy_one_by_one(bound)
        ctypes.memset(int(bound.srcs[2]), CANVAS, 4)
        (problem,) = bound.verify()
        assert isinstance(problem, GuardOverrun)
        assert (problem.buffer, problem.offset) == ("host source", int(bound.plan.src_offsets[2]))


def test_expected_is_what_the_descriptors_say() -> None:
    with bind() as bound:
        images = bound.expected()
        assert set(images) == {Place.HOST, Place.DEVICE}
        rows = zip(bound.plan.dst_places, bound.plan.dst_offsets, bound.srcs, bound.sizes, strict=True)
        for place, offset, src, size in rows:
            start = int(offset)
            source = ctypes.string_at(int(src), int(size))
            assert images[Place(place)][start : start + int(size)].tobytes() == source
        written = sum(np.count_nonzero(image != CANVAS) for image in images.values())
        assert written == bound.plan.payload


def test_close_frees_all_and_may_be_repeated() -> None:
    bound = bind()
    runtime = bound.memory
    assert len(runtime.live) == 4
    bound.close()
    bound.close()
    assert runtime.live == {}


def test_memory_that_cannot_be_had_leaves_none_behind() -> None:
    plan = make_plan(Direction.MIXED, Mixture.MIXED, 100, 0)
    runtime = HostRuntime(room=plan.nbytes - 1)
    with pytest.raises(CudaError, match="cudaMalloc returned CUDA error 2"):
        BoundPlan(plan, runtime)
    assert runtime.live == {}
