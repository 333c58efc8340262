"""The rows of the contract about one batch: each spoils, or varies, one valid one.

What real libraries answer stands in matrix/contract.toml. A row with ``alone`` may crash the process or
leave it unusable, so that it gets one of its own from the start.
"""

from __future__ import annotations

from pytest_cudabatch.contract.batch import Attributes, Batch
from pytest_cudabatch.contract.bench import DEVICE_SOURCE, HOST_TARGET, SPAN
from pytest_cudabatch.contract.row_table import ALL, WITH_3D, WITH_COPY, row
from pytest_cudabatch.contract.words import Pages

_DURING_API_CALL, _ANY = 2, 3
_DEVICE, _HOST = 1, 2


# Valid batches ---------------------------------------------------------------------------------------------


@row("One copy from pinned memory to the device, order STREAM, on a non-blocking stream", ALL)
def _valid(batch: Batch) -> None:
    del batch  # it is built valid


@row("From the device to the device", WITH_3D)
def _device_to_device(batch: Batch) -> None:
    batch.sources = [batch.bench.device + DEVICE_SOURCE]


@row("From pinned memory to pinned memory", WITH_3D)
def _host_to_host(batch: Batch) -> None:
    batch.destinations = [batch.bench.pinned + HOST_TARGET]


@row("Three copies: to the device, from it, and within it", WITH_3D)
def _mixed_directions(batch: Batch) -> None:
    batch.set_copies(3)
    batch.sources[1] = batch.bench.device + DEVICE_SOURCE
    batch.destinations[1] = batch.bench.pinned + HOST_TARGET
    batch.sources[2] = batch.bench.device + DEVICE_SOURCE + 512


@row("Two copies whose destinations overlap, with the same bytes")
def _overlapping_destinations(batch: Batch) -> None:
    batch.set_copies(2)
    batch.destinations[1] = batch.destinations[0] + 8
    batch.sources[1] = batch.sources[0] + 8


@row("Source and destination are the same device memory")
def _source_is_destination(batch: Batch) -> None:
    batch.sources = list(batch.destinations)


@row("Five copies of 61 bytes to odd addresses")
def _odd_addresses_and_sizes(batch: Batch) -> None:
    batch.set_copies(5, size=61)
    batch.destinations = [address + 3 for address in batch.destinations]


@row("Flag 1, prefer overlap with compute", ("batch", "attributes"))
def _flag_prefer_overlap(batch: Batch) -> None:
    batch.attributes[0].flags = 1


@row("Order ANY", ("batch", "attributes"))
def _order_any(batch: Batch) -> None:
    batch.attributes[0].order = _ANY


@row("Order DURING_API_CALL", ("batch", "attributes"))
def _order_during_api_call(batch: Batch) -> None:
    batch.attributes[0].order = _DURING_API_CALL


@row("Pageable source, order STREAM", WITH_COPY)
def _pageable_source(batch: Batch) -> None:
    batch.sources = [batch.pageable(b"pageable" * 8)]


@row("Pageable source, order DURING_API_CALL")
def _pageable_source_during_api_call(batch: Batch) -> None:
    batch.sources = [batch.pageable(b"pageable" * 8)]
    batch.attributes[0].order = _DURING_API_CALL


@row("Location hints: from HOST to DEVICE 0")
def _hints_host_to_device(batch: Batch) -> None:
    batch.attributes[0] = Attributes(source_hint=(_HOST, 0), destination_hint=(_DEVICE, 0))


@row("Called from a new thread, in which no context was made current", WITH_3D)
def _from_another_thread(batch: Batch) -> None:
    batch.thread = True


# Streams ---------------------------------------------------------------------------------------------------


@row("Stream NULL", ALL)
def _stream_null(batch: Batch) -> None:
    batch.stream = 0


@row("Stream 0x1, the legacy default stream", ALL)
def _stream_legacy(batch: Batch) -> None:
    batch.stream = 1


@row("Stream 0x2, the per-thread default stream", ALL)
def _stream_per_thread(batch: Batch) -> None:
    batch.stream = 2


@row("A stream that was destroyed", ALL, alone=True)
def _destroyed_stream(batch: Batch) -> None:
    batch.stream = batch.bench.new_stream()
    batch.bench.runtime.stream_destroy(batch.stream)


@row("The stream is being captured, mode global", ALL)
def _captured_global(batch: Batch) -> None:
    batch.capture = 0


@row("The stream is being captured, mode thread-local", WITH_COPY)
def _captured_thread_local(batch: Batch) -> None:
    batch.capture = 1


@row("The stream is being captured, mode relaxed", WITH_COPY)
def _captured_relaxed(batch: Batch) -> None:
    batch.capture = 2


# Counts and sizes ------------------------------------------------------------------------------------------


@row("Count 0", WITH_3D)
def _count_zero(batch: Batch) -> None:
    batch.count = 0


@row("The only size is 0", WITH_COPY)
def _size_zero_only(batch: Batch) -> None:
    batch.sizes = [0]


@row("The second of two sizes is 0")
def _size_zero_second_of_two(batch: Batch) -> None:
    batch.set_copies(2)
    batch.sizes[1] = 0


