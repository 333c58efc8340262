"""Rows about other calls of the runtime: registration, and what a capture forbids."""

from __future__ import annotations

import mmap
from collections.abc import Callable
from dataclasses import dataclass

from pytest_cudabatch.contract.answers import Answer
from pytest_cudabatch.contract.bench import Bench
from pytest_cudabatch.contract.captures import begin_capture, end_capture
from pytest_cudabatch.contract.words import Pages, Words

__all__ = ["CALL_ROWS", "CallRow"]

_GLOBAL, _RELAXED = 0, 2
_PAGE = mmap.PAGESIZE
_DEFAULT = 4


@dataclass(frozen=True)
class CallRow:
    """A row that makes its call itself, to the one function in ``entries``, and leaves nothing behind."""

    name: str
    about: str
    entries: tuple[str]
    ask: Callable[[Bench], Answer]

    alone = False


CALL_ROWS: dict[str, CallRow] = {}
"""By name, in the order of the tables; filled while this module is imported, and never changed."""

_Ask = Callable[[Bench], Answer]


def _row(function: str, about: str) -> Callable[[_Ask], _Ask]:
    def enter(ask: _Ask) -> _Ask:
        name = ask.__name__.removeprefix("_").replace("_", "-")
        CALL_ROWS[name] = CallRow(name, f"{function}: {about}", (function,), ask)
        return ask

    return enter


def _called(bench: Bench, name: str, *words: int, end: int | None = None) -> Answer:
    """Make the call; ``end`` is a stream whose capture ends after it."""
    code, last_error = bench.call(name, *words), bench.runtime.last_error()
    if end is None:
        return Answer(code=code, last_error=last_error)
    ended, graph = end_capture(bench, end)
    if graph:
        bench.call("cudaGraphDestroy", graph)
    return Answer(code=code, last_error=last_error, end_capture=ended)


# Registration ----------------------------------------------------------------------------------------------


def _register_with(
    bench: Bench, address: int, nbytes: int, flags: int = 0, *before: tuple[int, int]
) -> Answer:
    """Register a range after others, and forget them all."""
    for known in before:
        bench.call("cudaHostRegister", *known, 0)
    answer = _called(bench, "cudaHostRegister", address, nbytes, flags)
    for known in (*before, (address, nbytes)):
        bench.call("cudaHostUnregister", known[0])
    bench.runtime.last_error()
    return answer


@_row("cudaHostRegister", "four pages")
def _register(bench: Bench) -> Answer:
    return _register_with(bench, Pages(4 * _PAGE).address, 4 * _PAGE)


@_row("cudaHostRegister", "100 bytes from an odd address")
def _register_odd_bytes(bench: Bench) -> Answer:
    return _register_with(bench, Pages().address + 33, 100)


@_row("cudaHostRegister", "a range that is registered")
def _register_twice(bench: Bench) -> Answer:
    address = Pages(4 * _PAGE).address
    return _register_with(bench, address, 4 * _PAGE, 0, (address, 4 * _PAGE))


@_row("cudaHostRegister", "a range that overlaps a registered one by a page")
def _register_overlapping(bench: Bench) -> Answer:
    address = Pages(4 * _PAGE).address
    return _register_with(bench, address + _PAGE, 2 * _PAGE, 0, (address, 2 * _PAGE))


@_row("cudaHostRegister", "a range beside a registered one, in the same page")
def _register_in_the_same_page(bench: Bench) -> Answer:
    address = Pages().address
    return _register_with(bench, address + 1024, 1024, 0, (address, 1024))


@_row("cudaHostRegister", "memory from cudaMallocHost")
def _register_pinned(bench: Bench) -> Answer:
    return _called(bench, "cudaHostRegister", bench.pinned, _PAGE, 0)


@_row("cudaHostRegister", "device memory")
def _register_device(bench: Bench) -> Answer:
    return _called(bench, "cudaHostRegister", bench.device, _PAGE, 0)


@_row("cudaHostRegister", "a page, and one that nobody may touch behind it")
def _register_into_a_hole(bench: Bench) -> Answer:
    return _register_with(bench, Pages().address, 2 * _PAGE)


@_row("cudaHostRegister", "NULL")
def _register_null(bench: Bench) -> Answer:
    return _called(bench, "cudaHostRegister", 0, _PAGE, 0)


