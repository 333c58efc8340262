"""F5, F26: a look-up or a version query that fails is noticed, and the bytes are copied all the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_cudabatch import BatchCopy, Injector, PlanMaker

EITHER = ("batch", "fallback")
"""An implementation that does not ask what was made to fail may still use the batch call."""


@pytest.mark.cuda_cell(kind="F5", finding="lookup-unchecked")
@pytest.mark.parametrize("answer", ["null", "500"])
def test_a_failed_lookup_is_not_called(
    batch_copy: BatchCopy,
    copy_plan: PlanMaker,
    cuda_stream: int,
    cuda_inject: Injector,
    answer: str,
) -> None:
    """Success with NULL (vLLM, Fuser 4735) and an error must both lead to single copies."""
    cuda_inject(f"lookup={answer}")
    batch_copy.check(copy_plan("h2d", "uniform", 8), cuda_stream, announce=EITHER)


@pytest.mark.cuda_cell(kind="F26", finding="no-driver-guard")
@pytest.mark.parametrize("query", ["driver-version", "runtime-version", "both"])
def test_a_version_query_that_fails_is_noticed(
    batch_copy: BatchCopy,
    copy_plan: PlanMaker,
    cuda_stream: int,
    cuda_inject: Injector,
    query: str,
) -> None:
    """The guard that asks for a version must not go on with a variable that nobody has written."""
    cuda_inject("driver-version=35; runtime-version=35" if query == "both" else f"{query}=35")
    batch_copy.check(copy_plan("d2h", "mixed", 8, closest=True), cuda_stream, announce=EITHER)
