"""The cases of the batch call's contract: each spoils, or varies, one valid batch.

Imported in scenario processes. The answers stand in test_simcuda_batch.py.
"""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Callable

from simulated import (
    ORDER_ANY,
    ORDER_DURING_API_CALL,
    Attributes,
    Batch,
    page_before_a_hole,
    readable_pages,
)

CASES: dict[str, Callable[[Batch], None]] = {}


def case(function: Callable[[Batch], None]) -> Callable[[Batch], None]:
    CASES[function.__name__] = function
    return function


@case
def normal(batch: Batch) -> None:
    pass


@case
def device_to_device(batch: Batch) -> None:
    batch.sources = [batch.device + 4096]


@case
def host_to_host(batch: Batch) -> None:
    batch.destinations = [batch.pinned + 4096]


@case
def mixed_directions(batch: Batch) -> None:
    batch.set_copies(3)
    batch.sources[1], batch.destinations[1] = batch.device + 4096, batch.pinned + 8192
    batch.sources[2] = batch.device + 6000


@case
def overlapping_destinations(batch: Batch) -> None:
    batch.set_copies(2)
    batch.destinations[1] = batch.destinations[0] + 8
    batch.sources[1] = batch.sources[0] + 8


@case
def flag_prefer_overlap(batch: Batch) -> None:
    batch.attributes[0].flags = 1


@case
def order_any(batch: Batch) -> None:
    batch.attributes[0].order = ORDER_ANY


@case
def order_during_api_call(batch: Batch) -> None:
    batch.attributes[0].order = ORDER_DURING_API_CALL


def _pageable_source(batch: Batch) -> None:
    buffer = ctypes.create_string_buffer(b"pageable" * 8, 64)
    batch.kept = buffer  # type: ignore[attr-defined]
    batch.sources = [ctypes.addressof(buffer)]


@case
def pageable_source_order_stream(batch: Batch) -> None:
    _pageable_source(batch)


@case
def pageable_source_order_during_api_call(batch: Batch) -> None:
    _pageable_source(batch)
    batch.attributes[0].order = ORDER_DURING_API_CALL


@case
def stream_null(batch: Batch) -> None:
    batch.stream = 0


@case
def stream_legacy(batch: Batch) -> None:
    batch.stream = 1


@case
def stream_per_thread(batch: Batch) -> None:
    batch.stream = 2


@case
def count_zero(batch: Batch) -> None:
    batch.count = 0


@case
def size_zero_second_of_two(batch: Batch) -> None:
    batch.set_copies(2)
    batch.sizes[1] = 0


@case
def size_zero_only(batch: Batch) -> None:
    batch.sizes = [0]


@case
def no_attributes(batch: Batch) -> None:
    batch.attribute_count = 0
    batch.null_attributes = True


@case
def order_zero(batch: Batch) -> None:
    batch.attributes[0].order = 0


@case
def null_destination_second_of_three(batch: Batch) -> None:
    batch.set_copies(3)
    batch.destinations[1] = 0


@case
def one_index_before_a_hole(batch: Batch) -> None:
    batch.set_copies(100)
    address = page_before_a_hole(8)
    ctypes.c_uint64.from_address(address).value = 0
    batch.first_copies_address = address


def _two_attributes(batch: Batch, copies: int, first_copies: list[int]) -> None:
    batch.set_copies(copies)
    batch.attributes = [Attributes() for _ in first_copies]
    batch.first_copies = first_copies


@case
def two_attributes(batch: Batch) -> None:
    _two_attributes(batch, 2, [0, 1])
    batch.attributes[1].order = ORDER_ANY


@case
def first_index_one(batch: Batch) -> None:
    _two_attributes(batch, 2, [1])


@case
def indices_not_increasing(batch: Batch) -> None:
    _two_attributes(batch, 3, [0, 2, 1])


@case
def indices_equal(batch: Batch) -> None:
    _two_attributes(batch, 2, [0, 0])


@case
def index_beyond_count(batch: Batch) -> None:
    _two_attributes(batch, 2, [0, 5])


@case
def more_attributes_than_copies(batch: Batch) -> None:
    _two_attributes(batch, 1, [0, 1])


@case
def order_four(batch: Batch) -> None:
    batch.attributes[0].order = 4


@case
def flags_two(batch: Batch) -> None:
    batch.attributes[0].flags = 2


@case
def hint_device_99(batch: Batch) -> None:
    batch.attributes[0].destination_hint = (1, 99)


@case
def hints_host_to_device(batch: Batch) -> None:
    batch.attributes[0].source_hint = (2, 0)
    batch.attributes[0].destination_hint = (1, 0)


@case
def source_is_destination(batch: Batch) -> None:
    batch.sources = list(batch.destinations)


@case
def odd_addresses_and_sizes(batch: Batch) -> None:
    batch.set_copies(5, size=61)
    batch.destinations = [address + 3 for address in batch.destinations]


@case
def fail_index_null(batch: Batch) -> None:
    batch.null_fail_index = True


@case
def fail_index_null_bad_batch(batch: Batch) -> None:
    batch.null_fail_index = True
    batch.sizes = [0]


def _registered(batch: Batch, *spans: tuple[int, int]) -> int:
    """Map two pages and register spans of them: offset and size. Return the address in their middle."""
    start = readable_pages(2)
    for offset, size in spans:
        assert batch.process.runtime.cudaHostRegister(start + offset, size, 0) == 0
    return start + mmap.PAGESIZE


@case
def source_inside_one_registration(batch: Batch) -> None:
    batch.sources = [_registered(batch, (0, 2 * mmap.PAGESIZE)) - 32]


@case
def source_across_two_registrations(batch: Batch) -> None:
    page = mmap.PAGESIZE
    batch.sources = [_registered(batch, (0, page), (page, page)) - 32]


@case
def source_half_registered(batch: Batch) -> None:
    batch.sources = [_registered(batch, (0, mmap.PAGESIZE)) - 32]


@case
def past_the_allocation(batch: Batch) -> None:
    batch.destinations = [batch.device + batch.SPAN - 8]


@case
def device_address_far_outside(batch: Batch) -> None:
    batch.destinations = [batch.device + (1 << 30)]


@case
def host_address_0x10(batch: Batch) -> None:
    batch.sources = [0x10]


@case
def pageable_address_not_mapped(batch: Batch) -> None:
    batch.sources = [page_before_a_hole(8) + 8 + mmap.PAGESIZE // 2]


@case
def destroyed_stream(batch: Batch) -> None:
    assert batch.process.runtime.cudaStreamDestroy(batch.stream) == 0
