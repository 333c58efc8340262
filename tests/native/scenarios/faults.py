"""Faults of the simulated driver, as the environment asks for them."""

from __future__ import annotations

import ctypes
import time
from typing import Any

from simulated import NON_BLOCKING, Batch, Process, Words, in_fork, scenario

SIZES = (128, 256)


def submit(process: Process, batch: Batch) -> int:
    return batch.submit(process.runtime.cudaMemcpyBatchAsync, nine=process.fail_index_is_taken)[0]


def batch_of(process: Process, count: int, *, mixed: bool = False, to_device: bool = True) -> Batch:
    """Make a batch of small copies, of one size or two, all from and to the same places."""
    batch = Batch.build(process)
    host, device = batch.pinned, batch.device
    source, destination = (host, device) if to_device else (device, host)
    batch.sources, batch.destinations = [source] * count, [destination] * count
    batch.sizes = [SIZES[index % 2 if mixed else 0] for index in range(count)]
    return batch


@scenario
def codes_of_batches(process: Process, calls: int) -> list[Any]:
    """Codes of several batches of one copy, what the first byte was after each, and the last error then."""
    runtime, found = process.runtime, []
    batch = Batch.build(process)
    batch.destinations = [runtime.out("cudaMallocHost", 64)]
    for _ in range(calls):
        ctypes.memset(batch.destinations[0], 0, 64)
        ctypes.memset(batch.sources[0], 7, 64)
        code = submit(process, batch)
        synchronised = runtime.cudaStreamSynchronize(batch.stream)
        first = ctypes.string_at(batch.destinations[0], 1)[0]
        found.append([code, synchronised, first, runtime.cudaGetLastError()])
    return found


@scenario
def codes_of_single_copies(process: Process, calls: int) -> list[int]:
    runtime = process.runtime
    stream = runtime.out("cudaStreamCreateWithFlags", NON_BLOCKING)
    to, source = runtime.out("cudaMalloc", 8), runtime.out("cudaMallocHost", 8)
    return [runtime.cudaMemcpyAsync(to, source, 8, 1, stream) for _ in range(calls)]


@scenario
def codes_of_allocations(process: Process) -> list[int]:
    word = Words([0])
    runtime = process.runtime
    return [
        runtime.cudaMalloc(word.address, 8),
        runtime.cudaMallocHost(word.address, 8),
        runtime.cudaMalloc(word.address, 8),
    ]


@scenario
def lost(process: Process) -> list[int]:
    """What is answered after the context was lost, also for good."""
    runtime = process.runtime
    batch = Batch.build(process)
    return [
        submit(process, batch),
        submit(process, batch),
        runtime.cudaDeviceSynchronize(),
        runtime.cudaMalloc(Words([0]).address, 8),
        runtime.cudaGetLastError(),
    ]


@scenario
def ends_of_kinds(process: Process, counts: list[int]) -> dict[str, Any]:
    """How a process ends that makes one batch of each kind."""
    found: dict[str, Any] = {}
    assert process.runtime is not None  # loaded, not used: what follows is a fork before the first use
    for count in counts:
        for name, options in {
            "uniform": {},
            "mixed": {"mixed": True},
            "mixed, to the host": {"mixed": True, "to_device": False},
        }.items():
            found[f"{count} {name}"] = in_fork(
                lambda o=options, c=count: submit(process, batch_of(process, c, **o))
            )
    return found


@scenario
def crashes_at_a_rate(process: Process, forks: int, calls: int) -> list[Any]:
    """After how many mixed batches each of several processes crashed, told by a byte of shared memory."""
    assert process.runtime is not None
    libc = ctypes.CDLL(None)
    libc.mmap.restype = ctypes.c_void_p
    shared = libc.mmap(None, ctypes.c_size_t(4096), 3, 0x21, -1, ctypes.c_long(0))

    def work() -> int:
        batch = batch_of(process, 1025, mixed=True)
        for _ in range(calls):
            ctypes.c_uint8.from_address(shared).value += 1
            submit(process, batch)
        return 0

    found = []
    for _ in range(forks):
        ctypes.memset(shared, 0, 1)
        ended = in_fork(work)
        found.append([ended, ctypes.c_uint8.from_address(shared).value])
    return found


@scenario
def lateness(process: Process) -> dict[str, Any]:
    """How long the call of a batch takes, and the wait for it, in milliseconds."""
    batch = Batch.build(process)
    start = time.monotonic()
    code = submit(process, batch)
    called = time.monotonic()
    assert process.runtime.cudaStreamSynchronize(batch.stream) == 0
    return {"code": code, "call": (called - start) * 1e3, "wait": (time.monotonic() - called) * 1e3}
