"""The rows of the contract: each spoils, or varies, one valid batch.

What real libraries answer stands in matrix/contract.toml. A row with ``alone`` may crash the process or
leave it unusable, so that it gets one of its own from the start.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from pytest_cudabatch.contract.batch import Attributes, Batch
from pytest_cudabatch.contract.bench import DEVICE_SOURCE, HOST_TARGET, SPAN
from pytest_cudabatch.contract.entries import Shape
from pytest_cudabatch.contract.words import Pages

__all__ = ["BATCH_ROWS", "BatchRow"]

_BATCH: tuple[Shape, ...] = ("batch",)
_WITH_3D: tuple[Shape, ...] = ("batch", "3d")
_WITH_COPY: tuple[Shape, ...] = ("batch", "copy")
_ALL: tuple[Shape, ...] = ("batch", "3d", "copy")

_DURING_API_CALL, _ANY = 2, 3
_DEVICE, _HOST = 1, 2


@dataclass(frozen=True)
class BatchRow:
    """A row: ``vary`` turns the valid batch into the row's. ``nine_only``: it is about failIdx itself."""

    name: str
    about: str
    shapes: Collection[Shape]
    vary: Callable[[Batch], None]
    alone: bool
    nine_only: bool


BATCH_ROWS: dict[str, BatchRow] = {}
"""By name, in the order of the tables; filled while this module is imported, and never changed."""

_Vary = Callable[[Batch], None]


def _row(
    about: str, shapes: tuple[Shape, ...] = _BATCH, *, alone: bool = False, nine_only: bool = False
) -> Callable[[_Vary], _Vary]:
    def enter(vary: _Vary) -> _Vary:
        name = vary.__name__.removeprefix("_").replace("_", "-")
        BATCH_ROWS[name] = BatchRow(name, about, shapes, vary, alone, nine_only)
        return vary

    return enter


# Valid batches ---------------------------------------------------------------------------------------------


@_row("One copy from pinned memory to the device, order STREAM, on a non-blocking stream", _ALL)
def _valid(batch: Batch) -> None:
    del batch  # it is built valid


@_row("From the device to the device", _WITH_3D)
def _device_to_device(batch: Batch) -> None:
    batch.sources = [batch.bench.device + DEVICE_SOURCE]


@_row("From pinned memory to pinned memory", _WITH_3D)
def _host_to_host(batch: Batch) -> None:
    batch.destinations = [batch.bench.pinned + HOST_TARGET]


@_row("Three copies: to the device, from it, and within it", _WITH_3D)
def _mixed_directions(batch: Batch) -> None:
    batch.set_copies(3)
    batch.sources[1] = batch.bench.device + DEVICE_SOURCE
    batch.destinations[1] = batch.bench.pinned + HOST_TARGET
    batch.sources[2] = batch.bench.device + DEVICE_SOURCE + 512


@_row("Two copies whose destinations overlap, with the same bytes")
def _overlapping_destinations(batch: Batch) -> None:
    batch.set_copies(2)
    batch.destinations[1] = batch.destinations[0] + 8
    batch.sources[1] = batch.sources[0] + 8


@_row("Source and destination are the same device memory")
def _source_is_destination(batch: Batch) -> None:
    batch.sources = list(batch.destinations)


@_row("Five copies of 61 bytes to odd addresses")
def _odd_addresses_and_sizes(batch: Batch) -> None:
    batch.set_copies(5, size=61)
    batch.destinations = [address + 3 for address in batch.destinations]


@_row("Flag 1, prefer overlap with compute")
def _flag_prefer_overlap(batch: Batch) -> None:
    batch.attributes[0].flags = 1


@_row("Order ANY")
def _order_any(batch: Batch) -> None:
    batch.attributes[0].order = _ANY


@_row("Order DURING_API_CALL")
def _order_during_api_call(batch: Batch) -> None:
    batch.attributes[0].order = _DURING_API_CALL


@_row("Pageable source, order STREAM", _WITH_COPY)
def _pageable_source(batch: Batch) -> None:
    batch.sources = [batch.pageable(b"pageable" * 8)]


@_row("Pageable source, order DURING_API_CALL")
def _pageable_source_during_api_call(batch: Batch) -> None:
    batch.sources = [batch.pageable(b"pageable" * 8)]
    batch.attributes[0].order = _DURING_API_CALL


@_row("Location hints: from HOST to DEVICE 0")
def _hints_host_to_device(batch: Batch) -> None:
    batch.attributes[0] = Attributes(source_hint=(_HOST, 0), destination_hint=(_DEVICE, 0))


@_row("Called from a new thread, in which no context was made current", _WITH_3D)
def _from_another_thread(batch: Batch) -> None:
    batch.thread = True


# Streams ---------------------------------------------------------------------------------------------------


@_row("Stream NULL", _ALL)
def _stream_null(batch: Batch) -> None:
    batch.stream = 0


@_row("Stream 0x1, the legacy default stream", _ALL)
def _stream_legacy(batch: Batch) -> None:
    batch.stream = 1


@_row("Stream 0x2, the per-thread default stream", _ALL)
def _stream_per_thread(batch: Batch) -> None:
    batch.stream = 2


@_row("A stream that was destroyed", _ALL, alone=True)
def _destroyed_stream(batch: Batch) -> None:
    batch.stream = batch.bench.new_stream()
    batch.bench.runtime.stream_destroy(batch.stream)


@_row("The stream is being captured, mode global", _ALL)
def _captured_global(batch: Batch) -> None:
    batch.capture = 0


@_row("The stream is being captured, mode thread-local", _WITH_COPY)
def _captured_thread_local(batch: Batch) -> None:
    batch.capture = 1


