"""F11: copies come after what was queued before them, and before what is queued behind or waits for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_cudabatch import BatchCopy, GateMaker, PlanMaker, Runtime

ROUNDS = 8
"""Copies that nobody waits for may be quick all the same; how often they get the chance to be late."""


@pytest.mark.cuda_cell(kind="F11", finding="missing-order", pairings="class")
@pytest.mark.parametrize("direction", ["h2d", "d2h", "d2d"])
def test_copies_stand_in_stream_order(
    batch_copy: BatchCopy,
    copy_plan: PlanMaker,
    cuda_runtime: Runtime,
    cuda_stream: int,
    cuda_gate: GateMaker,
    direction: str,
) -> None:
    """Fill, copy, refill, on a stream that is held up: the copies take what the fill wrote (vLLM 45704).

    Sources hold other bytes at the call, and get them again behind the copies. The plan is first copied with
    nothing under way, so that bytes which are wrong only now tell of the order.
    """
    plan = copy_plan(direction, "mixed", 40, closest=True)
    batch_copy.check(plan, cuda_stream)
    late = plan.withhold_sources(cuda_runtime)

    cuda_gate(cuda_stream)
    late.supply(cuda_stream)
    code = batch_copy(plan, cuda_stream)
    late.spoil(cuda_stream)
    late.supply(cuda_stream)
    cuda_runtime.stream_synchronize(cuda_stream)

    assert code == 0
    batch_copy.check_bytes(plan, finding="missing-order")


@pytest.mark.cuda_cell(kind="F11", finding="early-return", pairings="class")
@pytest.mark.parametrize("direction", ["h2d", "d2h"])
def test_synchronising_the_stream_is_enough(
    batch_copy: BatchCopy, copy_plan: PlanMaker, cuda_stream: int, direction: str
) -> None:
    """When the stream that was passed is idle the bytes are there, wherever the copies were made."""
    plan = copy_plan(direction, "uniform", 200, sizes=[16384], closest=True)
    for _ in range(ROUNDS):
        batch_copy.check(plan, cuda_stream)
        plan.fill()
