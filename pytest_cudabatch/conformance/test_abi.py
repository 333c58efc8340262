"""F1, F2: the parameter list that is passed is the one that the called function has."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_cudabatch import BatchCopy, BoundPlan, EvidenceReader, PlanMaker, Runtime


@pytest.mark.cuda_cell(kind="F1", tier="smoke")
def test_callee_receives_what_the_caller_passed(
    batch_copy: BatchCopy,
    copy_plan: PlanMaker,
    cuda_runtime: Runtime,
    cuda_stream: int,
    cuda_evidence: EvidenceReader,
) -> None:
    """The loaded library's own parameter list is used, whatever the driver's version is.

    That a call did not crash is no proof: given and taken parameters are compared from evidence, and what
    stood in the stream's place must be a stream: the one that was passed, or one of the implementation's. A
    shim has the list that it passes on; what it calls in turn is held against what that takes.
    """
    plan = copy_plan("h2d", "uniform", 8)

    code = batch_copy(plan, cuda_stream)
    cuda_runtime.stream_synchronize(cuda_stream)

    assert code == 0
    evidence = cuda_evidence()
    calls = evidence.batch_calls()
    taken = [call.given if call.owner == "shim" else call.taken for call in calls]
    assert [call.given for call in calls] == taken
    assert None not in {call.stream for call in calls}
    assert evidence.mismatches == ()
    batch_copy.check_bytes(plan)


@pytest.mark.cuda_cell(kind="F2")
def test_choice_holds_for_later_calls_and_other_threads(
    batch_copy: BatchCopy,
    copy_plan: PlanMaker,
    cuda_runtime: Runtime,
    cuda_stream: int,
    cuda_evidence: EvidenceReader,
) -> None:
    """A function that was looked up once is called right each time, also from another thread.

    Choices made at compile time or cached by a JIT show as a second call, or a call from a thread that
    did not do the look-up, with another parameter list.
    """
    plans = [copy_plan("h2d", "uniform", 4, seed=seed) for seed in range(3)]
    codes = []

    def call_and_wait(plan: BoundPlan) -> None:
        codes.append(batch_copy(plan, cuda_stream))
        cuda_runtime.stream_synchronize(cuda_stream)

    for plan in plans[:2]:
        call_and_wait(plan)

    def call_in_thread() -> None:
        cuda_runtime.set_device(0)  # what comes of a thread without a context is another case (F24)
        call_and_wait(plans[2])

    thread = threading.Thread(target=call_in_thread)
    thread.start()
    thread.join()

    assert codes == [0, 0, 0]
    evidence = cuda_evidence()
    calls = evidence.batch_calls()
    assert None not in [call.given for call in calls]
    assert evidence.mismatches == ()
    assert len({call.given for call in calls}) <= 1
    for plan in plans:
        batch_copy.check_bytes(plan)
