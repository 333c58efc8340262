"""Memory of one runtime, by kind: what lies where, and what a test may touch from the host."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["DeviceBuffer", "PinnedBuffer"]


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
