"""Memory of one runtime, by kind: what lies where, and what a test may touch from the host."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["DeviceBuffer", "Memory", "PinnedBuffer"]


@dataclass(frozen=True)
class DeviceBuffer:
    """Device memory from cudaMalloc: ``nbytes`` bytes at ``address``, out of the host's reach."""

    address: int
    nbytes: int


@dataclass(frozen=True)
class PinnedBuffer:
    """Page-locked host memory from cudaMallocHost: ``nbytes`` bytes at ``address``."""

    address: int
    nbytes: int

    @property
    def bytes(self) -> NDArray[np.uint8]:
        """A writable view of the memory itself. It must not be used after the buffer is freed."""
        import numpy as np  # noqa: PLC0415 - this module is imported where numpy may not be

        return np.ctypeslib.as_array((ctypes.c_uint8 * self.nbytes).from_address(self.address))


class Memory(Protocol):
    """Whoever has memory of both kinds, and copies between them: a runtime, or the driver alone.

    Every method raises CudaError where it fails.
    """

    def malloc(self, nbytes: int) -> DeviceBuffer:
        """Allocate device memory. The caller frees it."""

    def free(self, buffer: DeviceBuffer) -> None:
        """Free device memory."""

    def malloc_host(self, nbytes: int) -> PinnedBuffer:
        """Allocate pinned host memory. The caller frees it."""

    def free_host(self, buffer: PinnedBuffer) -> None:
        """Free pinned host memory; views of it are dangling afterwards."""

    def memcpy(self, dst: int, src: int, nbytes: int) -> None:
        """Copy between any two memories and wait."""

    def memset(self, dst: int, value: int, nbytes: int) -> None:
        """Set each of ``nbytes`` bytes of device memory to ``value`` (0 to 255)."""

    def device_synchronize(self) -> None:
        """Wait for all work of the current device."""

    def stream_synchronize(self, stream: int) -> None:
        """Wait for all work on ``stream``."""