@_row("cudaHostRegister", "no bytes")
def _register_no_bytes(bench: Bench) -> Answer:
    return _register_with(bench, Pages().address, 0)


@_row("cudaHostRegister", "flags 16, which is none")
def _register_flags_sixteen(bench: Bench) -> Answer:
    return _register_with(bench, Pages().address, _PAGE, 16)


@_row("cudaHostUnregister", "memory that was never registered")
def _unregister_unknown(bench: Bench) -> Answer:
    return _called(bench, "cudaHostUnregister", Pages().address)


@_row("cudaHostUnregister", "an address inside a registered range")
def _unregister_inside(bench: Bench) -> Answer:
    address = Pages(2 * _PAGE).address
    bench.call("cudaHostRegister", address, 2 * _PAGE, 0)
    answer = _called(bench, "cudaHostUnregister", address + _PAGE)
    bench.call("cudaHostUnregister", address)
    bench.runtime.last_error()
    return answer


@_row("cudaHostUnregister", "NULL")
def _unregister_null(bench: Bench) -> Answer:
    return _called(bench, "cudaHostUnregister", 0)


# Captures --------------------------------------------------------------------------------------------------


def _under_capture(bench: Bench, mode: int, name: str, *words: int | None) -> Answer:
    """Make a call while a stream of its own, which None stands for, is captured."""
    stream = bench.new_stream()
    begin_capture(bench, stream, mode)
    given = [stream if word is None else word for word in words]
    answer = _called(bench, name, *given, end=stream)
    bench.runtime.stream_destroy(stream)
    return answer


@_row("cudaStreamSynchronize", "of the captured stream")
def _synchronise_captured(bench: Bench) -> Answer:
    return _under_capture(bench, _RELAXED, "cudaStreamSynchronize", None)


@_row("cudaStreamQuery", "of the captured stream")
def _query_captured(bench: Bench) -> Answer:
    return _under_capture(bench, _RELAXED, "cudaStreamQuery", None)


@_row("cudaStreamBeginCapture", "of a stream that is captured")
def _begin_capture_twice(bench: Bench) -> Answer:
    return _under_capture(bench, _RELAXED, "cudaStreamBeginCapture", None, _RELAXED)


@_row("cudaStreamBeginCapture", "of the legacy default stream")
def _begin_capture_of_the_legacy_stream(bench: Bench) -> Answer:
    return _called(bench, "cudaStreamBeginCapture", 1, _RELAXED)


@_row("cudaStreamEndCapture", "of a stream that is not captured")
def _end_capture_of_none(bench: Bench) -> Answer:
    stream, graph = bench.new_stream(), Words([0])
    answer = _called(bench, "cudaStreamEndCapture", stream, graph.address)
    bench.runtime.stream_destroy(stream)
    return answer


def _allocate_under(bench: Bench, mode: int) -> Answer:
    address = Words([0])
    answer = _under_capture(bench, mode, "cudaMalloc", address.address, 64)
    if answer.code == 0:
        bench.call("cudaFree", address[0])
    return answer


@_row("cudaMalloc", "while a stream is captured, mode global")
def _allocate_beside_capture_global(bench: Bench) -> Answer:
    return _allocate_under(bench, _GLOBAL)


@_row("cudaMalloc", "while a stream is captured, mode relaxed")
def _allocate_beside_capture_relaxed(bench: Bench) -> Answer:
    return _allocate_under(bench, _RELAXED)


@_row("cudaDeviceSynchronize", "while a stream is captured, mode global")
def _synchronise_device_beside_capture(bench: Bench) -> Answer:
    return _under_capture(bench, _GLOBAL, "cudaDeviceSynchronize")


@_row("cudaMemcpy", "pinned to device, while a stream is captured, mode global")
def _copy_synchronously_beside_capture(bench: Bench) -> Answer:
    return _under_capture(bench, _GLOBAL, "cudaMemcpy", bench.device, bench.pinned, 64, _DEFAULT)


@_row("cudaMemcpy", "the same, mode relaxed")
def _copy_synchronously_beside_capture_relaxed(bench: Bench) -> Answer:
    return _under_capture(bench, _RELAXED, "cudaMemcpy", bench.device, bench.pinned, 64, _DEFAULT)
