"""What an implementation can do: plans are made for it, and what it cannot take is named."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_cudabatch.abi import CudaVersion
from pytest_cudabatch.copies import Direction, Mixture, PagePlan
from pytest_cudabatch.implementations import ANYTHING, Capabilities, NotCapable, capabilities_of, load

PAGES = Capabilities(
    directions=("h2d", "d2h"), pages_only=True, empty_copies=False, special_streams=(0, 2), runtime_major=13
)


def refusal(direction: Direction, mixture: Mixture, count: int = 8, **more: Any) -> str:
    with pytest.raises(NotCapable) as caught:
        PAGES.plan(direction, mixture, count, 0, **more)
    return str(caught.value)


def test_who_says_nothing_takes_anything() -> None:
    assert capabilities_of(object()) is ANYTHING
    plan = ANYTHING.plan(Direction.MIXED, Mixture.MIXED, 9, 1, empty=(0,))
    assert (plan.direction, plan.count, int(plan.sizes[0])) == (Direction.MIXED, 9, 0)
    for stream in (0, 1, 2, 0x7F0000000000):
        ANYTHING.check_stream(stream)
    ANYTHING.check_runtime(CudaVersion(12, 6))


def test_what_is_said_must_be_capabilities() -> None:
    class Odd:
        capabilities = ("h2d",)

    with pytest.raises(TypeError, match="are no Capabilities"):
        capabilities_of(Odd())


def test_plans_that_cannot_be_taken_are_refused_with_the_reason() -> None:
    assert refusal(Direction.D2D, Mixture.UNIFORM) == "it copies h2d and d2h, not d2d"
    assert refusal(Direction.H2D, Mixture.MIXED) == "it copies pages of one size, not a mixture of sizes"
    assert refusal(Direction.H2D, Mixture.UNIFORM, empty=(1,)) == "it has no copies of no bytes"
    assert refusal(Direction.H2D, Mixture.UNIFORM, 0) == "it copies one page at least"
    side_by_side = refusal(Direction.H2D, Mixture.UNIFORM, sizes=[64], gaps=[0])
    assert side_by_side == "it copies pages of pools, and not such that lie side by side"


def test_the_closest_plan_is_taken_where_it_will_do() -> None:
    plan = PAGES.plan(Direction.MIXED, Mixture.MIXED, 40, 0, closest=True)
    assert isinstance(plan, PagePlan)
    assert (plan.direction, plan.mixture, plan.count) == (Direction.H2D, Mixture.UNIFORM, 40)
    assert PAGES.plan(Direction.D2H, Mixture.MIXED, 8, 0, closest=True).direction is Direction.D2H
    other = ANYTHING.plan(Direction.MIXED, Mixture.MIXED, 40, 0, closest=True)
    assert (other.direction, other.mixture) == (Direction.MIXED, Mixture.MIXED)


def test_pages_of_a_given_size() -> None:
    assert set(PAGES.plan(Direction.D2H, Mixture.UNIFORM, 4, 0, sizes=[4097]).sizes.tolist()) == {4097}


def test_gaps_make_a_packing_plan() -> None:
    plan = ANYTHING.plan(Direction.H2D, Mixture.MIXED, 50, 1, sizes=(128, 576), gaps=(0, 64))
    assert int(plan.dst_extents[1]) == plan.payload + 2 * 4096


def test_streams_and_runtimes() -> None:
    PAGES.check_stream(0)
    PAGES.check_stream(0x7F0000000000)
    with pytest.raises(NotCapable, match="its callers cannot name cudaStreamLegacy"):
        PAGES.check_stream(1)
    PAGES.check_runtime(CudaVersion(13, 5))
    with pytest.raises(NotCapable, match=r"brings libcudart.so.13, the pairing has 12.9"):
        PAGES.check_runtime(CudaVersion(12, 9))


@pytest.mark.parametrize(("name", "pages"), [("sgl-kernel", True), ("vllm", False)])
def test_adapters_are_described_without_their_packages(name: str, pages: bool) -> None:
    implementation = load(name)
    assert implementation.name == name
    assert capabilities_of(implementation).pages_only is pages
