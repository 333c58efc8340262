"""What a thread may do that has no current context."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from simulated import UNTOUCHED, Batch, Process, Words, in_fork, scenario

T = TypeVar("T")


def in_new_thread(work: Callable[[], T]) -> T:
    """Run ``work`` in a thread that CUDA has not seen yet."""
    results: list[T] = []
    thread = threading.Thread(target=lambda: results.append(work()))
    thread.start()
    thread.join()
    return results[0]


def current_context(process: Process) -> int:
    return process.driver.out("cuCtxGetCurrent")


@scenario
def driver_without_context(process: Process, entry: str, nine: bool) -> dict[str, Any]:
    """Use the driver in a new thread: a batch, single copies, and the context of a stream."""
    batch = Batch.build(process)
    primary = current_context(process)
    driver, live = process.driver, batch.stream
    to, source = batch.destinations[0], batch.sources[0]

    def copy_on(stream: int) -> int:
        return driver.cuMemcpyAsync(to, source, 64, stream)

    def context_of(stream: int, function: str = "cuStreamGetCtx") -> list[Any]:
        found, green = Words([UNTOUCHED]), Words([UNTOUCHED])
        code = getattr(driver, function)(stream, found.address, green.address)
        return [code, "primary" if found[0] == primary else found[0], green[0]]

    def use() -> dict[str, Any]:
        before = current_context(process)
        return {
            "batch": batch.submit(getattr(driver, entry), nine=nine),
            "copies": [copy_on(stream) for stream in (live, 0, 1, 2)],
            "synchronous copy": driver.cuMemcpy(to, source, 64),
            "fills": [driver.cuMemsetD8Async(to, 0, 64, stream) for stream in (live, 0)],
            "contexts": [context_of(stream) for stream in (live, 0, 2)],
            "second form": [context_of(stream, "cuStreamGetCtx_v2") for stream in (live, 0)],
            "current": [before, current_context(process)],
        }

    return in_new_thread(use)


@scenario
def context_is_borrowed(process: Process, entry: str, nine: bool) -> dict[str, Any]:
    """What a library can do about it: make the stream's context current for the call."""
    batch = Batch.build(process)
    driver = process.driver

    def use() -> tuple[int, int]:
        context = Words([0])
        assert driver.cuStreamGetCtx(batch.stream, context.address) == 0
        assert driver.cuCtxSetCurrent(context[0]) == 0
        return batch.submit(getattr(driver, entry), nine=nine)

    return {"answer": in_new_thread(use), "arrived": batch.bytes_arrived()}


@scenario
def runtime_gives_context(process: Process) -> list[Any]:
    """The runtime's first call in a thread makes the primary context current, whatever it is."""
    runtime = process.runtime
    primary_of_main = (runtime.cudaDeviceSynchronize(), current_context(process))[1]

    def use() -> list[bool]:
        return [
            current_context(process) == 0,
            runtime.cudaDeviceSynchronize() == 0,
            current_context(process) == primary_of_main,
        ]

    return in_new_thread(use)


@scenario
def wrong_abi_without_context(process: Process, entry: str, nine: bool) -> Any:
    """A false stream faults before the thread's missing context could be noticed."""

    def wrong() -> int:
        batch = Batch.build(process)
        words = batch.words(Words([0]), nine=nine)
        return in_new_thread(lambda: getattr(process.driver, entry)(*words, 0xDEAD << 48))

    return in_fork(wrong)


@scenario
def context_of_dead_stream(process: Process) -> Any:
    def work() -> int:
        driver = process.start_driver()
        stream = driver.out("cuStreamCreate", 1)
        assert driver.cuStreamDestroy_v2(stream) == 0
        return driver.cuStreamGetCtx(stream, ctypes.addressof(ctypes.c_uint64()))

    return in_fork(work)
