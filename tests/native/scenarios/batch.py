"""The batch call: its contract, its wrong callers, and when it reads its sources."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from batch_cases import CASES
from simulated import LITTER, UNTOUCHED, Attributes, Batch, Gate, Process, Words, in_fork, scenario

REPEATS = 20
STREAM, DURING_API_CALL = 1, 2


def batch_function(process: Process, entry: str) -> Callable[..., int]:
    runtime = process.runtime  # always: it makes the context current
    return runtime.cudaMemcpyBatchAsync if entry == "runtime" else getattr(process.driver, entry)


def _answer(process: Process, name: str, nine: bool, entry: str) -> dict[str, Any]:
    batch = Batch.build(process)
    CASES[name](batch)
    runtime = process.runtime
    code, fail_index = batch.submit(batch_function(process, entry), nine=nine)
    errors = [runtime.cudaPeekAtLastError(), runtime.cudaGetLastError(), runtime.cudaGetLastError()]
    arrived = batch.bytes_arrived() if code == 0 else None
    return {"code": code, "fail_index": fail_index, "last_errors": errors, "arrived": arrived}


@scenario
def batch_contract(process: Process, nine: bool, entry: str) -> dict[str, Any]:
    assert process.runtime is not None  # loaded, not used: what follows is a fork before the first use
    return {name: in_fork(partial(_answer, process, name, nine, entry)) for name in CASES}


@scenario
def batch_per_thread_entry(process: Process, nine: bool) -> tuple[int, int]:
    batch = Batch.build(process)
    batch.stream = 0
    return batch.submit(process.runtime.cudaMemcpyBatchAsync_ptsz, nine=nine)


@scenario
def batch_from_thread(process: Process, nine: bool) -> dict[str, Any]:
    batch = Batch.build(process)
    codes: list[int] = []
    function = process.runtime.cudaMemcpyBatchAsync
    thread = threading.Thread(target=lambda: codes.append(batch.submit(function, nine=nine)[0]))
    thread.start()
    thread.join()
    return {"code": codes[0], "arrived": batch.bytes_arrived()}


@scenario
def wrong_8_into_9(
    process: Process, entry: str, stream: str, litter: bool, repeats: int = REPEATS
) -> list[Any]:
    def wrong() -> int:
        batch = Batch.build(process)
        batch.stream = {"own": batch.stream, "legacy": 1, "per-thread": 2}[stream]
        words = batch.words(None, nine=False)
        return batch_function(process, entry)(*words, *([LITTER] if litter else []))

    return [in_fork(wrong) for _ in range(repeats)]


@scenario
def wrong_9_into_8(process: Process, entry: str, fail_index: int, repeats: int = REPEATS) -> list[Any]:
    def wrong() -> int:
        batch = Batch.build(process)
        return batch_function(process, entry)(*batch.words(Words([fail_index]), nine=True))

    return [in_fork(wrong) for _ in range(repeats)]


@scenario
def wrong_9_into_8_readable(process: Process) -> list[Any]:
    def wrong() -> int:
        batch = Batch.build(process)
        readable = Words([1, 2, 3, 4])
        return batch_function(process, "runtime")(*batch.words(Words([readable.address]), nine=True))

    return [in_fork(wrong) for _ in range(REPEATS)]


@scenario
def batch_untouched(process: Process, parameters: int) -> dict[str, int]:
    """Call with arguments that cannot be touched without a fault."""
    fail_index = Words([UNTOUCHED])
    words = [LITTER] * 7 + ([fail_index.address] if parameters == 9 else []) + [LITTER]
    code = process.runtime.cudaMemcpyBatchAsync(*words)
    return {"code": code, "fail_index": fail_index[0], "last_error": process.runtime.cudaGetLastError()}


@scenario
def source_overwritten(process: Process, order: int) -> str:
    batch = Batch.build(process)
    batch.attributes[0].order = order
    source, size = batch.sources[0], batch.sizes[0]
    old, new = ctypes.string_at(source, size), b"\xee" * size
    gate = Gate()
    gate.close(process, batch.stream)
    code, _ = batch.submit(process.runtime.cudaMemcpyBatchAsync, nine=False)
    assert code == 0
    ctypes.memmove(source, new, size)
    gate.open()
    assert process.runtime.cudaDeviceSynchronize() == 0
    return {old: "old", new: "new"}[batch.read(batch.destinations[0], size)]


@scenario
def copies_before_a_bad_one(process: Process) -> dict[str, Any]:
    """Spoil the second of three copies; the attributes are of the first, the second and the third."""
    batch = Batch.build(process, copies=3)
    batch.attributes = [Attributes(order=order) for order in (DURING_API_CALL, STREAM, DURING_API_CALL)]
    batch.first_copies = [0, 1, 2]
    blank = batch.read(batch.device, 1)[0]
    batch.sizes[1] = 0
    answer = batch.submit(process.runtime.cudaMemcpyBatchAsync, nine=True)
    assert process.runtime.cudaDeviceSynchronize() == 0
    arrived = [
        batch.read(destination, 64) == ctypes.string_at(source, 64)
        for destination, source in zip(batch.destinations, batch.sources, strict=True)
    ]
    return {"answer": answer, "arrived": arrived, "between": batch.read(batch.device + 64, 1)[0] == blank}


@scenario
def batch_seconds(process: Process, count: int) -> float:
    """Return the least time of submission and completion together, of ten."""
    batch = Batch.build(process)
    batch.destinations = [batch.device + index % 512 * 128 for index in range(count)]
    batch.sources = [batch.pinned + index % 512 * 128 for index in range(count)]
    batch.sizes = [64] * count
    words = batch.words(None, nine=False)
    times = []
    for _ in range(10):
        start = time.perf_counter()
        assert process.runtime.cudaMemcpyBatchAsync(*words) == 0
        assert process.runtime.cudaStreamSynchronize(batch.stream) == 0
        times.append(time.perf_counter() - start)
    return min(times)


@scenario
def one_copy_with_attributes(process: Process) -> dict[str, Any]:
    """cudaMemcpyWithAttributesAsync of 13.2: codes by stream and attributes, and whether the bytes came."""
    batch = Batch.build(process)
    runtime = process.runtime

    def copy(order: int = STREAM, stream: int = batch.stream, size: int = 64) -> int:
        words = (ctypes.c_int * 6)(order, 0, 0, 0, 0, 0)
        to, source = batch.destinations[0], batch.sources[0]
        return runtime.cudaMemcpyWithAttributesAsync(to, source, size, ctypes.addressof(words), stream)

    valid = copy()
    return {
        "valid": [valid, batch.bytes_arrived() if valid == 0 else None],
        "orders": [copy(order) for order in (0, 2, 3, 4)],
        "streams": [copy(stream=stream) for stream in (0, 1, 2)],
        "no bytes": copy(size=0),
    }
