"""From addresses to regions: the allocations that were there at the time, or stretches around the rest."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pytest_cudabatch.copies.traces import MemoryKind

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["CLUSTER_GAP", "Ends", "Places", "Regions"]

CLUSTER_GAP = 64 * 1024
"""Ranges in no known allocation belong to one region where no more bytes than this lie between them."""

_LOWEST, _HIGHEST = 64 * 1024, 1 << 56
"""Below (vm.mmap_min_addr) and above (five-level paging) no memory of a process can lie."""

_ENDLESS = 1 << 40
"""How far an allocation of unknown size may reach; the next one ends it."""

_UNKNOWN = -1
_PAGE = 4096


@dataclass(frozen=True)
class Ends:
    """The addresses and sizes of one batch."""

    sources: NDArray[np.uint64]
    destinations: NDArray[np.uint64]
    sizes: NDArray[np.uint64]


@dataclass
class Places:
    """Where descriptors begin: a region's number and the offset in it."""

    regions: NDArray[np.int64]
    offsets: NDArray[np.uint64]


@dataclass
class _Region:
    kind: MemoryKind
    start: int
    nbytes: int

    @property
    def known_nbytes(self) -> int:
        """How many bytes it surely has."""
        return 1 if self.nbytes == _ENDLESS else self.nbytes


