"""F12: pages of host memory that is registered piece by piece."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_cudabatch import BatchCopy, PlanMaker, Runtime


@pytest.mark.cuda_cell(kind="F12", finding="straddles-registration", pairings="class")
def test_pages_that_meet_at_the_border_of_two_registrations(
    batch_copy: BatchCopy, copy_plan: PlanMaker, cuda_runtime: Runtime, cuda_stream: int
) -> None:
    """Neighbours in both memories, each within its registration, are copied; merged they would be refused.

    Two registrations side by side are two for the driver, whatever the addresses say (sglang 26691, 36798).
    """
    plan = copy_plan.across_registrations(cuda_runtime, 16, 4096)
    batch_copy.check(plan, cuda_stream)
