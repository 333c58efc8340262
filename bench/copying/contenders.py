"""Who copies: each contender turns a plan in memory into a function that submits its copies.

All that a caller could have ready is made ready before the clock starts: argument arrays, Python lists,
buffer objects. What is timed is the call alone, as in an engine that keeps its page tables.
"""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from pytest_cudabatch.abi import BatchAbi, MemcpyAttributes
from pytest_cudabatch.copies import BoundPlan
from pytest_cudabatch.cuda import Runtime
from pytest_cudabatch.implementations import LinkedSharedObject, SharedObject, load

__all__ = ["CONTIGUOUS", "DEFAULT", "OWN", "UNCHUNKED", "Submit", "Unavailable", "prepare"]

Submit = Callable[[], int]
"""Enqueues all copies of a plan on a stream; returns 0 or the CUDA error code."""

CONTIGUOUS = "contiguous"
"""One cudaMemcpyAsync of as many bytes between the same buffers: what the hardware can do at best."""
UNCHUNKED = "batch-unchunked"
"""One cudaMemcpyBatchAsync for everything, which real drivers were seen to crash on."""

DEFAULT = (
    "reference",
    "batch-chunked",
    "per-copy",
    "per-copy-coalesced",
    "cuda.bindings.runtime",
    "cuda.bindings.driver",
    "cuda.core",
    UNCHUNKED,
)

_IN_STREAM_ORDER = 1  # cudaMemcpySrcAccessOrderStream
_MEMCPY_DEFAULT = 4  # cudaMemcpyDefault


class Unavailable(Exception):  # noqa: N818 - not an error: this host lacks what the contender needs
    """The contender cannot take part here; the message says why."""


def prepare(name: str, bound: BoundPlan, stream: int, chunk: int) -> Submit:
    """Return what submits the copies of ``bound`` on ``stream``, as the contender ``name`` does it.

    Contenders that have no limit of their own send at most ``chunk`` descriptors a call. Raises
    Unavailable, and for an implementation of the package what ``implementations.load`` raises.
    """
    if name in OWN:
        return OWN[name](bound, stream, chunk)
    implementation = load(name)
    if isinstance(implementation, SharedObject | LinkedSharedObject):
        return _entry_point(implementation, bound, stream)
    opened = implementation.open()
    return lambda: opened.copy(bound, stream)


def _entry_point(implementation: SharedObject | LinkedSharedObject, bound: BoundPlan, stream: int) -> Submit:
    """Return the C entry point with its arguments ready, so that it pays one ctypes call as the others do."""
    copy = ctypes.CDLL(str(implementation.path)).cudabatch_copy
    copy.argtypes = (*[ctypes.c_void_p] * 3, ctypes.c_size_t, ctypes.c_void_p)
    return partial(copy, *_pointers(bound, 0), bound.count, stream)


def _pointers(bound: BoundPlan, start: int) -> list[int]:
    """Return the addresses of the three argument arrays from descriptor ``start`` on."""
    return [array[start:].ctypes.data for array in (bound.dsts, bound.srcs, bound.sizes)]


def _starts(bound: BoundPlan, chunk: int) -> list[tuple[int, int]]:
    """Return first descriptor and number of descriptors of each call."""
    return [(start, min(chunk, bound.count - start)) for start in range(0, bound.count, chunk)]


def _in_turn(calls: Sequence[Submit]) -> Submit:
    def submit() -> int:
        for call in calls:
            if code := call():
                return code
        return 0

    return submit


def _library(runtime: Runtime) -> ctypes.CDLL:
    return ctypes.CDLL(str(runtime.path))  # loaded already: this is the same library, with types of our own


def _module(name: str) -> Any:
    """Import one of cuda-python's modules, each of which loads its own libraries."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise Unavailable(f"{name}: {error}") from error


def _runtime(bound: BoundPlan) -> Runtime:
    """Return the runtime whose memory the plan lies in: a worker opens one."""
    assert isinstance(bound.memory, Runtime)
    return bound.memory


def _contiguous(bound: BoundPlan, stream: int, _chunk: int) -> Submit:
    """Copy as many bytes from the first source byte on to the first destination byte."""
    copy = _library(_runtime(bound)).cudaMemcpyAsync
    copy.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p)
    return partial(
        copy, int(bound.dsts.min()), int(bound.srcs.min()), bound.plan.payload, _MEMCPY_DEFAULT, stream
    )


def _batch(bound: BoundPlan, stream: int, chunk: int) -> Submit:
    """Call the runtime's own batch function, with the parameters that its version has."""
    runtime = _runtime(bound)
    if not runtime.exports_batch:
        raise Unavailable(f"the {runtime.version} runtime has no cudaMemcpyBatchAsync")
    copy = _library(runtime).cudaMemcpyBatchAsync
    address, size = ctypes.c_void_p, ctypes.c_size_t
    has_fail_index = runtime.abi is BatchAbi.V12080
    copy.argtypes = (*[address] * 3, size, address, address, size, *[address] * (1 + has_fail_index))
    attributes, first, fail_index = MemcpyAttributes(_IN_STREAM_ORDER), size(0), size(0)
    outputs = [ctypes.byref(fail_index)] if has_fail_index else []
    tail = (ctypes.byref(attributes), ctypes.byref(first), 1, *outputs, stream)
    return _in_turn(
        [partial(copy, *_pointers(bound, start), count, *tail) for start, count in _starts(bound, chunk)]
    )


