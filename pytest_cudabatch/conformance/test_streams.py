"""F8: right bytes on every kind of stream, the default ones included."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_cudabatch import BatchCopy, PlanMaker, Runtime

SPECIAL_STREAMS = {"null": 0x0, "legacy": 0x1, "per-thread": 0x2}
"""Handles that no call creates: 0, cudaStreamLegacy and cudaStreamPerThread (driver_types.h)."""


@pytest.mark.cuda_cell(kind="F8", finding="legacy-stream")
@pytest.mark.parametrize("stream", SPECIAL_STREAMS)
def test_special_streams(
    batch_copy: BatchCopy, copy_plan: PlanMaker, cuda_runtime: Runtime, stream: str
) -> None:
    """The driver's batch call rejects 0 and 0x1 (vLLM 46345, NCCL 2003); copies on them must work."""
    handle = SPECIAL_STREAMS[stream]
    plan = copy_plan("mixed", "mixed", 40, closest=True)
    batch_copy.check(plan, handle, announce=("batch", "fallback"))
    cuda_runtime.device_synchronize()
    batch_copy.check_bytes(plan)


@pytest.mark.cuda_cell(kind="F8")
def test_a_blocking_stream(batch_copy: BatchCopy, copy_plan: PlanMaker, cuda_runtime: Runtime) -> None:
    """A stream that is ordered with the legacy default stream takes batches like any other."""
    stream = cuda_runtime.stream_create(non_blocking=False)
    batch_copy.check(copy_plan("h2d", "mixed", 20, closest=True), stream)
    cuda_runtime.stream_destroy(stream)
