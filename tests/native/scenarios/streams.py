"""Streams and events."""

from __future__ import annotations

import ctypes
from typing import Any

from simulated import NON_BLOCKING, SIZE_MAX, Batch, Gate, Process, in_fork, scenario


@scenario
def asynchrony(process: Process) -> dict[str, Any]:
    """A copy behind a closed gate: nothing has happened, and everything says so; then it opens."""
    runtime = process.runtime
    batch = Batch.build(process)
    gate, event = Gate(), runtime.out("cudaEventCreate")
    target = runtime.out("cudaMallocHost", 64)
    ctypes.memset(target, 0, 64)
    batch.destinations = [target]
    gate.close(process, batch.stream)
    code, _ = batch.submit(runtime.cudaMemcpyBatchAsync, nine=process.fail_index_is_taken)
    codes = [code, runtime.cudaEventRecord(event, batch.stream)]
    before = [runtime.cudaStreamQuery(batch.stream), runtime.cudaEventQuery(event)]
    bytes_before = ctypes.string_at(target, 64) == bytes(64)
    gate.open()
    after = [runtime.cudaStreamSynchronize(batch.stream), runtime.cudaStreamQuery(batch.stream)]
    after.append(runtime.cudaEventQuery(event))
    bytes_after = ctypes.string_at(target, 64) == ctypes.string_at(batch.sources[0], 64)
    return {"codes": codes, "before": before, "after": after, "bytes": [bytes_before, bytes_after]}


@scenario
def streams_are_independent(process: Process) -> dict[str, Any]:
    runtime = process.runtime
    held, free = (runtime.out("cudaStreamCreateWithFlags", NON_BLOCKING) for _ in range(2))
    device = runtime.out("cudaMalloc", 64)
    gate = Gate()
    gate.close(process, held)
    codes = [runtime.cudaMemsetAsync(device, 1, 64, free), runtime.cudaStreamSynchronize(free)]
    found = {"codes": codes, "held": runtime.cudaStreamQuery(held), "free": runtime.cudaStreamQuery(free)}
    gate.open()
    return {**found, "end": runtime.cudaDeviceSynchronize()}


@scenario
def legacy_stream_waits(process: Process, flags: int) -> list[int]:
    """Is work on the legacy stream held up by a stream with these flags? Asked by an event on it."""
    runtime = process.runtime
    held, event = runtime.out("cudaStreamCreateWithFlags", flags), runtime.out("cudaEventCreate")
    gate = Gate()
    gate.close(process, held)
    assert runtime.cudaEventRecord(event, 1) == 0
    if flags == NON_BLOCKING:
        assert runtime.cudaEventSynchronize(event) == 0
    before = runtime.cudaEventQuery(event)
    gate.open()
    after = [runtime.cudaStreamSynchronize(1), runtime.cudaEventQuery(event)]
    return [before, *after, runtime.cudaStreamSynchronize(held)]


@scenario
def wait_event(process: Process) -> dict[str, Any]:
    runtime = process.runtime
    first, second = (runtime.out("cudaStreamCreateWithFlags", NON_BLOCKING) for _ in range(2))
    event, gate = runtime.out("cudaEventCreate"), Gate()
    gate.close(process, first)
    codes = [runtime.cudaEventRecord(event, first), runtime.cudaStreamWaitEvent(second, event, 0)]
    codes.append(runtime.cudaEventDestroy(event))  # what was enqueued does not need the event any more
    before = runtime.cudaStreamQuery(second)
    gate.open()
    codes.append(runtime.cudaStreamSynchronize(second))
    return {
        "codes": codes,
        "before": before,
        "after": [runtime.cudaStreamQuery(stream) for stream in (first, second)],
    }


@scenario
def destroyed_with_work(process: Process) -> list[int]:
    """A destroyed stream's work still runs."""
    runtime = process.runtime
    stream, target = runtime.out("cudaStreamCreateWithFlags", NON_BLOCKING), runtime.out("cudaMallocHost", 64)
    gate = Gate()
    ctypes.memset(target, 0, 64)
    gate.close(process, stream)
    codes = [runtime.cudaMemsetAsync(target, 9, 64, stream), runtime.cudaStreamDestroy(stream)]
    before = ctypes.string_at(target, 1)[0]
    gate.open()
    return [*codes, before, runtime.cudaDeviceSynchronize(), ctypes.string_at(target, 1)[0]]


@scenario
def events(process: Process) -> dict[str, Any]:
    runtime = process.runtime
    start, end = runtime.out("cudaEventCreate"), runtime.out("cudaEventCreate")
    untimed = runtime.out("cudaEventCreateWithFlags", 2)
    milliseconds = ctypes.c_float(-1.0)
    address = ctypes.addressof(milliseconds)
    unrecorded = [runtime.cudaEventQuery(start), runtime.cudaEventElapsedTime(address, start, end)]
    codes = [runtime.cudaEventRecord(event, 0) for event in (start, end, untimed)]
    codes.append(runtime.cudaEventSynchronize(end))
    codes.append(runtime.cudaEventElapsedTime(address, start, end))
    return {
        "unrecorded": unrecorded,
        "codes": codes,
        "forwards": milliseconds.value >= 0,
        "untimed": runtime.cudaEventElapsedTime(address, start, untimed),
        "flags": [runtime.cudaEventCreateWithFlags(address, flags) for flags in (4, 8)],
        "destroyed": [
            runtime.cudaEventDestroy(end),
            runtime.cudaEventDestroy(end),
            runtime.cudaEventQuery(end),
        ],
    }


@scenario
def handles_are_read_only(process: Process) -> Any:
    def write() -> int:
        stream = process.runtime.out("cudaStreamCreate")
        ctypes.c_uint64.from_address(stream).value = SIZE_MAX
        return 0

    return in_fork(write)


@scenario
def many_streams(process: Process) -> dict[str, Any]:
    """More streams than there are handles, one after the other; the first one's handle is dead for long."""
    runtime = process.runtime
    seen = []
    for _ in range(17000):
        seen.append(runtime.out("cudaStreamCreate"))
        assert runtime.cudaStreamDestroy(seen[-1]) == 0
    return {"distinct": len(set(seen)), "first seen again at": seen.index(seen[0], 1)}
