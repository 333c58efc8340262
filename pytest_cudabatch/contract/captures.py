"""Captures that rows need: of the call's own stream, or of another one, by this thread or by another."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

from pytest_cudabatch.contract.bench import Bench
from pytest_cudabatch.contract.words import Words
from pytest_cudabatch.errors import CudaError

__all__ = ["Beside", "begin_capture", "captured_beside", "end_capture", "launch"]


@dataclass
class Beside:
    """What became of another stream's capture; None where there was none."""

    end_capture: int | None = None


def begin_capture(bench: Bench, stream: int, mode: int) -> None:
    """Begin a capture. Raises CudaError."""
    code = bench.call("cudaStreamBeginCapture", stream, mode)
    if code != 0:
        raise CudaError("cudaStreamBeginCapture", code)


def end_capture(bench: Bench, stream: int) -> tuple[int, int]:
    """End a capture; return the code and the graph, which is the caller's, or 0. Leaves no last error."""
    graph = Words([0])
    code = bench.call("cudaStreamEndCapture", stream, graph.address)
    bench.runtime.last_error()
    return code, graph[0]


@contextmanager
def captured_beside(bench: Bench, wanted: tuple[int, bool] | None) -> Iterator[Beside]:
    """Have a stream of its own captured in a mode, by another thread or by this one, while the block runs."""
    found = Beside()
    if wanted is None:
        yield found
        return
    mode, elsewhere = wanted
    stream = bench.new_stream()
    with ThreadPoolExecutor(1) as other:
        if elsewhere:
            other.submit(begin_capture, bench, stream, mode).result()
            yield found
            found.end_capture, graph = other.submit(end_capture, bench, stream).result()
        else:
            begin_capture(bench, stream, mode)
            yield found
            found.end_capture, graph = end_capture(bench, stream)
    if graph:
        bench.call("cudaGraphDestroy", graph)
    bench.runtime.stream_destroy(stream)


def launch(bench: Bench, graph: int, stream: int) -> int:
    """Run a graph once and wait for it; return the first code that is not 0."""
    executable = Words([0])
    code = bench.call("cudaGraphInstantiateWithFlags", executable.address, graph, 0)
    if code == 0:
        code = bench.call("cudaGraphLaunch", executable[0], stream)
        code = bench.call("cudaStreamSynchronize", stream) or code
        bench.call("cudaGraphExecDestroy", executable[0])
    bench.runtime.last_error()
    return code
