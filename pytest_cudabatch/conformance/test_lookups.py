"""F5, F26: a look-up or a version query that fails is noticed, and the bytes are copied all the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_cudabatch import BatchCopy, Injector, PlanMaker

EITHER = ("batch", "fallback")
"""An implementation that does not ask what was made to fail may still use the batch call."""


@pytest.fixture
def lookup_answer(request: pytest.FixtureRequest, cuda_inject: Injector) -> str:
    """Let look-ups answer this from now on.

    Asked for after ``cuda_runtime``, which asks for versions itself, and before ``batch_copy``, since many
    implementations look up when they are loaded.
    """
    cuda_inject(f"lookup={request.param}")
    return str(request.param)


@pytest.fixture
def failing_query(request: pytest.FixtureRequest, cuda_inject: Injector) -> str:
    """Let version queries answer 35 from now on, in the same order as look-ups."""
    queries = ("driver-version", "runtime-version") if request.param == "both" else (request.param,)
    cuda_inject("; ".join(f"{query}=35" for query in queries))
    return str(request.param)


@pytest.mark.cuda_cell(kind="F5", finding="lookup-unchecked")
@pytest.mark.parametrize("lookup_answer", ["null", "500"], indirect=True)
@pytest.mark.usefixtures("cuda_runtime", "lookup_answer")
def test_a_failed_lookup_is_not_called(batch_copy: BatchCopy, copy_plan: PlanMaker, cuda_stream: int) -> None:
    """Success with NULL (vLLM, Fuser 4735) and an error must both lead to single copies."""
    batch_copy.check(copy_plan("h2d", "uniform", 8), cuda_stream, announce=EITHER)


@pytest.mark.cuda_cell(kind="F26", finding="no-driver-guard")
@pytest.mark.parametrize("failing_query", ["driver-version", "runtime-version", "both"], indirect=True)
@pytest.mark.usefixtures("cuda_runtime", "failing_query")
def test_a_version_query_that_fails_is_noticed(
    batch_copy: BatchCopy, copy_plan: PlanMaker, cuda_stream: int
) -> None:
    """The guard that asks for a version must not go on with a variable that nobody has written."""
    batch_copy.check(copy_plan("d2h", "mixed", 8, closest=True), cuda_stream, announce=EITHER)
