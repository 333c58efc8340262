"""Byte equality with guard bytes, for every direction and mixture of sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_cudabatch import BatchCopy, PlanMaker, Runtime

COUNTS = (1, 1025, 4096)
"""One descriptor, one more than a reference chunk of 1,024, and several chunks."""


@pytest.mark.cuda_cell(kind="bytes")
@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("mixture", ["uniform", "mixed"])
@pytest.mark.parametrize("direction", ["h2d", "d2h", "d2d", "mixed"])
def test_bytes_match(
    batch_copy: BatchCopy,
    copy_plan: PlanMaker,
    cuda_runtime: Runtime,
    cuda_stream: int,
    direction: str,
    mixture: str,
    count: int,
) -> None:
    """Every destination holds its source's bytes, and nothing beside the destinations was written."""
    plan = copy_plan(direction, mixture, count, seed=count)

    code = batch_copy(plan, cuda_stream)
    cuda_runtime.stream_synchronize(cuda_stream)

    assert code == 0
    assert plan.verify() == []