@_row("The stream is being captured, mode relaxed", _WITH_COPY)
def _captured_relaxed(batch: Batch) -> None:
    batch.capture = 2


# Counts and sizes ------------------------------------------------------------------------------------------


@_row("Count 0", _WITH_3D)
def _count_zero(batch: Batch) -> None:
    batch.count = 0


@_row("The only size is 0", _WITH_COPY)
def _size_zero_only(batch: Batch) -> None:
    batch.sizes = [0]


@_row("The second of two sizes is 0")
def _size_zero_second_of_two(batch: Batch) -> None:
    batch.set_copies(2)
    batch.sizes[1] = 0


# Attributes ------------------------------------------------------------------------------------------------


@_row("numAttrs 0, attrs NULL")
def _no_attributes(batch: Batch) -> None:
    batch.attribute_count, batch.null_attributes = 0, True


@_row("srcAccessOrder 0, which is invalid", _WITH_3D)
def _order_zero(batch: Batch) -> None:
    batch.attributes[0].order = 0


@_row("srcAccessOrder 4, which is none", _WITH_3D)
def _order_four(batch: Batch) -> None:
    batch.attributes[0].order = 4


@_row("Flags 2, which is none")
def _flags_two(batch: Batch) -> None:
    batch.attributes[0].flags = 2


@_row("A location hint of device 99 for both ends")
def _hint_device_99(batch: Batch) -> None:
    batch.attributes[0] = Attributes(source_hint=(_DEVICE, 99), destination_hint=(_DEVICE, 99))


def _with_indices(batch: Batch, copies: int, indices: list[int]) -> None:
    batch.set_copies(copies)
    batch.attributes = [Attributes() for _ in indices]
    batch.indices = indices


@_row("Two attributes, orders STREAM and ANY, attrsIdxs {0, 1}")
def _two_attributes(batch: Batch) -> None:
    _with_indices(batch, 3, [0, 1])
    batch.attributes[1].order = _ANY


@_row("100 copies with one attribute, whose index ends at a page that nobody may touch")
def _one_index_before_a_hole(batch: Batch) -> None:
    batch.set_copies(100)
    batch.indices_address = Pages().hole - 8  # fresh pages hold zeroes, so the index is 0


@_row("attrsIdxs {1} with 2 copies")
def _first_index_one(batch: Batch) -> None:
    _with_indices(batch, 2, [1])


@_row("attrsIdxs {0, 2, 1} with 3 copies")
def _indices_not_increasing(batch: Batch) -> None:
    _with_indices(batch, 3, [0, 2, 1])


@_row("attrsIdxs {0, 0} with 3 copies")
def _indices_equal(batch: Batch) -> None:
    _with_indices(batch, 3, [0, 0])


@_row("attrsIdxs {0, 5} with 2 copies")
def _index_beyond_count(batch: Batch) -> None:
    _with_indices(batch, 2, [0, 5])


@_row("numAttrs 2 with 1 copy")
def _more_attributes_than_copies(batch: Batch) -> None:
    _with_indices(batch, 1, [0, 1])


# Addresses -------------------------------------------------------------------------------------------------


@_row("The second of three destinations is NULL")
def _null_destination_second_of_three(batch: Batch) -> None:
    batch.set_copies(3)
    batch.destinations[1] = 0


@_row("The destination begins in its allocation and runs far past its end", _WITH_COPY)
def _past_the_allocation(batch: Batch) -> None:
    batch.destinations, batch.sources = [batch.bench.device + SPAN - 32], [batch.bench.pinned]
    batch.sizes = [SPAN]


@_row("A destination 1 TiB above the device's buffer", _WITH_COPY, alone=True)
def _device_address_far_outside(batch: Batch) -> None:
    batch.destinations = [batch.bench.device + (1 << 40)]


@_row("Source 0x10", _WITH_COPY, alone=True)
def _host_address_0x10(batch: Batch) -> None:
    batch.sources = [0x10]


@_row("A pageable source in a page that nobody may touch", _WITH_COPY, alone=True)
def _pageable_address_not_mapped(batch: Batch) -> None:
    batch.sources = [Pages().hole]


_REGION = 1 << 20


def _across_the_middle(batch: Batch) -> Pages:
    """Let the source straddle the middle of a region of pageable memory."""
    pages = Pages(_REGION)
    batch.sources = [pages.address + _REGION // 2 - 32]
    batch.readable.append((pages.address, _REGION))
    return pages


@_row("The source lies inside one registered range", _WITH_COPY)
def _registered_once(batch: Batch) -> None:
    pages = _across_the_middle(batch)
    batch.register(pages.address, _REGION)


@_row("The source lies across two adjacent registered ranges", _WITH_COPY)
def _registered_adjacent(batch: Batch) -> None:
    pages = _across_the_middle(batch)
    batch.register(pages.address, _REGION // 2)
    batch.register(pages.address + _REGION // 2, _REGION // 2)


@_row("Only the first half of the source is registered", _WITH_COPY)
def _registered_half(batch: Batch) -> None:
    pages = _across_the_middle(batch)
    batch.register(pages.address, _REGION // 2)


# failIdx and the parameter list ----------------------------------------------------------------------------


@_row("failIdx NULL, valid batch", _WITH_3D, nine_only=True)
def _fail_index_null(batch: Batch) -> None:
    batch.null_fail_index = True


@_row("failIdx NULL, and the only size is 0", nine_only=True)
def _fail_index_null_bad_batch(batch: Batch) -> None:
    batch.null_fail_index = True
    batch.sizes = [0]


@_row("Called with the other ABI's parameter list: without failIdx, or with it", _WITH_3D, alone=True)
def _wrong_parameter_list(batch: Batch) -> None:
    batch.wrong_list = True
