"""Host memory of the program that CUDA is told of, in two parts that lie side by side."""

from __future__ import annotations

import ctypes
import mmap
from typing import TYPE_CHECKING

from pytest_cudabatch.cuda.memory import DeviceBuffer, PinnedBuffer

if TYPE_CHECKING:
    from pytest_cudabatch.cuda.runtime import Runtime

__all__ = ["RegisteredHalves"]

_PAGE = mmap.PAGESIZE


class RegisteredHalves:
    """A runtime's memory, except that each host buffer is two registered ranges which meet at a page.

    Hosts that register a cache piece by piece have such memory: no copy may reach across the border, which
    CUDA answers by invalid value.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._live: dict[int, tuple[mmap.mmap, int]] = {}

    def malloc(self, nbytes: int) -> DeviceBuffer:
        """Allocate device memory. The caller frees it."""
        return self._runtime.malloc(nbytes)

    def free(self, buffer: DeviceBuffer) -> None:
        """Free device memory."""
        self._runtime.free(buffer)

    def malloc_host(self, nbytes: int) -> PinnedBuffer:
        """Map memory and register both halves of it. Raises ValueError for less than two pages."""
        border = nbytes // 2 // _PAGE * _PAGE
        if border == 0:
            raise ValueError(f"{nbytes} bytes are not two pages, each of which can be registered")
        mapping = mmap.mmap(-1, nbytes)
        address = ctypes.addressof(ctypes.c_char.from_buffer(mapping))
        self._runtime.check("cudaHostRegister", address, border, 0)
        self._runtime.check("cudaHostRegister", address + border, nbytes - border, 0)
        self._live[address] = (mapping, border)
        return PinnedBuffer(address, nbytes)

    def free_host(self, buffer: PinnedBuffer) -> None:
        """Unregister both halves; the memory goes with its last view."""
        _, border = self._live.pop(buffer.address)
        self._runtime.check("cudaHostUnregister", buffer.address)
        self._runtime.check("cudaHostUnregister", buffer.address + border)

    def memcpy(self, dst: int, src: int, nbytes: int) -> None:
        """Copy between any two memories and wait; host memory of ours is read and written directly."""
        self._runtime.memcpy(dst, src, nbytes)

    def memset(self, dst: int, value: int, nbytes: int) -> None:
        """Set each of ``nbytes`` bytes of device memory to ``value`` (0 to 255)."""
        self._runtime.memset(dst, value, nbytes)

    def device_synchronize(self) -> None:
        """Wait for all work of the current device."""
        self._runtime.device_synchronize()

    def stream_synchronize(self, stream: int) -> None:
        """Wait for all work on ``stream``."""
        self._runtime.stream_synchronize(stream)
