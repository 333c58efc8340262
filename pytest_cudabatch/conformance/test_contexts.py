"""F24: the stream says where copies run, whatever is current in the thread that asks for them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_cudabatch import BatchCopy, BoundPlan, GateMaker, PlanMaker, Runtime

ANY_PATH = ("batch", "fallback", "none")


class Delayed:
    """Copies whose sources a stream supplies only when its gate opens, long after the call."""

    def __init__(self, batch_copy: BatchCopy, runtime: Runtime, gate: GateMaker, stream: int) -> None:
        self.batch_copy = batch_copy
        self.runtime = runtime
        self.gate = gate
        self.stream = stream

    def copy(self, plan: BoundPlan, around: Callable[[Callable[[], int]], int]) -> int:
        """Let ``around`` make the call, wait for the stream and return the code."""
        late = plan.withhold_sources(self.runtime)
        self.gate(self.stream)
        late.supply(self.stream)
        code = around(lambda: self.batch_copy(plan, self.stream, announce=ANY_PATH))
        self.runtime.stream_synchronize(self.stream)
        return code

    def check(self, plan: BoundPlan) -> None:
        """Make the call plainly, so that what is wrong already then is not laid to the context."""
        assert self.copy(plan, lambda call: call()) == 0
        self.batch_copy.check_bytes(plan, finding="missing-order")


@pytest.mark.cuda_cell(kind="F24", finding="wrong-context", pairings="class")
def test_a_thread_that_has_made_no_call(
    batch_copy: BatchCopy,
    copy_plan: PlanMaker,
    cuda_runtime: Runtime,
    cuda_stream: int,
    cuda_gate: GateMaker,
) -> None:
    """A new thread has no context yet, and the driver calls a batch in it invalid (1)."""
    plan = copy_plan("d2h", "mixed", 20, closest=True)
    delayed = Delayed(batch_copy, cuda_runtime, cuda_gate, cuda_stream)
    delayed.check(plan)

    def in_thread(call: Callable[[], int]) -> int:
        codes: list[int] = []
        thread = threading.Thread(target=lambda: codes.append(call()))
        thread.start()
        thread.join()
        return codes[0]

    assert delayed.copy(plan, in_thread) == 0
    batch_copy.check_bytes(plan, finding="wrong-context")


@pytest.mark.cuda_cell(kind="F24", finding="wrong-context", pairings="class", devices=2, alone=True)
def test_another_device_is_current(
    batch_copy: BatchCopy, copy_plan: PlanMaker, cuda_runtime: Runtime, cuda_gate: GateMaker
) -> None:
    """Stream and memory are the second device's, the first is current: right bytes, or an error."""
    cuda_runtime.set_device(1)
    stream = cuda_runtime.stream_create()
    plan = copy_plan("d2h", "mixed", 20, closest=True)
    delayed = Delayed(batch_copy, cuda_runtime, cuda_gate, stream)
    delayed.check(plan)

    def on_the_first(call: Callable[[], int]) -> int:
        cuda_runtime.set_device(0)
        try:
            return call()
        finally:
            cuda_runtime.set_device(1)

    if delayed.copy(plan, on_the_first) == 0:
        batch_copy.check_bytes(plan, finding="wrong-context")
    cuda_runtime.stream_destroy(stream)
