"""F7, F19, F22, F23: the fallback is taken where it should be, copies the same bytes, and loses no error."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_cudabatch import BatchCopy, Blame, EvidenceReader, Injector, PlanMaker, Runtime

INVALID_VALUE = 1
CALL_REQUIRES_NEWER_DRIVER = 36
NOT_SUPPORTED = 801


def answer_batches_with(inject: Injector, code: int) -> None:
    """Let the driver's batch functions answer ``code``, and a runtime's too if they are asked directly.

    A driver cannot answer 36, which is the runtime's own: so both are asked for.
    """
    inject(f"batch={code}; cudaMemcpyBatchAsync={code}")


@pytest.mark.cuda_cell(kind="F7")
@pytest.mark.parametrize("direction", ["h2d", "mixed"])
@pytest.mark.parametrize("code", [CALL_REQUIRES_NEWER_DRIVER, NOT_SUPPORTED])
def test_the_fallback_does_the_same_as_the_batch(
    batch_copy: BatchCopy,
    copy_plan: PlanMaker,
    cuda_stream: int,
    cuda_inject: Injector,
    cuda_finding: Blame,
    code: int,
    direction: str,
) -> None:
    """A driver that is too old (36) or does not support the call (801) leads to single copies, same bytes."""
    answer_batches_with(cuda_inject, code)
    with cuda_finding("no-driver-guard"):
        batch_copy.check(copy_plan(direction, "mixed", 50, closest=True), cuda_stream, announce=("fallback",))


@pytest.mark.cuda_cell(kind="F7", finding="masked-error")
def test_an_invalid_batch_is_no_reason_to_fall_back(
    batch_copy: BatchCopy,
    copy_plan: PlanMaker,
    cuda_stream: int,
    cuda_inject: Injector,
    cuda_evidence: EvidenceReader,
    cuda_finding: Blame,
) -> None:
    """Invalid value (1) is the caller's mistake: copying one by one would hide it."""
    plan = copy_plan("h2d", "uniform", 8)
    if batch_copy.expected_path(plan) != "batch":
        pytest.skip("the implementation announces no batch call on this pairing")
    answer_batches_with(cuda_inject, INVALID_VALUE)

    code = batch_copy(plan, cuda_stream, announce=("none",))

    with cuda_finding("silent-fallback"):
        assert cuda_evidence().batch_count > 0, "the batch call was announced but not made"
    assert code == INVALID_VALUE


@pytest.mark.cuda_cell(kind="F19", finding="silent-fallback", tier="smoke")
def test_the_announced_path_is_taken(
    batch_copy: BatchCopy, copy_plan: PlanMaker, cuda_stream: int, cuda_evidence: EvidenceReader
) -> None:
    """A test that never enters the batch path proves nothing about it: entries are counted."""
    plan = copy_plan("h2d", "uniform", 8)
    batch_copy.check(plan, cuda_stream)
    seen = cuda_evidence()
    entered = {"batch": seen.batch_count > 0, "fallback": seen.per_copy_count > 0, "none": True}
    assert entered[batch_copy.expected_path(plan)]
    assert seen.path.value == batch_copy.expected_path(plan)


@pytest.mark.cuda_cell(kind="F22", finding="unchecked-return")
@pytest.mark.parametrize("failing", [1, 3, 8])
def test_an_error_of_a_single_copy_is_returned(
    batch_copy: BatchCopy,
    copy_plan: PlanMaker,
    cuda_stream: int,
    cuda_inject: Injector,
    cuda_finding: Blame,
    failing: int,
) -> None:
    """The fallback loop looks at every return code: the first, one in the middle, and the last."""
    answer_batches_with(cuda_inject, NOT_SUPPORTED)
    cuda_inject(f"per-copy@{failing}={INVALID_VALUE}")

    code = batch_copy(copy_plan("h2d", "uniform", 8), cuda_stream, announce=("fallback",))

    with cuda_finding("no-driver-guard"):
        assert code != NOT_SUPPORTED, "the batch call's answer was returned; no copy was made one by one"
    assert code == INVALID_VALUE


@pytest.mark.cuda_cell(kind="F23", finding="error-left-behind")
@pytest.mark.parametrize("answer", ["none", "801"])
def test_a_handled_error_is_not_left_behind(
    batch_copy: BatchCopy,
    copy_plan: PlanMaker,
    cuda_runtime: Runtime,
    cuda_stream: int,
    cuda_inject: Injector,
    cuda_finding: Blame,
    answer: str,
) -> None:
    """After a copy that succeeded, cudaGetLastError is clear: torch's next launch check reads it."""
    if answer != "none":
        cuda_inject(f"batch={answer}")
    with cuda_finding("no-driver-guard"):
        batch_copy.check(copy_plan("h2d", "uniform", 8), cuda_stream, announce=("batch", "fallback"))
    assert cuda_runtime.last_error() == 0
