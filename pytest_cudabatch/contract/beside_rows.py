"""Rows about what is around the call: streams, captures of other streams, host memory, the ends of arrays."""

from __future__ import annotations

import mmap

from pytest_cudabatch.contract.batch import Attributes, Batch
from pytest_cudabatch.contract.bench import DEVICE_SOURCE, SPAN
from pytest_cudabatch.contract.entries import Shape
from pytest_cudabatch.contract.row_table import ALL, WITH_COPY, row
from pytest_cudabatch.contract.words import Pages, Words

_GLOBAL, _THREAD_LOCAL, _RELAXED = 0, 1, 2
_PORTABLE, _MAPPED, _WRITE_COMBINED = 1, 2, 4
_HALF = 1 << 18
_ATTRIBUTES: tuple[Shape, ...] = ("batch", "attributes")


@row("A blocking stream", ALL)
def _stream_blocking(batch: Batch) -> None:
    batch.stream = batch.bench.runtime.stream_create(non_blocking=False)
    batch.undo.append(lambda: batch.bench.runtime.stream_destroy(batch.stream))


@row("Stream 0x2, from a new thread", ALL)
def _stream_per_thread_of_another_thread(batch: Batch) -> None:
    batch.stream, batch.thread = 2, True


# Captures of another stream --------------------------------------------------------------------------------


@row("Another stream is being captured by this thread, mode global", ALL)
def _beside_a_capture_global(batch: Batch) -> None:
    batch.beside = (_GLOBAL, False)


@row("Another stream is being captured by this thread, mode thread-local", WITH_COPY)
def _beside_a_capture_thread_local(batch: Batch) -> None:
    batch.beside = (_THREAD_LOCAL, False)


@row("Another stream is being captured by this thread, mode relaxed", WITH_COPY)
def _beside_a_capture_relaxed(batch: Batch) -> None:
    batch.beside = (_RELAXED, False)


@row("Another thread captures another stream, mode global", ALL)
def _beside_another_threads_capture_global(batch: Batch) -> None:
    batch.beside = (_GLOBAL, True)


@row("Another thread captures another stream, mode thread-local", WITH_COPY)
def _beside_another_threads_capture_thread_local(batch: Batch) -> None:
    batch.beside = (_THREAD_LOCAL, True)


@row("Another thread captures another stream, mode relaxed", WITH_COPY)
def _beside_another_threads_capture_relaxed(batch: Batch) -> None:
    batch.beside = (_RELAXED, True)


@row("A pageable source while another thread captures another stream, mode global", WITH_COPY)
def _pageable_beside_another_threads_capture(batch: Batch) -> None:
    batch.sources, batch.beside = [batch.pageable(b"pageable" * 8)], (_GLOBAL, True)


# Host memory -----------------------------------------------------------------------------------------------


def _allocated(batch: Batch, flags: int) -> None:
    bench, address = batch.bench, Words([0])
    if bench.call("cudaHostAlloc", address.address, SPAN, flags) != 0:
        raise MemoryError("cudaHostAlloc refused the memory of a row")
    batch.undo.append(lambda: bench.call("cudaFreeHost", address[0]))
    batch.sources = [address[0]]
    batch.readable.append((address[0], SPAN))


@row("A source from cudaHostAlloc with flag 1, portable", WITH_COPY)
def _host_alloc_portable(batch: Batch) -> None:
    _allocated(batch, _PORTABLE)


@row("A source from cudaHostAlloc with flag 2, mapped", WITH_COPY)
def _host_alloc_mapped(batch: Batch) -> None:
    _allocated(batch, _MAPPED)


@row("A source from cudaHostAlloc with flag 4, write-combined", WITH_COPY)
def _host_alloc_write_combined(batch: Batch) -> None:
    _allocated(batch, _WRITE_COMBINED)


@row("The destination lies across two adjacent registered ranges", WITH_COPY)
def _registered_adjacent_destination(batch: Batch) -> None:
    pages = Pages(2 * _HALF)
    batch.register(pages.address, _HALF)
    batch.register(pages.address + _HALF, _HALF)
    batch.destinations = [pages.address + _HALF - 32]
    batch.sources = [batch.bench.device + DEVICE_SOURCE]


@row("The source was registered, and is no longer", WITH_COPY)
def _registered_before(batch: Batch) -> None:
    pages = Pages(_HALF)
    batch.bench.call("cudaHostRegister", pages.address, _HALF, 0)
    batch.bench.call("cudaHostUnregister", pages.address)
    batch.sources = [pages.address]
    batch.readable.append((pages.address, _HALF))


@row("The source begins in a registered page and ends in an unregistered one behind it", WITH_COPY)
def _registered_page_before(batch: Batch) -> None:
    pages = Pages(2 * mmap.PAGESIZE)
    batch.register(pages.address, mmap.PAGESIZE)
    batch.sources = [pages.address + mmap.PAGESIZE - 32]


# Several copies, one of them bad ---------------------------------------------------------------------------


@row("The first of three sizes is 0")
def _size_zero_first_of_three(batch: Batch) -> None:
    batch.set_copies(3)
    batch.sizes[0] = 0


@row("The last of three sizes is 0")
def _size_zero_last_of_three(batch: Batch) -> None:
    batch.set_copies(3)
    batch.sizes[2] = 0


@row("The second of three copies has size 0 and NULL for both addresses")
def _size_zero_and_null_second_of_three(batch: Batch) -> None:
    batch.set_copies(3)
    batch.sizes[1] = batch.sources[1] = batch.destinations[1] = 0


@row("The second of three sources is NULL")
def _null_source_second_of_three(batch: Batch) -> None:
    batch.set_copies(3)
    batch.sources[1] = 0


@row("The last of three destinations runs past its allocation")
def _past_the_allocation_last_of_three(batch: Batch) -> None:
    batch.set_copies(3)
    batch.destinations[2], batch.sources[2] = batch.bench.device + SPAN - 32, batch.bench.pinned
    batch.sizes[2] = SPAN


# Attributes and arrays -------------------------------------------------------------------------------------


def _hint(batch: Batch, hint: tuple[int, int]) -> None:
    batch.attributes[0] = Attributes(source_hint=hint)


@row("A location hint of host NUMA node 0", _ATTRIBUTES)
def _hint_host_numa(batch: Batch) -> None:
    _hint(batch, (3, 0))


@row("A location hint of the current host NUMA node", _ATTRIBUTES)
def _hint_host_numa_current(batch: Batch) -> None:
    _hint(batch, (4, 0))


@row("A location hint of type 5, which 13.2 added", _ATTRIBUTES)
def _hint_type_five(batch: Batch) -> None:
    _hint(batch, (5, 0))


@row("A location hint of type 6, which 13.4 added", _ATTRIBUTES)
def _hint_type_six(batch: Batch) -> None:
    _hint(batch, (6, 0))


@row("A location hint of type 99, which is none", _ATTRIBUTES)
def _hint_type_99(batch: Batch) -> None:
    _hint(batch, (99, 0))


@row("A location hint of device -1", _ATTRIBUTES)
def _hint_device_minus_one(batch: Batch) -> None:
    _hint(batch, (1, -1))


@row("100 copies; the arrays of addresses and sizes end at a page that nobody may touch")
def _arrays_before_a_hole(batch: Batch) -> None:
    batch.set_copies(100)
    batch.end_at_hole = True


@row("attrs NULL with numAttrs 1", alone=True)
def _attributes_null(batch: Batch) -> None:
    batch.null_attributes = True
