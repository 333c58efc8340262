"""Puts one question to the libraries of this process and returns their answer. It may crash or hang."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from pytest_cudabatch.contract.answers import Answer
from pytest_cudabatch.contract.batch import Batch
from pytest_cudabatch.contract.bench import UNTOUCHED, Bench
from pytest_cudabatch.contract.call_rows import CallRow
from pytest_cudabatch.contract.captures import begin_capture, captured_beside, end_capture, launch
from pytest_cudabatch.contract.entries import Entry, entry_of
from pytest_cudabatch.contract.lookups import BATCH_FUNCTIONS, LookupRow
from pytest_cudabatch.contract.questions import ROWS, Question
from pytest_cudabatch.contract.row_table import BatchRow
from pytest_cudabatch.contract.words import MissingFunctionError, Words, call
from pytest_cudabatch.errors import CudaError

__all__ = ["reply"]

_SIZE_MAX = 2**64 - 1
_TEN = 10
_CHANGED = 1
"""Added to every byte of the sources between a capture and its launch."""


def reply(bench: Bench, question: Question) -> Answer:
    """Ask; whatever the row needs of the bench is put back afterwards, where the libraries allow it."""
    row, entry = ROWS[question.row], entry_of(question.entry)
    try:
        if isinstance(row, LookupRow):
            return _look_up(bench, row, entry)
        if isinstance(row, CallRow):
            return row.ask(bench)
        return _submit(bench, row, entry)
    except MissingFunctionError as missing:
        return Answer(missing=missing.name)


def _look_up(bench: Bench, row: LookupRow, entry: Entry) -> Answer:
    name, found, status = ctypes.create_string_buffer(row.function.encode()), Words([0]), Words([0])
    words = [ctypes.addressof(name), found.address]
    if entry.name != "cudaGetDriverEntryPoint":
        words.append(row.version or _above_the_drivers(bench))
    code = call(bench.function(entry), *words, row.flags, status.address)
    return Answer(
        code=code,
        last_error=bench.runtime.last_error() if entry.of_runtime else None,
        found=bench.exported_name(found[0], BATCH_FUNCTIONS),
    )


def _above_the_drivers(bench: Bench) -> int:
    version = bench.runtime.driver_version
    return version.api + _TEN if version else _TEN


def _submit(bench: Bench, row: BatchRow, entry: Entry) -> Answer:
    function = bench.function(entry)
    bench.reset()
    batch = Batch.build(bench)
    own_stream = batch.stream
    with ExitStack() as undoing:
        undoing.callback(bench.runtime.stream_destroy, own_stream)
        row.vary(batch)
        for undo in batch.undo:
            undoing.callback(undo)
        _register(batch, undoing)
        return _answer(batch, entry, function, own_stream)


def _register(batch: Batch, undoing: ExitStack) -> None:
    for address, nbytes in batch.registered:
        code = batch.bench.call("cudaHostRegister", address, nbytes, 0)
        if code != 0:
            raise CudaError("cudaHostRegister", code)
        undoing.callback(batch.bench.call, "cudaHostUnregister", address)


def _answer(batch: Batch, entry: Entry, function: Any, own_stream: int) -> Answer:
    runtime = batch.bench.runtime
    words = batch.words(entry)
    with ExitStack() as captures:
        beside = captures.enter_context(captured_beside(batch.bench, batch.beside))
        if batch.capture is not None:
            begin_capture(batch.bench, own_stream, batch.capture)
        code, last_error = _in_its_thread(batch, lambda: (call(function, *words), runtime.last_error()))
    ended, graph = beside.end_capture, 0
    if batch.capture is not None:
        ended, graph = end_capture(batch.bench, own_stream)
    sync = runtime.call("cudaDeviceSynchronize")
    copied = _copied(batch) if sync == 0 else None
    nodes, replayed = _graph_facts(batch, graph, own_stream) if graph else (None, None)
    return Answer(
        code=code,
        fail_index=_fail_index(batch, entry),
        last_error=last_error if entry.of_runtime else None,
        sync=sync,
        copied=copied,
        end_capture=ended,
        nodes=nodes,
        replayed=replayed,
    )


def _in_its_thread(batch: Batch, work: Callable[[], tuple[int, int]]) -> tuple[int, int]:
    """Do the work here, or in a new thread where the row wants it. The last error is the thread's own."""
    if not batch.thread:
        return work()
    results: list[tuple[int, int]] = []
    thread = threading.Thread(target=lambda: results.append(work()))
    thread.start()
    thread.join()
    return results[0]


def _fail_index(batch: Batch, entry: Entry) -> int | str | None:
    """Return what the call left in failIdx, where it was given one."""
    if entry.shape not in {"batch", "3d"} or batch.null_fail_index:
        return None
    if entry.has_fail_index(batch.bench.runtime.abi) == batch.wrong_list:
        return None
    value = batch.fail_index[0]
    return {_SIZE_MAX: "max", UNTOUCHED: "untouched"}.get(value, value)


def _copied(batch: Batch) -> int | None:
    """Return how many copies arrived; None where that cannot be seen for any."""
    checkable = batch.checkable()
    return sum(batch.bench.equal(*copy) for copy in checkable) if checkable else None


def _graph_facts(batch: Batch, graph: int, stream: int) -> tuple[int | None, int | None]:
    """Return how many nodes the graph has and how many copies it makes; destroy it."""
    bench, nodes = batch.bench, Words([0])
    counted = bench.call("cudaGraphGetNodes", graph, 0, nodes.address)
    bench.reset(_CHANGED)
    launched = launch(bench, graph, stream)
    bench.call("cudaGraphDestroy", graph)
    return nodes[0] if counted == 0 else None, _copied(batch) if launched == 0 else None
