"""A plan with memory: its buffers, what they hold, and whether the copies came right."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING

import numpy as np

from pytest_cudabatch.copies.guarded import before_a_hole
from pytest_cudabatch.copies.late_sources import LateSources, fill_buffer
from pytest_cudabatch.copies.pattern import CANVAS, Pattern
from pytest_cudabatch.copies.plan import Place, Plan
from pytest_cudabatch.copies.problems import Problem, Ranges, find_problems
from pytest_cudabatch.copies.ranges import copy_ranges
from pytest_cudabatch.cuda import DeviceBuffer, Memory, PinnedBuffer

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pytest_cudabatch.cuda import Runtime

__all__ = ["BoundPlan"]

_PIECE_BYTES = 1 << 20  # buffers are compared in pieces that stay in the processor's cache


class BoundPlan:
    """A plan's buffers, in pinned and in device memory of ``memory``, from here until ``close``.

    ``dsts``, ``srcs`` (absolute addresses) and ``sizes`` (bytes) are contiguous uint64 arrays with one
    element per descriptor: the arrays that a batch call takes. Raises CudaError where the memory cannot
    be had. The methods do not wait for streams: synchronise before ``verify``.
    """

    def __init__(self, plan: Plan, memory: Memory) -> None:
        self.plan = plan
        self.memory = memory
        self._expected: dict[Place, NDArray[np.uint8]] = {}
        longest = int(plan.sizes.max(initial=0))
        self._patterns = {
            place: Pattern((plan.seed, place), longest) for place in Place if plan.src_extents[place]
        }
        with contextlib.ExitStack() as allocated:
            self._sources = self._allocate(plan.src_extents, allocated)
            self._destinations = self._allocate(plan.dst_extents, allocated)
            self._allocations = allocated.pop_all()
        self.sizes = plan.sizes
        self.srcs = _addresses(self._sources, plan.src_places, plan.src_offsets)
        self.dsts = _addresses(self._destinations, plan.dst_places, plan.dst_offsets)

    @property
    def count(self) -> int:
        """The number of descriptors."""
        return self.plan.count

    def buffer(self, place: Place) -> DeviceBuffer | PinnedBuffer:
        """Return the one buffer in ``place``. Raises ValueError for a plan with none there, or with two."""
        found = [buffers[place] for buffers in (self._sources, self._destinations) if place in buffers]
        if len(found) != 1:
            raise ValueError(f"{self.plan} has {len(found)} buffers in {place.name.lower()} memory")
        return found[0]

    @property
    def allocations(self) -> tuple[tuple[int, int], ...]:
        """Address and size in bytes of each of the buffers."""
        buffers = (*self._sources.values(), *self._destinations.values())
        return tuple((buffer.address, buffer.nbytes) for buffer in buffers)

    def fill(self) -> None:
        """Write the sources' bytes, which follow from the plan's seed, and CANVAS over the destinations.

        Returns when all of it is in memory, whatever stream the copies then run on.
        """
        for place, buffer in self._sources.items():
            for start, piece in self._patterns[place].pieces(buffer.nbytes):
                if isinstance(buffer, PinnedBuffer):
                    buffer.bytes[start : start + len(piece)] = piece
                else:
                    self.memory.memcpy(buffer.address + start, piece.ctypes.data, len(piece))
        self.blank_destinations()
        self.memory.device_synchronize()

    def withhold_sources(self, runtime: Runtime) -> LateSources:
        """Put other bytes into the sources; the result writes their right ones when a stream comes to it.

        Destinations are blank again, too. Returns when all of it is in memory.
        """
        return LateSources(self, runtime)

    def end_arrays_at_a_hole(self) -> None:
        """Move ``dsts``, ``srcs`` and ``sizes`` so that a read behind the last element of any faults."""
        self.dsts, self.srcs, self.sizes = map(before_a_hole, (self.dsts, self.srcs, self.sizes))

    @property
    def sources(self) -> dict[Place, DeviceBuffer | PinnedBuffer]:
        """The source buffers, by the memory that they lie in."""
        return dict(self._sources)

    def blank_destinations(self) -> None:
        """Write CANVAS over the destinations; without waiting for it, in device memory."""
        for buffer in self._destinations.values():
            fill_buffer(self.memory, buffer, CANVAS)

    def expected(self) -> dict[Place, NDArray[np.uint8]]:
        """Return what each destination buffer holds after right copies, guards and gaps included."""
        if not self._expected:
            self._expected = {place: self._expected_image(place) for place in self._destinations}
        return self._expected

    def verify(self) -> list[Problem]:
        """Compare all buffers whole, and return what is wrong; an empty list means right.

        Destinations must hold their copies and nothing else, sources what ``fill`` wrote.
        """
        found: list[Problem] = []
        for place, expected in self.expected().items():
            name = f"{place.name.lower()} destination"
            found += self._compare(name, self._destinations[place], _cut(expected), self._ranges(place))
        for place, buffer in self._sources.items():
            name = f"{place.name.lower()} source"
            found += self._compare(name, buffer, self._patterns[place].pieces(buffer.nbytes), Ranges.none())
        return found

    def free_with_it(self, allocations: contextlib.ExitStack) -> None:
        """Close ``allocations`` before the plan's own buffers are freed."""
        self._allocations.push(allocations)

    def close(self) -> None:
        """Free the buffers. Idempotent."""
        self._allocations.close()

    def __enter__(self) -> BoundPlan:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _allocate(
        self, extents: tuple[int, int], allocated: contextlib.ExitStack
    ) -> dict[Place, DeviceBuffer | PinnedBuffer]:
        buffers: dict[Place, DeviceBuffer | PinnedBuffer] = {}
        if extents[Place.HOST]:
            pinned = self.memory.malloc_host(extents[Place.HOST])
            allocated.callback(self.memory.free_host, pinned)
            buffers[Place.HOST] = pinned
        if extents[Place.DEVICE]:
            device = self.memory.malloc(extents[Place.DEVICE])
            allocated.callback(self.memory.free, device)
            buffers[Place.DEVICE] = device
        return buffers

    def _expected_image(self, destination: Place) -> NDArray[np.uint8]:
        plan = self.plan
        image = np.full(plan.dst_extents[destination], CANVAS, dtype=np.uint8)
        for source in self._sources:
            members = np.flatnonzero((plan.dst_places == destination) & (plan.src_places == source))
            pattern = self._patterns[source]
            copy_ranges(
                image,
                plan.dst_offsets[members],
                pattern.bytes,
                pattern.starts(plan.src_offsets[members]),
                plan.sizes[members],
            )
        return image

    def _ranges(self, destination: Place) -> Ranges:
        members = np.flatnonzero(self.plan.dst_places == destination)
        return Ranges.sort(members, self.plan.dst_offsets[members], self.plan.sizes[members])

    def _compare(
        self,
        name: str,
        buffer: DeviceBuffer | PinnedBuffer,
        expected: Iterable[tuple[int, NDArray[np.uint8]]],
        ranges: Ranges,
    ) -> list[Problem]:
        """Compare a buffer with its expected bytes, piece by piece; only a wrong one is then read whole."""
        pieces = list(expected)
        scratch = np.empty(max(len(piece) for _, piece in pieces), dtype=np.uint8)
        if all(
            np.array_equal(self._read(buffer, start, scratch[: len(piece)]), piece) for start, piece in pieces
        ):
            return []
        actual = self._read(buffer, 0, np.empty(buffer.nbytes, dtype=np.uint8))
        return find_problems(name, actual, np.concatenate([piece for _, piece in pieces]), ranges)

    def _read(
        self, buffer: DeviceBuffer | PinnedBuffer, start: int, scratch: NDArray[np.uint8]
    ) -> NDArray[np.uint8]:
        """Return ``len(scratch)`` bytes as they are now: a view of pinned memory, or ``scratch`` filled."""
        if isinstance(buffer, PinnedBuffer):
            return buffer.bytes[start : start + len(scratch)]
        self.memory.memcpy(scratch.ctypes.data, buffer.address + start, len(scratch))
        return scratch


def _cut(image: NDArray[np.uint8]) -> Iterator[tuple[int, NDArray[np.uint8]]]:
    """Yield ``image`` in pieces, each with its offset."""
    for start in range(0, len(image), _PIECE_BYTES):
        yield start, image[start : start + _PIECE_BYTES]


def _addresses(
    buffers: dict[Place, DeviceBuffer | PinnedBuffer], places: NDArray[np.uint8], offsets: NDArray[np.uint64]
) -> NDArray[np.uint64]:
    bases = np.array([buffers[place].address if place in buffers else 0 for place in Place], dtype=np.uint64)
    addresses = bases[places] + offsets
    addresses.setflags(write=False)
    return addresses
