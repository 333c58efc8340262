"""F10: what queued copies still read is neither freed nor used again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_cudabatch import BatchCopy, GateMaker, PlanMaker, Runtime


@pytest.mark.cuda_cell(kind="F10", finding="source-freed-early", pairings="class")
@pytest.mark.parametrize("direction", ["h2d", "mixed"])
def test_batches_in_flight_share_nothing(
    batch_copy: BatchCopy,
    copy_plan: PlanMaker,
    cuda_runtime: Runtime,
    cuda_stream: int,
    cuda_gate: GateMaker,
    direction: str,
) -> None:
    """Two batches wait on a stream that is held up; neither call may touch what the other's copies need.

    Bounce buffers, descriptor lists and host sources of an implementation live until the stream has passed
    the copies, not until the call returns (cuDF 23517, 23561; rmm 2521, 2526). Each plan is first copied
    with nothing under way, so that bytes which are wrong only now tell of the lifetime.
    """
    plans = [copy_plan(direction, "mixed", 40, seed=seed, closest=True) for seed in (1, 2)]
    for plan in plans:
        batch_copy.check(plan, cuda_stream)
        plan.fill()

    cuda_gate(cuda_stream)
    codes = [batch_copy(plan, cuda_stream) for plan in plans]
    cuda_runtime.stream_synchronize(cuda_stream)

    assert codes == [0, 0]
    for plan in plans:
        batch_copy.check_bytes(plan, finding="source-freed-early")