def _batch_unchunked(bound: BoundPlan, stream: int, _chunk: int) -> Submit:
    return _batch(bound, stream, bound.count)


def _bindings_runtime(bound: BoundPlan, stream: int, chunk: int) -> Submit:
    """cuda-python's runtime bindings, which have a libcudart of their own inside, with lists of int."""
    cudart = _module("cuda.bindings.runtime")
    if code := int(cudart.cudaGetDeviceCount()[0]):
        raise Unavailable(f"cuda.bindings.runtime: its own libcudart answers {code} on this driver")
    attributes = cudart.cudaMemcpyAttributes()
    attributes.srcAccessOrder = cudart.cudaMemcpySrcAccessOrder.cudaMemcpySrcAccessOrderStream
    calls = [
        (*_lists(bound, start, count), count, [attributes], [0], 1, stream)
        for start, count in _starts(bound, chunk)
    ]
    return _in_turn([partial(_call_binding, cudart.cudaMemcpyBatchAsync, *arguments) for arguments in calls])


def _bindings_driver(bound: BoundPlan, stream: int, chunk: int) -> Submit:
    """cuda-python's driver bindings, which take lists of CUdeviceptr and of int."""
    driver = _module("cuda.bindings.driver")
    attributes = driver.CUmemcpyAttributes()
    attributes.srcAccessOrder = driver.CUmemcpySrcAccessOrder.CU_MEMCPY_SRC_ACCESS_ORDER_STREAM
    calls = []
    for start, count in _starts(bound, chunk):
        dsts, srcs, sizes = _lists(bound, start, count)
        pointers = ([driver.CUdeviceptr(address) for address in side] for side in (dsts, srcs))
        calls.append((*pointers, sizes, count, [attributes], [0], 1, driver.CUstream(stream)))
    return _in_turn([partial(_call_binding, driver.cuMemcpyBatchAsync, *arguments) for arguments in calls])


def _call_binding(function: Callable[..., tuple[int, ...]], *arguments: object) -> int:
    """Return the code of a binding's answer: the code, and behind it failIdx where there is one."""
    return int(function(*arguments)[0])


def _lists(bound: BoundPlan, start: int, count: int) -> tuple[list[int], list[int], list[int]]:
    part = slice(start, start + count)
    return bound.dsts[part].tolist(), bound.srcs[part].tolist(), bound.sizes[part].tolist()


def _core(bound: BoundPlan, stream: int, chunk: int) -> Submit:
    """cuda.core's copy_batch, which takes Buffer objects; it raises where a copy fails."""
    core, utilities = _module("cuda.core"), _module("cuda.core.utils")
    if not hasattr(utilities, "copy_batch"):
        raise Unavailable(f"cuda.core {core.__version__} has no copy_batch")
    core.Device(0).set_current()
    target = core.Stream.from_handle(stream)
    calls = []
    for start, count in _starts(bound, chunk):
        dsts, srcs, sizes = _lists(bound, start, count)
        buffers = [
            [core.Buffer.from_handle(address, size) for address, size in zip(side, sizes, strict=True)]
            for side in (srcs, dsts)
        ]
        calls.append((target, *buffers))

    def submit() -> int:
        for arguments in calls:
            utilities.copy_batch(*arguments)
        return 0

    return submit


OWN: dict[str, Callable[[BoundPlan, int, int], Submit]] = {
    CONTIGUOUS: _contiguous,
    "batch-chunked": _batch,
    UNCHUNKED: _batch_unchunked,
    "cuda.bindings.runtime": _bindings_runtime,
    "cuda.bindings.driver": _bindings_driver,
    "cuda.core": _core,
}
"""Contenders of the bench itself; every other name is an implementation of the package."""
