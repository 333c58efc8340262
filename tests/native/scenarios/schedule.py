"""When queued work runs, by the schedule that the environment names."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

from simulated import (
    NON_BLOCKING,
    ORDER_ANY,
    ORDER_DURING_API_CALL,
    ORDER_STREAM,
    Batch,
    Gate,
    Process,
    scenario,
)


def pinned(process: Process, size: int, value: int) -> int:
    address = process.runtime.out("cudaMallocHost", size)
    ctypes.memset(address, value, size)
    return address


def fill_host(process: Process, count: int) -> tuple[list[int], Callable[[], list[int]]]:
    """Queue a fill of one pinned byte on each of ``count`` streams; return the streams, and what arrived."""
    runtime = process.runtime
    bytes_at = pinned(process, count, 0)
    streams = [runtime.out("cudaStreamCreateWithFlags", NON_BLOCKING) for _ in range(count)]
    for index, stream in enumerate(streams):
        assert runtime.cudaMemsetAsync(bytes_at + index, 1, 1, stream) == 0
    return streams, lambda: list(ctypes.string_at(bytes_at, count))


@scenario
def what_ran_at_once(process: Process) -> list[list[int]]:
    """Which of 40 fills were done when the last call returned, and that all are when the device is idle."""
    _, arrived = fill_host(process, 40)
    at_once = arrived()
    assert process.runtime.cudaDeviceSynchronize() == 0
    return [at_once, arrived()]


@scenario
def nobody_waits(process: Process) -> list[int]:
    """Bytes that a program polls in memory come all the same."""
    _, arrived = fill_host(process, 10)
    while 0 in arrived():
        pass
    return arrived()


@scenario
def queries(process: Process) -> list[int]:
    """How many "not ready" answers each stream gives before its only work has run."""
    streams, arrived = fill_host(process, 40)
    counts = []
    for index, stream in enumerate(streams):
        counts.append(0)
        while process.runtime.cudaStreamQuery(stream) == 600:
            counts[index] += 1
        assert arrived()[index] == 1
    return counts


@scenario
def overlapping_copies(process: Process, rounds: int) -> list[int]:
    """Which of 8 copies of one batch to the same place came last, in each round."""
    runtime = process.runtime
    batch = Batch.build(process)
    source, target = pinned(process, 8, 0), pinned(process, 1, 0)
    for index in range(8):
        ctypes.memset(source + index, index, 1)
    batch.destinations, batch.sizes = [target] * 8, [1] * 8
    batch.sources = [source + index for index in range(8)]
    last = []
    for _ in range(rounds):
        code, _ = batch.submit(runtime.cudaMemcpyBatchAsync, nine=process.fail_index_is_taken)
        assert [code, runtime.cudaStreamSynchronize(batch.stream)] == [0, 0]
        last.append(ctypes.string_at(target, 1)[0])
    return last


def sources_by_order(process: Process, order: int, rounds: int) -> list[int]:
    """Batches behind a gate, their sources changed from 1 to 2 after the call: which value arrived."""
    runtime = process.runtime
    arrived = []
    for _ in range(rounds):
        batch = Batch.build(process)
        batch.attributes[0].order = order
        source, target = pinned(process, 1, 1), pinned(process, 1, 0)
        batch.sources, batch.destinations, batch.sizes = [source], [target], [1]
        gate = Gate()
        gate.close(process, batch.stream)
        code, _ = batch.submit(runtime.cudaMemcpyBatchAsync, nine=process.fail_index_is_taken)
        ctypes.memset(source, 2, 1)
        gate.open()
        assert [code, runtime.cudaStreamSynchronize(batch.stream)] == [0, 0]
        arrived.append(ctypes.string_at(target, 1)[0])
    return arrived


@scenario
def access_orders(process: Process, rounds: int) -> dict[str, list[int]]:
    orders = {"stream": ORDER_STREAM, "during the call": ORDER_DURING_API_CALL, "any": ORDER_ANY}
    return {name: sources_by_order(process, order, rounds) for name, order in orders.items()}


@scenario
def waits_reach_other_streams(process: Process, rounds: int) -> list[list[int]]:
    """Waiting for one stream runs what it waits for in another, and no more needs to have run there."""
    runtime = process.runtime
    found = []
    for _ in range(rounds):
        first, second = (runtime.out("cudaStreamCreateWithFlags", NON_BLOCKING) for _ in range(2))
        event = runtime.out("cudaEventCreateWithFlags", 2)
        target = pinned(process, 2, 0)
        codes = [
            runtime.cudaMemsetAsync(target, 1, 1, first),
            runtime.cudaEventRecord(event, first),
            runtime.cudaStreamWaitEvent(second, event, 0),
            runtime.cudaMemcpyAsync(target + 1, target, 1, 4, second),
            runtime.cudaStreamSynchronize(second),
        ]
        assert codes == [0] * 5
        found.append(list(ctypes.string_at(target, 2)))
    return found


def legacy_pairs(process: Process, order: Sequence[int]) -> int:
    """Write 1 and then 2 to one byte on the two streams, which wait for each other; return what stays."""
    runtime = process.runtime
    target = pinned(process, 1, 0)
    for value, stream in enumerate(order, start=1):
        assert runtime.cudaMemsetAsync(target, value, 1, stream) == 0
    assert runtime.cudaStreamSynchronize(order[-1]) == 0
    return ctypes.string_at(target, 1)[0]


@scenario
def legacy_stream_orders(process: Process, rounds: int) -> list[list[int]]:
    blocking = process.runtime.out("cudaStreamCreateWithFlags", 0)
    return [
        [legacy_pairs(process, (1, blocking)), legacy_pairs(process, (blocking, 1))] for _ in range(rounds)
    ]


@scenario
def calls_that_need_not_wait(process: Process, rounds: int) -> dict[str, Any]:
    """Synchronous calls whose work CUDA may still be doing when they return: how often it was done."""
    runtime = process.runtime
    source, target = (runtime.out("cudaMalloc", 1) for _ in range(2))
    seen = pinned(process, 1, 0)
    other = runtime.out("cudaStreamCreateWithFlags", NON_BLOCKING)
    pageable = ctypes.create_string_buffer(b"\x07", 1)

    def read_without_order(address: int) -> int:
        assert runtime.cudaMemcpyAsync(seen, address, 1, 2, other) == 0
        assert runtime.cudaStreamSynchronize(other) == 0
        return ctypes.string_at(seen, 1)[0]

    counts = {"fill": 0, "within the device": 0, "from pageable memory": 0, "to the host": 0}
    for _ in range(rounds):
        assert runtime.cudaMemset(target, 7, 1) == 0
        counts["fill"] += read_without_order(target) == 7
        assert [runtime.cudaMemset(source, 9, 1), runtime.cudaDeviceSynchronize()] == [0, 0]
        assert runtime.cudaMemcpy(target, source, 1, 3) == 0
        counts["within the device"] += read_without_order(target) == 9
        assert runtime.cudaDeviceSynchronize() == 0
        assert runtime.cudaMemcpy(target, ctypes.addressof(pageable), 1, 1) == 0
        counts["from pageable memory"] += read_without_order(target) == 7
        assert [runtime.cudaMemset(target, 5, 1), runtime.cudaMemcpy(seen, target, 1, 2)] == [0, 0]
        counts["to the host"] += ctypes.string_at(seen, 1)[0] == 5
        assert [runtime.cudaMemset(target, 0, 1), runtime.cudaDeviceSynchronize()] == [0, 0]
    return counts


@scenario
def starts(process: Process) -> list[int]:
    return [process.driver.cuInit(0), process.driver.cuInit(0)]
