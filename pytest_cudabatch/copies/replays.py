"""Making a trace's batches again: as plans for any implementation, or call by call as they were."""

from __future__ import annotations

import contextlib
import ctypes
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING

import numpy as np

from pytest_cudabatch.copies.plan import GUARD_BYTES, Direction, Mixture, Place, Plan
from pytest_cudabatch.copies.traces import (
    DEFAULT_STREAM,
    LEGACY_STREAM,
    NO_STREAM,
    PER_THREAD_STREAM,
    MemoryKind,
    Trace,
    TracedBatch,
)
from pytest_cudabatch.cuda import Runtime

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Replay", "ReplayedBatch", "plan_of"]

_PAGE = 4096
_APART = 128 * 1024
"""Bytes around each stretch of pageable memory, so that a trace of the replay tells them apart too."""

_DEFAULT_LIMIT = 4 << 30
_WITHOUT_MEMORY = {MemoryKind.NULL: 0, MemoryKind.BEYOND: 1 << 63}
"""Kinds of regions at which no memory can lie, and where they are in a replay."""

_FURTHEST = np.uint64(1 << 56)
_HANDLES = {DEFAULT_STREAM: 0, LEGACY_STREAM: 1, PER_THREAD_STREAM: 2}
_ON_DEVICE = (MemoryKind.DEVICE, MemoryKind.MANAGED)
_SYNCHRONISED_BY = "cudaDeviceSynchronize"


def plan_of(trace: Trace, index: int) -> Plan:
    """Return a batch as a plan: the same sizes in the same order, at the same offsets within pages.

    Managed memory becomes device memory, and all host memory pinned. What lies a page or more away from all
    ranges is left out, so that a batch out of a large cache fits into a small machine; source and destination
    are buffers of their own. Raises IndexError for no such batch, ValueError for one with addresses that can
    hold no memory.
    """
    batch = trace.batch(index)
    kinds = trace.region_kinds
    for regions, offsets in ((batch.src_regions, batch.src_offsets), (batch.dst_regions, batch.dst_offsets)):
        if np.isin(kinds[regions], list(_WITHOUT_MEMORY)).any():
            raise ValueError(f"batch {index} has addresses that can hold no memory, such as NULL")
        if np.any(offsets > _FURTHEST) or np.any(batch.sizes > _FURTHEST):
            raise ValueError(f"batch {index} has a copy that is larger than any memory")
    src_places, src_offsets, src_extents = _lay_out(batch.src_regions, batch.src_offsets, batch.sizes, kinds)
    dst_places, dst_offsets, dst_extents = _lay_out(batch.dst_regions, batch.dst_offsets, batch.sizes, kinds)
    uniform = len(np.unique(batch.sizes)) <= 1
    return Plan(
        direction=_direction(src_places, dst_places),
        mixture=Mixture.UNIFORM if uniform else Mixture.MIXED,
        seed=index,
        sizes=batch.sizes,
        src_places=src_places,
        dst_places=dst_places,
        src_offsets=src_offsets,
        dst_offsets=dst_offsets,
        src_extents=src_extents,
        dst_extents=dst_extents,
    )


def _direction(src_places: NDArray[np.uint8], dst_places: NDArray[np.uint8]) -> Direction:
    ways = {
        (int(source), int(destination))
        for source, destination in zip(*np.unique(np.stack([src_places, dst_places]), axis=1), strict=True)
    }
    known: dict[tuple[int, int], Direction] = {
        (Place.HOST, Place.DEVICE): Direction.H2D,
        (Place.DEVICE, Place.HOST): Direction.D2H,
        (Place.DEVICE, Place.DEVICE): Direction.D2D,
    }
    return known.get(ways.pop(), Direction.MIXED) if len(ways) == 1 else Direction.MIXED


def _lay_out(
    regions: NDArray[np.uint32],
    offsets: NDArray[np.uint64],
    sizes: NDArray[np.uint64],
    kinds: NDArray[np.uint8],
) -> tuple[NDArray[np.uint8], NDArray[np.uint64], tuple[int, int]]:
    """Return each range's place and new offset, and the extents of both places.

    Ranges less than a page apart keep their distance; such blocks follow each other, each at its offset
    within a page, with at least a page between them.
    """
    places = np.where(np.isin(kinds[regions], _ON_DEVICE), Place.DEVICE, Place.HOST).astype(np.uint8)
    moved = np.zeros(len(offsets), np.uint64)
    extents = [0, 0]
    page = np.uint64(_PAGE)
    for place in Place:
        members = np.flatnonzero(places == place)
        if not len(members):
            continue
        order = members[np.lexsort((offsets[members], regions[members]))]
        starts, ends, owners = offsets[order], offsets[order] + sizes[order], regions[order]
        begins = np.ones(len(order), bool)
        furthest = _furthest(ends, owners)
        begins[1:] = (owners[1:] != owners[:-1]) | (starts[1:] >= furthest[:-1] + page)
        block = np.cumsum(begins) - 1
        firsts = starts[begins]
        lasts = furthest[np.append(np.flatnonzero(begins)[1:] - 1, len(order) - 1)]
        within = firsts % page
        pages = (within + (lasts - firsts) + page - np.uint64(1)) // page + np.uint64(1)
        bases = np.uint64(GUARD_BYTES) + (np.cumsum(pages, dtype=np.uint64) - pages) * page
        moved[order] = bases[block] + within[block] + (starts - firsts[block])
        extents[place] = int((moved[order] + sizes[order]).max()) + GUARD_BYTES
    for array in (places, moved):
        array.setflags(write=False)
    return places, moved, (extents[0], extents[1])


