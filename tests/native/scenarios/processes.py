"""Forks, threads, exits and load times."""

from __future__ import annotations

import mmap
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from simulated import Batch, Gate, Library, Process, Words, in_fork, readable_pages, scenario


def _threads() -> int:
    return len(list(Path("/proc/self/task").iterdir()))


@scenario
def threads_after_load(process: Process) -> list[int]:
    """Threads after loading, after a synchronous copy, and after the first asynchronous one."""
    runtime = process.runtime
    counts = [_threads()]
    device = runtime.out("cudaMalloc", 64)
    assert runtime.cudaMemset(device, 0, 64) == 0
    counts.append(_threads())
    assert runtime.cudaMemsetAsync(device, 0, 64, 0) == 0
    assert runtime.cudaDeviceSynchronize() == 0
    counts.append(_threads())
    return counts


@scenario
def fork_before_use(process: Process, version: int) -> dict[str, Any]:
    """Child and parent use CUDA after the fork; the environment set in the child decides there."""

    def use() -> list[Any]:
        batch = Batch.build(process)
        code, _ = batch.submit(process.runtime.cudaMemcpyBatchAsync, nine=process.fail_index_is_taken)
        return [code, batch.bytes_arrived(), process.runtime.out("cudaDriverGetVersion")]

    def use_with_version() -> list[Any]:
        os.environ["CUDABATCH_SIM_DRIVER"] = str(version)
        return use()

    assert process.runtime is not None
    return {"child": in_fork(use_with_version), "parent": use()}


@scenario
def fork_after_use(process: Process) -> dict[str, Any]:
    """As on a real driver: the child of a process that has used CUDA cannot use it."""
    batch = Batch.build(process)
    words = batch.words(Words([0]), nine=process.fail_index_is_taken)
    calls: tuple[Callable[[], int], ...] = (
        lambda: process.driver.cuInit(0),
        process.runtime.cudaDeviceSynchronize,
        lambda: process.runtime.cudaMemcpyBatchAsync(*words),
    )
    return {"child": in_fork(lambda: [made() for made in calls]), "parent": [made() for made in calls]}


@scenario
def exit_with_work(process: Process) -> str:
    """End the process while a stream still has work that never ends."""
    batch = Batch.build(process)
    gate = Gate()
    gate.close(process, batch.stream)
    assert process.runtime.cudaMemsetAsync(batch.device, 0, 64, batch.stream) == 0
    return "left"


@scenario
def exit_with_work_that_goes_on(process: Process) -> str:
    """Leave work that runs when the interpreter has ended, in C's exit handlers."""
    runtime, libc = process.runtime, Library(None)
    semaphore = registered = readable_pages(1)
    batch = Batch.build(process)
    assert runtime.cudaHostRegister(registered, mmap.PAGESIZE, 0) == 0
    assert libc.sem_init(semaphore, 0, 0) == 0
    assert runtime.cudaLaunchHostFunc(batch.stream, libc.address("sem_wait"), semaphore) == 0
    assert runtime.cudaMemcpyAsync(batch.device, registered, mmap.PAGESIZE, 1, batch.stream) == 0
    # The last one set runs first: the work may begin, and the process waits for it.
    assert libc.__cxa_atexit(runtime.address("cudaDeviceSynchronize"), 0, 0) == 0
    assert libc.__cxa_atexit(libc.address("sem_post"), semaphore, 0) == 0
    return "left"


@scenario
def load_seconds(process: Process) -> float:
    """Return the least time to load both libraries, each time in a fresh child, of ten."""

    def load() -> float:
        start = time.perf_counter()
        assert process.runtime is not None
        return time.perf_counter() - start

    return min(float(in_fork(load)) for _ in range(10))


@scenario
def driver_states(process: Process) -> dict[str, int]:
    """The driver API before cuInit, before a context, and after its release."""
    driver = process.driver
    word = Words([0])
    found = {"before cuInit": driver.cuMemAlloc_v2(word.address, 64), "flags": driver.cuInit(1)}
    found["cuInit"] = driver.cuInit(0)
    found["without context"] = driver.cuMemAlloc_v2(word.address, 64)
    process.start_driver()
    found["with context"] = driver.cuMemAlloc_v2(word.address, 64)
    found["release"] = driver.cuDevicePrimaryCtxRelease_v2(0)
    found["after release"] = driver.cuMemAlloc_v2(word.address, 64)
    found["second device"] = driver.cuDevicePrimaryCtxRetain(word.address, 1)
    return found
