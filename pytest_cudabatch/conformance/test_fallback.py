"""F7, F19, F22, F23: the fallback is taken where it should be, copies the same bytes, and loses no error."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_cudabatch import copy_one_by_one

if TYPE_CHECKING:
    from pytest_cudabatch import BatchCopy, Blame, BoundPlan, EvidenceReader, Injector, PlanMaker, Runtime

INVALID_VALUE = 1
CALL_REQUIRES_NEWER_DRIVER = 36
NOT_SUPPORTED = 801

SPECIAL_STREAMS = {"null": 0x0, "legacy": 0x1, "per-thread": 0x2}
"""Handles that no call creates: 0, cudaStreamLegacy and cudaStreamPerThread (driver_types.h)."""


def answer_batches_with(inject: Injector, code: int) -> None:
    """Let the driver's batch functions answer ``code``, and a runtime's too if they are asked directly.

    A driver cannot answer 36, which is the runtime's own: so both are asked for.
    """
    inject(f"batch={code}; cudaMemcpyBatchAsync={code}")


def refused_copy(
    batch_copy: BatchCopy, plan: BoundPlan, stream: int, seen: EvidenceReader, blame: Blame, code: int
) -> int:
    """Copy while batches are answered with ``code``; fail where the implementation has no fallback."""
    before = seen().per_copy_count
    returned = batch_copy(plan, stream, announce=("fallback",))
    with blame("no-driver-guard"):
        assert returned != code or seen().per_copy_count > before, (
            f"{batch_copy.implementation.name} has no fallback: it returned the batch call's {code}"
        )
    return returned


@pytest.mark.cuda_cell(kind="F7")
@pytest.mark.parametrize(
    ("stream", "code"),
    [
        ("non-blocking", CALL_REQUIRES_NEWER_DRIVER),
        ("non-blocking", NOT_SUPPORTED),
        ("null", NOT_SUPPORTED),
        ("legacy", CALL_REQUIRES_NEWER_DRIVER),
        ("per-thread", NOT_SUPPORTED),
    ],
)
def test_the_fallback_does_the_same_as_the_batch(
    batch_copy: BatchCopy,
    copy_plan: PlanMaker,
    cuda_runtime: Runtime,
    cuda_stream: int,
    cuda_inject: Injector,
    cuda_evidence: EvidenceReader,
    cuda_finding: Blame,
    stream: str,
    code: int,
) -> None:
    """One plan, copied as usual, with batches refused, and by the oracle: all bytes are the same.

    A driver that is too old answers 36, one that does not support the call 801. Nothing is asked of the
    implementation but a fallback: it is driven from outside.
    """
    handle = SPECIAL_STREAMS.get(stream, cuda_stream)
    plan = copy_plan("mixed", "mixed", 50, closest=True)

    def settle_and_check() -> None:
        cuda_runtime.device_synchronize()
        batch_copy.check_bytes(plan)

    with cuda_finding("legacy-stream" if stream in ("null", "legacy") else "no-driver-guard"):
        batch_copy.check(plan, handle, announce=(batch_copy.expected_path(plan), "fallback"))
    settle_and_check()

    plan.fill()
    answer_batches_with(cuda_inject, code)
    returned = refused_copy(batch_copy, plan, handle, cuda_evidence, cuda_finding, code)
    with cuda_finding("no-driver-guard"):
        assert returned == 0, f"the fallback of {batch_copy.implementation.name} returned {returned}"
    settle_and_check()

    plan.fill()
    copy_one_by_one(plan)
    settle_and_check()


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
    cuda_evidence: EvidenceReader,
    cuda_finding: Blame,
    failing: int,
) -> None:
    """The fallback loop looks at every return code: the first, one in the middle, and the last."""
    answer_batches_with(cuda_inject, NOT_SUPPORTED)
    cuda_inject(f"per-copy@{failing}={INVALID_VALUE}")
    plan = copy_plan("h2d", "uniform", 8)

    code = refused_copy(batch_copy, plan, cuda_stream, cuda_evidence, cuda_finding, NOT_SUPPORTED)

    copies = cuda_evidence().per_copy_count
    if copies < failing:
        pytest.skip(f"the fallback made {copies} single copies of 8: none is number {failing}")
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
