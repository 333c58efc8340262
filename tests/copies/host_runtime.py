"""A stand-in for a Runtime whose device memory is host memory, so that a test can write anywhere."""

from __future__ import annotations

import ctypes

import numpy as np

from pytest_cudabatch.cuda import DeviceBuffer, PinnedBuffer
from pytest_cudabatch.errors import CudaError


class HostRuntime:
    """The part of Runtime that buffers of a plan use. ``room`` is how many bytes can be had in all."""

    def __init__(self, room: int = 1 << 30) -> None:
        self.room = room
        self.live: dict[int, np.ndarray] = {}

    def _take(self, name: str, nbytes: int) -> int:
        if nbytes + sum(array.nbytes for array in self.live.values()) > self.room:
            raise CudaError(name, 2)
        array = np.zeros(nbytes, dtype=np.uint8)
        self.live[array.ctypes.data] = array
        return array.ctypes.data

    @staticmethod
    def view(buffer: DeviceBuffer | PinnedBuffer) -> np.ndarray:
        """Return a buffer's memory, a device's too."""
        return np.ctypeslib.as_array((ctypes.c_uint8 * buffer.nbytes).from_address(buffer.address))

    def malloc(self, nbytes: int) -> DeviceBuffer:
        return DeviceBuffer(self._take("cudaMalloc", nbytes), nbytes)

    def malloc_host(self, nbytes: int) -> PinnedBuffer:
        return PinnedBuffer(self._take("cudaMallocHost", nbytes), nbytes)

    def free(self, buffer: DeviceBuffer) -> None:
        del self.live[buffer.address]

    def free_host(self, buffer: PinnedBuffer) -> None:
        del self.live[buffer.address]

    def memcpy(self, dst: int, src: int, nbytes: int) -> None:
        ctypes.memmove(dst, src, nbytes)

    def memset(self, dst: int, value: int, nbytes: int) -> None:
        ctypes.memset(dst, value, nbytes)

    def device_synchronize(self) -> None:
        """Nothing is ever under way."""