def _furthest(ends: NDArray[np.uint64], owners: NDArray[np.uint32]) -> NDArray[np.uint64]:
    """Return, for sorted ranges, the furthest end so far within the same region."""
    furthest = np.empty_like(ends)
    bounds = np.append(
        np.flatnonzero(np.diff(owners, prepend=owners[0] + 1 if len(owners) else 0)), len(ends)
    )
    for first, last in itertools.pairwise(bounds.tolist()):  # by region, of which there are few
        furthest[first:last] = np.maximum.accumulate(ends[first:last])
    return furthest


@dataclass(frozen=True)
class ReplayedBatch:
    """One batch at addresses of this process, with what an implementation's ``copy`` takes of a plan."""

    traced: TracedBatch
    stream: int
    dsts: NDArray[np.uint64]
    srcs: NDArray[np.uint64]
    sizes: NDArray[np.uint64]

    @property
    def count(self) -> int:
        """The number of descriptors."""
        return len(self.sizes)


class Replay:
    """The batches of one process of a trace, with regions and streams of their own from here until ``close``.

    Each region is an allocation of its own kind and length. Raises CudaError where one cannot be had,
    ValueError where all together have more than ``limit`` bytes, IndexError for no such process.
    """

    def __init__(
        self, trace: Trace, runtime: Runtime, *, process: int = 0, limit: int = _DEFAULT_LIMIT
    ) -> None:
        self.trace = trace.of_process(process)
        self.runtime = runtime
        used = np.union1d(self.trace.src_regions, self.trace.dst_regions)
        needed = sum(int(nbytes) for nbytes in trace.region_nbytes[used])
        if needed > limit:
            raise ValueError(f"the trace's regions have {needed} bytes, more than the {limit} allowed")
        self._driver = ctypes.CDLL("libcuda.so.1")  # the one that is loaded
        self._runtime = ctypes.CDLL(str(runtime.path))
        self._bases = np.zeros(len(trace.region_kinds), np.uint64)
        self._streams: list[int] = []
        with contextlib.ExitStack() as held:
            for region in used:
                self._bases[region] = self._allocate(int(region), held)
            for _ in range(int(self.trace.batch_streams.max(initial=NO_STREAM)) + 1):
                self._streams.append(runtime.stream_create())
                held.callback(runtime.stream_destroy, self._streams[-1])
            held.callback(runtime.call, _SYNCHRONISED_BY)  # before anything is freed
            self._held = held.pop_all()

    def __iter__(self) -> Iterator[ReplayedBatch]:
        for batch in self.trace:
            yield ReplayedBatch(
                traced=batch,
                stream=self._stream(batch.stream),
                dsts=self._bases[batch.dst_regions] + batch.dst_offsets,
                srcs=self._bases[batch.src_regions] + batch.src_offsets,
                sizes=np.ascontiguousarray(batch.sizes),
            )

    def call(self, batch: ReplayedBatch) -> int:
        """Call what the program called, in the same way, and return the code. Nothing is synchronised.

        A call that crashed then crashes again. Raises ValueError where the number of parameters is not known.
        """
        traced = batch.traced
        if traced.given is None:
            raise ValueError(f"batch {traced.index} was called with an unknown number of parameters")
        library = self._runtime if traced.function.startswith("cuda") else self._driver
        function = library[traced.function]  # an object of its own, so its types are nobody else's
        attributes = np.ascontiguousarray(traced.attributes)
        starts = np.ascontiguousarray(traced.attribute_starts)
        arrays = [batch.dsts, batch.srcs, batch.sizes]
        words = [
            *(array.ctypes.data for array in arrays),
            batch.count,
            attributes.ctypes.data if len(attributes) else 0,
            starts.ctypes.data if len(starts) else 0,
            len(attributes),
        ]
        fail = ctypes.c_uint64()
        words += [ctypes.addressof(fail)] if traced.given == 9 else []
        function.argtypes = [ctypes.c_uint64] * (len(words) + 1)
        return int(function(*words, batch.stream))

    def close(self) -> None:
        """Wait for the device and free everything. Idempotent."""
        self._held.close()

    def __enter__(self) -> Replay:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _stream(self, ordinal: int) -> int:
        if ordinal == NO_STREAM:
            return 0
        return _HANDLES[ordinal] if ordinal < 0 else self._streams[ordinal]

    def _allocate(self, region: int, held: contextlib.ExitStack) -> int:
        """Return the address of a new region of that one's kind."""
        kind, nbytes = MemoryKind(self.trace.region_kinds[region]), int(self.trace.region_nbytes[region])
        place = int(self.trace.region_places[region])
        if kind in _WITHOUT_MEMORY:
            return _WITHOUT_MEMORY[kind]
        if kind is MemoryKind.DEVICE:
            buffer = self.runtime.malloc(nbytes)
            held.callback(self.runtime.free, buffer)
            return buffer.address
        if kind is MemoryKind.PINNED:
            pinned = self.runtime.malloc_host(nbytes)
            held.callback(self.runtime.free_host, pinned)
            return pinned.address
        if kind is MemoryKind.MANAGED:
            address = ctypes.c_void_p()
            self.runtime.check("cudaMallocManaged", ctypes.byref(address), nbytes, 1)
            held.callback(self.runtime.check, "cudaFree", address.value)
            return address.value or 0
        return self._host_memory(kind, nbytes, place, held)

    def _host_memory(self, kind: MemoryKind, nbytes: int, place: int, held: contextlib.ExitStack) -> int:
        memory = np.zeros(nbytes + 2 * _APART + _PAGE, np.uint8)
        first = memory.ctypes.data + _APART
        address = first + (place - first) % _PAGE
        if kind is MemoryKind.REGISTERED:
            self.runtime.check("cudaHostRegister", address, nbytes, 0)
            held.callback(self.runtime.check, "cudaHostUnregister", address)
        held.callback(memory.view)  # keeps it
        return address
