"""The two ABIs that share the name cudaMemcpyBatchAsync, and the versions that select them.

Facts: cuda_runtime_api.h of CUDA 12.8 and 12.9 (nine parameters, failIdx before the stream) and of
13.0 to 13.5 (eight, without failIdx); cuda.h has the same pair as cuMemcpyBatchAsync and
cuMemcpyBatchAsync_v2.
"""

from __future__ import annotations

import ctypes
import enum
import re
from dataclasses import dataclass

from pytest_cudabatch.errors import UsageError

__all__ = [
    "FIRST_BATCH_VERSION",
    "BatchAbi",
    "CudaVersion",
    "MemcpyAttributes",
]


class BatchAbi(enum.Enum):
    """One of the two parameter lists of the batch call; the value is the name used in reports."""

    V12080 = "v12080"
    V13000 = "v13000"

    @property
    def parameters(self) -> int:
        """How many parameters the call has: 9 with failIdx, 8 without."""
        return 9 if self is BatchAbi.V12080 else 8

    @property
    def parameters_3d(self) -> int:
        """How many parameters the call for 3D copies has: 5 with failIdx, 4 without."""
        return 5 if self is BatchAbi.V12080 else 4

    @classmethod
    def of_parameters(cls, count: int) -> BatchAbi:
        """Return the ABI with ``count`` parameters: 8 or 9, or 4 or 5 for a batch of 3D copies.

        Raises ValueError for another number.
        """
        for abi in cls:
            if count in (abi.parameters, abi.parameters_3d):
                return abi
        raise ValueError(f"no batch ABI has {count} parameters; it is 8 or 9, in 3D 4 or 5")


@dataclass(frozen=True, order=True)
class CudaVersion:
    """A CUDA version as major and minor: what a runtime is, or what a driver supports."""

    major: int
    minor: int

    @classmethod
    def parse(cls, text: str) -> CudaVersion:
        """Read ``"12.9"`` or ``"12.9.79"`` (a patch level is dropped). Raises UsageError otherwise."""
        match = re.fullmatch(r"(\d{1,3})\.(\d{1,3})(?:\.\d+)*", text.strip())
        if match is None:
            raise UsageError(f"{text!r} is not a CUDA version; write it like 12.9 or 12.9.79")
        return cls(int(match[1]), int(match[2]))

    @classmethod
    def from_api(cls, number: int) -> CudaVersion:
        """Decode what cudaRuntimeGetVersion and cuDriverGetVersion return: 12090 is 12.9."""
        return cls(number // 1000, number % 1000 // 10)

    @property
    def api(self) -> int:
        """The number that the CUDA API uses for this version: 12090 for 12.9."""
        return self.major * 1000 + self.minor * 10

    @property
    def abi(self) -> BatchAbi:
        """The ABI of a runtime of this version (which exports the function only from 12.8 on)."""
        return BatchAbi.V13000 if self.major >= 13 else BatchAbi.V12080

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


FIRST_BATCH_VERSION = CudaVersion(12, 8)
"""The first runtime and driver that have the batch function (cuda_runtime_api.h, cuda.h)."""


class MemcpyAttributes(ctypes.Structure):
    """cudaMemcpyAttributes, 24 bytes in every version: access order, two location hints, flags."""

    _fields_ = (
        ("src_access_order", ctypes.c_int),
        ("src_location_type", ctypes.c_int),
        ("src_location_id", ctypes.c_int),
        ("dst_location_type", ctypes.c_int),
        ("dst_location_id", ctypes.c_int),
        ("flags", ctypes.c_uint),
    )