class Regions:
    """One process's memory over time. Batches are resolved together while no allocation comes or goes."""

    def __init__(self) -> None:
        self._allocations: list[_Region] = []
        self._live: list[tuple[int, int]] = []  # (start, number of the allocation), sorted
        self._waiting: list[Ends] = []
        self._sizes: list[NDArray[np.uint64]] = []
        self._resolved: tuple[list[Places], list[Places]] = ([], [])
        self._kept: list[_Region] = []

    def taken(self, address: int, nbytes: int, kind: MemoryKind) -> None:
        """Note an allocation (0 bytes: of unknown size). What was there before must have gone unseen."""
        self._settle()
        end = address + (nbytes or 1)
        self._live = [
            (start, number)
            for start, number in self._live
            if start >= end or start + self._allocations[number].known_nbytes <= address
        ]
        self._allocations.append(_Region(kind, address, nbytes or _ENDLESS))
        insort(self._live, (address, len(self._allocations) - 1))

    def freed(self, address: int) -> None:
        """Note that an allocation goes."""
        place = bisect_right(self._live, (address, len(self._allocations))) - 1
        if place >= 0 and self._live[place][0] == address:
            self._settle()
            del self._live[place]

    def used(self, ends: Ends) -> None:
        """Note a batch."""
        self._waiting.append(ends)

    def resolve(self, first: int) -> tuple[NDArray[np.uint64], Places, Places]:
        """Return sizes, sources and destinations of all descriptors; regions are numbered from ``first`` on.

        Numbers follow the order in which allocations were made, then that in which the rest was first used.
        """
        self._settle()
        sizes = _join(self._sizes, np.uint64)
        sources, destinations = (
            Places(
                _join([places.regions for places in side], np.int64),
                _join([places.offsets for places in side], np.uint64),
            )
            for side in self._resolved
        )
        clusters = self._cluster(sizes, sources, destinations)
        self._renumber(clusters, first, sources, destinations)
        return sizes, sources, destinations

    def described(self) -> list[tuple[int, int, int]]:
        """Return kind, length and address modulo a page of each region that is used, in order."""
        chosen = {MemoryKind.REGISTERED, MemoryKind.PAGEABLE}  # by the program, not by CUDA
        return [
            (region.kind, region.nbytes, region.start % _PAGE if region.kind in chosen else 0)
            for region in self._kept
        ]

    def _settle(self) -> None:
        """Resolve what was used since the allocations last changed."""
        if not self._waiting:
            return
        starts = np.array([start for start, _ in self._live], np.uint64)
        numbers = np.array([number for _, number in self._live], np.int64)
        lengths = np.array([self._allocations[number].nbytes for number in numbers], np.uint64)
        for side, name in zip(self._resolved, ("sources", "destinations"), strict=True):
            addresses = np.concatenate([getattr(ends, name) for ends in self._waiting])
            side.append(_place(addresses, starts, lengths, numbers))
        self._sizes += [ends.sizes for ends in self._waiting]
        self._waiting = []

    def _cluster(self, sizes: NDArray[np.uint64], sources: Places, destinations: Places) -> list[_Region]:
        """Make regions of what lies in no allocation; in place, with numbers behind those of allocations."""
        masks = [places.regions == _UNKNOWN for places in (sources, destinations)]
        addresses = np.concatenate([sources.offsets[masks[0]], destinations.offsets[masks[1]]])
        if not len(addresses):
            return []
        ends = addresses + np.concatenate([sizes[masks[0]], sizes[masks[1]]])
        ends = np.maximum(addresses, ends)  # a size that wraps around is a wrong one
        order = np.argsort(addresses, kind="stable")
        furthest = np.maximum.accumulate(ends[order])
        begins = np.ones(len(order), bool)
        begins[1:] = addresses[order][1:] > furthest[:-1] + np.uint64(CLUSTER_GAP)
        cluster = np.empty(len(order), np.int64)
        cluster[order] = np.cumsum(begins) - 1
        starts = addresses[order][begins]
        starts[starts < _LOWEST] = 0  # what is wrong with NULL and its neighbours is where they lie
        lengths = furthest[np.append(np.flatnonzero(begins)[1:] - 1, len(order) - 1)] - starts
        base = len(self._allocations)
        split = int(masks[0].sum())
        for places, mask, part in zip(
            (sources, destinations), masks, (cluster[:split], cluster[split:]), strict=True
        ):
            places.regions[mask] = base + part
            places.offsets[mask] -= starts[part]
        return [_stretch(int(start), int(length)) for start, length in zip(starts, lengths, strict=True)]

    def _renumber(self, clusters: list[_Region], first: int, sources: Places, destinations: Places) -> None:
        both = np.stack([sources.regions, destinations.regions], axis=1).reshape(-1)
        used, first_uses = np.unique(both, return_index=True)
        allocated = used < len(self._allocations)
        order = np.concatenate([used[allocated], used[~allocated][np.argsort(first_uses[~allocated])]])
        everything = [*self._allocations, *clusters]
        self._kept = [everything[number] for number in order]
        numbers = np.zeros(len(everything), np.int64)
        numbers[order] = np.arange(first, first + len(order))
        for places in (sources, destinations):
            places.regions = numbers[places.regions]
        self._measure(first, sources, destinations)

    def _measure(self, first: int, sources: Places, destinations: Places) -> None:
        """Give an allocation of unknown size the length up to the last descriptor's start and a page."""
        for number, region in enumerate(self._kept, first):
            if region.nbytes == _ENDLESS:
                offsets = [
                    places.offsets[places.regions == number].max(initial=0)
                    for places in (sources, destinations)
                ]
                region.nbytes = int(max(offsets)) + _PAGE


def _stretch(start: int, length: int) -> _Region:
    if start < _LOWEST:
        return _Region(MemoryKind.NULL, start, length)
    return _Region(MemoryKind.BEYOND if start >= _HIGHEST else MemoryKind.PAGEABLE, start, length)


def _place(
    addresses: NDArray[np.uint64],
    starts: NDArray[np.uint64],
    lengths: NDArray[np.uint64],
    numbers: NDArray[np.int64],
) -> Places:
    """Return region and offset of each address; where it lies in none, _UNKNOWN and the address."""
    regions = np.full(len(addresses), _UNKNOWN, np.int64)
    offsets = addresses.copy()
    if len(starts):
        nearest = np.searchsorted(starts, addresses, side="right") - 1
        inside = nearest >= 0
        within = addresses - starts[nearest]
        inside &= within < lengths[nearest]
        regions[inside] = numbers[nearest[inside]]
        offsets[inside] = within[inside]
    return Places(regions, offsets)


def _join(arrays: Sequence[NDArray[Any]], dtype: type[Any]) -> NDArray[Any]:
    return np.concatenate(arrays).astype(dtype) if arrays else np.empty(0, dtype)
