"""Addresses become offsets within the allocation that was there at the time, else within stretches."""

from __future__ import annotations

import numpy as np

from pytest_cudabatch.copies import MemoryKind
from pytest_cudabatch.recording.regions import CLUSTER_GAP, Ends, Regions

HOST = 0x7F00_0000_0000
DEVICE = 0x7E00_0000_0000


def ends(sources: list[int], destinations: list[int], sizes: list[int]) -> Ends:
    return Ends(*(np.array(values, np.uint64) for values in (sources, destinations, sizes)))


def resolved(regions: Regions, first: int = 0) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Return (region, offset) of each source and of each destination."""
    _, *sides = regions.resolve(first)
    sources, destinations = (
        list(zip(side.regions.tolist(), side.offsets.tolist(), strict=True)) for side in sides
    )
    return sources, destinations


def test_allocations_of_the_time() -> None:
    regions = Regions()
    regions.taken(DEVICE, 1000, MemoryKind.DEVICE)
    regions.taken(HOST, 4096, MemoryKind.PINNED)
    regions.taken(HOST + (1 << 30), 4096, MemoryKind.PINNED)  # never used
    regions.used(ends([HOST, HOST + 4095], [DEVICE + 8, DEVICE + 999], [8, 1]))
    regions.freed(DEVICE)
    regions.taken(DEVICE, 500, MemoryKind.MANAGED)
    regions.used(ends([HOST + 16], [DEVICE + 8], [8]))
    assert resolved(regions) == ([(1, 0), (1, 4095), (1, 16)], [(0, 8), (0, 999), (2, 8)])
    assert regions.described() == [
        (MemoryKind.DEVICE, 1000, 0),
        (MemoryKind.PINNED, 4096, 0),
        (MemoryKind.MANAGED, 500, 0),
    ]


def test_what_lies_in_no_allocation_is_clustered_by_distance() -> None:
    regions = Regions()
    regions.taken(DEVICE, 1 << 20, MemoryKind.DEVICE)
    far = HOST + 100 + 50 + CLUSTER_GAP + 1
    regions.used(ends([far, HOST + 100, HOST + 40], [DEVICE, DEVICE + 50, DEVICE + 100], [10, 50, 10]))
    assert resolved(regions, first=7)[0] == [(8, 0), (9, 60), (9, 0)]
    assert regions.described() == [
        (MemoryKind.DEVICE, 1 << 20, 0),
        (MemoryKind.PAGEABLE, 10, far % 4096),
        (MemoryKind.PAGEABLE, 110, (HOST + 40) % 4096),
    ]


def test_source_and_destination_share_stretches() -> None:
    regions = Regions()
    regions.used(ends([HOST], [HOST + 5000], [100]))
    assert resolved(regions) == ([(0, 0)], [(0, 5000)])
    assert regions.described() == [(MemoryKind.PAGEABLE, 5100, 0)]


def test_null_and_addresses_that_no_process_has() -> None:
    regions = Regions()
    regions.used(ends([0, 0x10], [1 << 60, HOST], [8, 8]))
    assert resolved(regions) == ([(0, 0), (0, 16)], [(1, 0), (2, 0)])
    assert [kind for kind, *_ in regions.described()] == [
        MemoryKind.NULL,
        MemoryKind.BEYOND,
        MemoryKind.PAGEABLE,
    ]


def test_a_range_past_its_allocation_stays_one_of_it() -> None:
    regions = Regions()
    regions.taken(DEVICE, 1000, MemoryKind.DEVICE)
    regions.used(ends([DEVICE + 990], [DEVICE + 1000], [100]))
    sources, destinations = resolved(regions)
    assert sources == [(0, 990)]
    assert destinations == [(1, 0)]  # it begins outside


def test_memory_whose_end_nobody_saw_is_gone_when_other_memory_is_there() -> None:
    regions = Regions()
    regions.taken(DEVICE, 1 << 20, MemoryKind.DEVICE)
    regions.taken(DEVICE + 4096, 4096, MemoryKind.DEVICE)
    regions.used(ends([DEVICE + 4096, DEVICE], [DEVICE + 4097] * 2, [1, 1]))
    assert [number for number, _ in resolved(regions)[0]] == [0, 1]
    assert regions.described()[1] == (MemoryKind.PAGEABLE, 1, 0)


def test_an_allocation_of_unknown_size_reaches_to_the_next_one() -> None:
    regions = Regions()
    regions.taken(DEVICE, 0, MemoryKind.DEVICE)
    regions.taken(DEVICE + (1 << 20), 4096, MemoryKind.PINNED)
    regions.used(ends([DEVICE + 5000], [DEVICE + (1 << 20)], [16]))
    assert resolved(regions) == ([(0, 5000)], [(1, 0)])
    assert regions.described()[0] == (MemoryKind.DEVICE, 5000 + 4096, 0)


def test_nothing_at_all() -> None:
    regions = Regions()
    regions.taken(DEVICE, 1 << 20, MemoryKind.DEVICE)
    assert resolved(regions) == ([], [])
    assert regions.described() == []
