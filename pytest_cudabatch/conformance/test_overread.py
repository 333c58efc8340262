"""F16: nobody reads behind the arrays that describe a batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_cudabatch import BatchCopy, PlanMaker


@pytest.mark.cuda_cell(kind="F16", finding="overread", pairings="class")
@pytest.mark.parametrize("count", [1, 8])
def test_nothing_is_read_behind_the_arrays(
    batch_copy: BatchCopy, copy_plan: PlanMaker, cuda_stream: int, count: int
) -> None:
    """Behind the last destination, source and size lies a page that may not be touched.

    Whether a driver reads attributes behind numAttrs (vLLM 53971) is asked by test_contract.py's row
    one-index-before-a-hole.
    """
    plan = copy_plan("h2d", "uniform", count, closest=True)
    plan.end_arrays_at_a_hole()
    batch_copy.check(plan, cuda_stream)