# Attributes ------------------------------------------------------------------------------------------------


@row("numAttrs 0, attrs NULL")
def _no_attributes(batch: Batch) -> None:
    batch.attribute_count, batch.null_attributes = 0, True


@row("srcAccessOrder 0, which is invalid", ("batch", "3d", "attributes"))
def _order_zero(batch: Batch) -> None:
    batch.attributes[0].order = 0


@row("srcAccessOrder 4, which is none", ("batch", "3d", "attributes"))
def _order_four(batch: Batch) -> None:
    batch.attributes[0].order = 4


@row("Flags 2, which is none", ("batch", "attributes"))
def _flags_two(batch: Batch) -> None:
    batch.attributes[0].flags = 2


@row("A location hint of device 99 for both ends", ("batch", "attributes"))
def _hint_device_99(batch: Batch) -> None:
    batch.attributes[0] = Attributes(source_hint=(_DEVICE, 99), destination_hint=(_DEVICE, 99))


def _with_indices(batch: Batch, copies: int, indices: list[int]) -> None:
    batch.set_copies(copies)
    batch.attributes = [Attributes() for _ in indices]
    batch.indices = indices


@row("Two attributes, orders STREAM and ANY, attrsIdxs {0, 1}")
def _two_attributes(batch: Batch) -> None:
    _with_indices(batch, 3, [0, 1])
    batch.attributes[1].order = _ANY


@row("100 copies with one attribute, whose index ends at a page that nobody may touch")
def _one_index_before_a_hole(batch: Batch) -> None:
    batch.set_copies(100)
    batch.indices_address = Pages().hole - 8  # fresh pages hold zeroes, so the index is 0


@row("attrsIdxs {1} with 2 copies")
def _first_index_one(batch: Batch) -> None:
    _with_indices(batch, 2, [1])


@row("attrsIdxs {0, 2, 1} with 3 copies")
def _indices_not_increasing(batch: Batch) -> None:
    _with_indices(batch, 3, [0, 2, 1])


@row("attrsIdxs {0, 0} with 3 copies")
def _indices_equal(batch: Batch) -> None:
    _with_indices(batch, 3, [0, 0])


@row("attrsIdxs {0, 5} with 2 copies")
def _index_beyond_count(batch: Batch) -> None:
    _with_indices(batch, 2, [0, 5])


@row("numAttrs 2 with 1 copy")
def _more_attributes_than_copies(batch: Batch) -> None:
    _with_indices(batch, 1, [0, 1])


# Addresses -------------------------------------------------------------------------------------------------


@row("The second of three destinations is NULL")
def _null_destination_second_of_three(batch: Batch) -> None:
    batch.set_copies(3)
    batch.destinations[1] = 0


@row("The destination begins in its allocation and runs far past its end", WITH_COPY)
def _past_the_allocation(batch: Batch) -> None:
    batch.destinations, batch.sources = [batch.bench.device + SPAN - 32], [batch.bench.pinned]
    batch.sizes = [SPAN]


@row("A destination 1 TiB above the device's buffer", WITH_COPY, alone=True)
def _device_address_far_outside(batch: Batch) -> None:
    batch.destinations = [batch.bench.device + (1 << 40)]


@row("Source 0x10", WITH_COPY, alone=True)
def _host_address_0x10(batch: Batch) -> None:
    batch.sources = [0x10]


@row("A pageable source in a page that nobody may touch", WITH_COPY, alone=True)
def _pageable_address_not_mapped(batch: Batch) -> None:
    batch.sources = [Pages().hole]


_REGION = 1 << 20


def _across_the_middle(batch: Batch) -> Pages:
    """Let the source straddle the middle of a region of pageable memory."""
    pages = Pages(_REGION)
    batch.sources = [pages.address + _REGION // 2 - 32]
    batch.readable.append((pages.address, _REGION))
    return pages


@row("The source lies inside one registered range", WITH_COPY)
def _registered_once(batch: Batch) -> None:
    pages = _across_the_middle(batch)
    batch.register(pages.address, _REGION)


@row("The source lies across two adjacent registered ranges", WITH_COPY)
def _registered_adjacent(batch: Batch) -> None:
    pages = _across_the_middle(batch)
    batch.register(pages.address, _REGION // 2)
    batch.register(pages.address + _REGION // 2, _REGION // 2)


@row("Only the first half of the source is registered", WITH_COPY)
def _registered_half(batch: Batch) -> None:
    pages = _across_the_middle(batch)
    batch.register(pages.address, _REGION // 2)


# failIdx and the parameter list ----------------------------------------------------------------------------


@row("failIdx NULL, valid batch", WITH_3D, nine_only=True)
def _fail_index_null(batch: Batch) -> None:
    batch.null_fail_index = True


@row("failIdx NULL, and the only size is 0", nine_only=True)
def _fail_index_null_bad_batch(batch: Batch) -> None:
    batch.null_fail_index = True
    batch.sizes = [0]


@row("Called with the other ABI's parameter list: without failIdx, or with it", WITH_3D, alone=True)
def _wrong_parameter_list(batch: Batch) -> None:
    batch.wrong_list = True
