"""A plan with memory: its buffers in one runtime, what they hold, and whether the copies came right."""

from __future__ import annotations

import contextlib
from types import TracebackType
from typing import TYPE_CHECKING

import numpy as np

from pytest_cudabatch.copies.plan import Place, Plan
from pytest_cudabatch.copies.problems import Problem, Ranges, find_problems
from pytest_cudabatch.copies.ranges import copy_ranges
from pytest_cudabatch.cuda import DeviceBuffer, PinnedBuffer, Runtime

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["CANVAS", "BoundPlan"]

CANVAS = 0xFF
"""What destinations hold before the copies. No source byte has this value, so a byte not copied shows."""

_BLOCK_BYTES = 1_048_573  # a prime, so that ranges at round distances from each other hold other bytes


class BoundPlan:
    """A plan's buffers, in pinned and in device memory of ``runtime``, from here until ``close``.

    ``dsts``, ``srcs`` (absolute addresses) and ``sizes`` (bytes) are contiguous uint64 arrays with one
    element per descriptor: the arrays that a batch call takes. Raises CudaError where the memory cannot
    be had. The methods do not wait for streams: synchronise before ``verify``.
    """

    def __init__(self, plan: Plan, runtime: Runtime) -> None:
        self.plan = plan
        self.runtime = runtime
        self._expected: dict[Place, NDArray[np.uint8]] = {}
        self._images: dict[Place, NDArray[np.uint8]] = {}
        with contextlib.ExitStack() as allocated:
            self._sources = self._allocate(plan.src_extents, allocated)
            self._destinations = self._allocate(plan.dst_extents, allocated)
            self._memory = allocated.pop_all()
        self.sizes = plan.sizes
        self.srcs = _addresses(self._sources, plan.src_places, plan.src_offsets)
        self.dsts = _addresses(self._destinations, plan.dst_places, plan.dst_offsets)

    @property
    def count(self) -> int:
        """The number of descriptors."""
        return self.plan.count

    def fill(self) -> None:
        """Write the sources' bytes, which follow from the plan's seed, and CANVAS over the destinations.

        Returns when all of it is in memory, whatever stream the copies then run on.
        """
        for place, buffer in self._sources.items():
            image = self._source_image(place)
            if isinstance(buffer, PinnedBuffer):
                buffer.bytes[:] = image
            else:
                self.runtime.memcpy(buffer.address, image.ctypes.data, buffer.nbytes)
        for buffer in self._destinations.values():
            if isinstance(buffer, PinnedBuffer):
                buffer.bytes.fill(CANVAS)
            else:
                self.runtime.memset(buffer.address, CANVAS, buffer.nbytes)
        self.runtime.device_synchronize()

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
            found += find_problems(name, self._read(self._destinations[place]), expected, self._ranges(place))
        for place, buffer in self._sources.items():
            name = f"{place.name.lower()} source"
            found += find_problems(name, self._read(buffer), self._source_image(place), Ranges.none())
        return found

    def close(self) -> None:
        """Free the buffers. Idempotent."""
        self._memory.close()

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
            pinned = self.runtime.malloc_host(extents[Place.HOST])
            allocated.callback(self.runtime.free_host, pinned)
            buffers[Place.HOST] = pinned
        if extents[Place.DEVICE]:
            device = self.runtime.malloc(extents[Place.DEVICE])
            allocated.callback(self.runtime.free, device)
            buffers[Place.DEVICE] = device
        return buffers

    def _source_image(self, place: Place) -> NDArray[np.uint8]:
        if place not in self._images:
            random = np.random.default_rng((self.plan.seed, place))
            block = np.frombuffer(random.bytes(_BLOCK_BYTES), dtype=np.uint8)
            self._images[place] = np.resize(np.minimum(block, CANVAS - 1), self.plan.src_extents[place])
        return self._images[place]

    def _expected_image(self, destination: Place) -> NDArray[np.uint8]:
        plan = self.plan
        image = np.full(plan.dst_extents[destination], CANVAS, dtype=np.uint8)
        for source in self._sources:
            members = np.flatnonzero((plan.dst_places == destination) & (plan.src_places == source))
            copy_ranges(
                image,
                plan.dst_offsets[members],
                self._source_image(source),
                plan.src_offsets[members],
                plan.sizes[members],
            )
        return image

    def _ranges(self, destination: Place) -> Ranges:
        members = np.flatnonzero(self.plan.dst_places == destination)
        return Ranges.sort(members, self.plan.dst_offsets[members], self.plan.sizes[members])

    def _read(self, buffer: DeviceBuffer | PinnedBuffer) -> NDArray[np.uint8]:
        """Return the buffer's bytes as they are now: a view of pinned memory, a copy of device memory."""
        if isinstance(buffer, PinnedBuffer):
            return buffer.bytes
        copy = np.empty(buffer.nbytes, dtype=np.uint8)
        self.runtime.memcpy(copy.ctypes.data, buffer.address, buffer.nbytes)
        return copy


def _addresses(
    buffers: dict[Place, DeviceBuffer | PinnedBuffer], places: NDArray[np.uint8], offsets: NDArray[np.uint64]
) -> NDArray[np.uint64]:
    bases = np.array([buffers[place].address if place in buffers else 0 for place in Place], dtype=np.uint64)
    addresses = bases[places] + offsets
    addresses.setflags(write=False)
    return addresses
