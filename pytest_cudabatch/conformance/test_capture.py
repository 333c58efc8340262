"""F9, F25: a captured copy is in the graph or refused, and copies leave the captures of others alone."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_cudabatch import BatchCopy, Blame, PlanMaker, Runtime

MODES = {"global": 0, "thread-local": 1, "relaxed": 2}
"""cudaStreamCaptureMode."""

ANY_PATH = ("batch", "fallback", "none")
"""Under capture a batch may be refused, and single copies are right."""


@pytest.mark.cuda_cell(kind="F9", finding="capture-lost", pairings="class")
@pytest.mark.parametrize("mode", MODES)
def test_a_captured_copy_is_replayed_or_refused(
    batch_copy: BatchCopy,
    copy_plan: PlanMaker,
    cuda_runtime: Runtime,
    cuda_stream: int,
    mode: str,
) -> None:
    """A copy that was captured copies what the sources hold when the graph runs; else its call said no.

    The driver's batch call answers 900 and the capture goes on without it, so that an ignored code loses the
    copy and nothing tells (rmm 2518, cuopt 1753). The plan is first copied outside a capture.
    """
    plan = copy_plan("h2d", "uniform", 8, closest=True)
    batch_copy.check(plan, cuda_stream)
    late = plan.withhold_sources(cuda_runtime)

    cuda_runtime.begin_capture(cuda_stream, MODES[mode])
    code = batch_copy(plan, cuda_stream, announce=ANY_PATH)
    if code != 0:
        cuda_runtime.abandon_capture(cuda_stream)
        return
    graph = cuda_runtime.end_capture(cuda_stream)
    late.supply(cuda_stream)
    cuda_runtime.run_graph(graph, cuda_stream)

    batch_copy.check_bytes(plan, finding="capture-lost")


@pytest.mark.cuda_cell(kind="F25", finding="capture-lost", pairings="class")
@pytest.mark.parametrize("mode", MODES)
def test_a_copy_beside_a_capture(
    batch_copy: BatchCopy,
    copy_plan: PlanMaker,
    cuda_runtime: Runtime,
    cuda_stream: int,
    cuda_finding: Blame,
    mode: str,
) -> None:
    """A copy while another thread captures another stream: right bytes, and that capture ends well.

    Allocating, waiting for the device or querying events breaks captures of mode global (NCCL, torchcomms).
    What an implementation does once, at its first call, it has done before.
    """
    plan = copy_plan("h2d", "mixed", 40, closest=True)
    batch_copy.check(plan, cuda_stream)
    plan.fill()
    captured = cuda_runtime.stream_create()
    begun, copied = threading.Event(), threading.Event()
    ended: list[int] = []

    def capture() -> None:
        cuda_runtime.begin_capture(captured, MODES[mode])
        begun.set()
        copied.wait()
        ended.append(cuda_runtime.abandon_capture(captured))

    thread = threading.Thread(target=capture)
    thread.start()
    begun.wait()
    try:
        code = batch_copy(plan, cuda_stream)
    finally:
        copied.set()
        thread.join()
    cuda_runtime.stream_synchronize(cuda_stream)

    with cuda_finding("capture-lost"):
        assert (code, ended) == (0, [0])
    batch_copy.check_bytes(plan)
