"""Host memory in the place of CUDA's, for calls of which it is known that they copy nothing."""

from __future__ import annotations

import ctypes

from pytest_cudabatch.cuda.memory import DeviceBuffer, PinnedBuffer

__all__ = ["HostMemory"]


class HostMemory:
    """What a plan's buffers need, where there is no driver: each of them is ordinary memory of the process.

    Nothing is ever under way, so there is nothing to wait for.
    """

    def __init__(self) -> None:
        self._live: dict[int, ctypes.Array[ctypes.c_uint8]] = {}

    def malloc(self, nbytes: int) -> DeviceBuffer:
        """Allocate what stands for device memory. The caller frees it."""
        return DeviceBuffer(self._allocate(nbytes), nbytes)

    def free(self, buffer: DeviceBuffer) -> None:
        """Free what ``malloc`` returned."""
        del self._live[buffer.address]

    def malloc_host(self, nbytes: int) -> PinnedBuffer:
        """Allocate what stands for pinned memory. The caller frees it."""
        return PinnedBuffer(self._allocate(nbytes), nbytes)

    def free_host(self, buffer: PinnedBuffer) -> None:
        """Free what ``malloc_host`` returned."""
        del self._live[buffer.address]

    def memcpy(self, dst: int, src: int, nbytes: int) -> None:
        """Copy at once."""
        ctypes.memmove(dst, src, nbytes)

    def memset(self, dst: int, value: int, nbytes: int) -> None:
        """Set each of ``nbytes`` bytes to ``value`` (0 to 255)."""
        ctypes.memset(dst, value, nbytes)

    def device_synchronize(self) -> None:
        """Return at once."""

    def stream_synchronize(self, stream: int) -> None:
        """Return at once."""

    def _allocate(self, nbytes: int) -> int:
        array = (ctypes.c_uint8 * nbytes)()
        address = ctypes.addressof(array)
        self._live[address] = array
        return address
