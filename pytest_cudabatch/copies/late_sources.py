"""Sources whose bytes come late: from queued work that has not run when the copies are asked for."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from pytest_cudabatch.copies.pattern import STALE
from pytest_cudabatch.copies.plan import Place
from pytest_cudabatch.cuda import DeviceBuffer, Memory, PinnedBuffer

if TYPE_CHECKING:
    from pytest_cudabatch.copies.bound import BoundPlan
    from pytest_cudabatch.cuda import Runtime

__all__ = ["LateSources", "fill_buffer"]


def fill_buffer(memory: Memory, buffer: DeviceBuffer | PinnedBuffer, value: int) -> None:
    """Set every byte of ``buffer`` to ``value``; device memory may get it after the return."""
    if isinstance(buffer, PinnedBuffer):
        buffer.bytes.fill(value)
    else:
        memory.memset(buffer.address, value, buffer.nbytes)


class LateSources:
    """The bytes of a plan's sources, kept elsewhere until a stream supplies them.

    What belongs into a source lies in a buffer in the other memory, since only such a copy is asynchronous.
    The buffers are freed with the plan.
    """

    def __init__(self, plan: BoundPlan, runtime: Runtime) -> None:
        """Take the sources' bytes away: they hold STALE, and the destinations are blank."""
        self._runtime = runtime
        self._sources = plan.sources
        self._kept: dict[Place, DeviceBuffer | PinnedBuffer] = {}
        with contextlib.ExitStack() as allocated:
            for place, source in self._sources.items():
                self._kept[place] = self._elsewhere(place, source.nbytes, allocated)
                runtime.memcpy(self._kept[place].address, source.address, source.nbytes)
                fill_buffer(runtime, source, STALE)
            plan.free_with_it(allocated.pop_all())
        plan.blank_destinations()
        runtime.device_synchronize()

    def supply(self, stream: int) -> None:
        """Enqueue on ``stream`` what writes the right bytes."""
        for place, source in self._sources.items():
            self._runtime.enqueue_memcpy(source.address, self._kept[place].address, source.nbytes, stream)

    def spoil(self, stream: int) -> None:
        """Enqueue on ``stream`` what overwrites them by the bytes that lie one further."""
        for place, source in self._sources.items():
            moved = self._kept[place].address + 1
            self._runtime.enqueue_memcpy(source.address, moved, source.nbytes - 1, stream)

    def _elsewhere(
        self, place: Place, nbytes: int, allocated: contextlib.ExitStack
    ) -> DeviceBuffer | PinnedBuffer:
        runtime = self._runtime
        if place is Place.DEVICE:
            pinned = runtime.malloc_host(nbytes)
            allocated.callback(runtime.free_host, pinned)
            return pinned
        device = runtime.malloc(nbytes)
        allocated.callback(runtime.free, device)
        return device
