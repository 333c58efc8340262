"""The functions that rows are put to, by the name under which the contract lists them.

Facts: cuda_runtime_api.h and cuda.h of CUDA 12.8 to 13.5. Under one name the runtime has 9 or 8 parameters
(3D: 5 or 4); the driver has both lists, as two functions that cuGetProcAddress tells apart by version.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pytest_cudabatch.abi import BatchAbi, CudaVersion

__all__ = ["ENTRIES", "Entry", "Shape", "entry_of"]

Shape = Literal["batch", "3d", "copy", "attributes", "lookup", "call"]
"""What a function takes: a batch, a batch of 3D copies, one copy, one copy with attributes, or a name to
look up; ``call`` is any other, which rows call themselves."""

_BATCH_PARAMETERS = {BatchAbi.V12080: 9, BatchAbi.V13000: 8}
_3D_PARAMETERS = {BatchAbi.V12080: 5, BatchAbi.V13000: 4}


@dataclass(frozen=True)
class Entry:
    """One function. ``lookup`` is how cuGetProcAddress finds it, for a function of the driver.

    ``abi`` is None where the loaded runtime decides, or where there is only one. ``since`` is the first
    runtime that has the function, where not all that are asked do.
    """

    name: str
    shape: Shape
    lookup: tuple[str, int, int] | None = None
    abi: BatchAbi | None = None
    since: CudaVersion | None = None

    @property
    def of_runtime(self) -> bool:
        """Whether it is the runtime's, which keeps a last error."""
        return self.name.startswith("cuda")

    def parameters(self, runtime: BatchAbi) -> int:
        """Return how many parameters it has where the loaded runtime is of ``runtime``'s ABI."""
        abi = self.abi or runtime
        if self.shape == "batch":
            return _BATCH_PARAMETERS[abi]
        if self.shape == "3d":
            return _3D_PARAMETERS[abi]
        return 5

    def has_fail_index(self, runtime: BatchAbi) -> bool:
        """Whether it has the failIdx parameter."""
        return self.shape in {"batch", "3d"} and (self.abi or runtime) is BatchAbi.V12080


_LEGACY, _PER_THREAD = 1, 2
"""Flags of cuGetProcAddress: CU_GET_PROC_ADDRESS_LEGACY_STREAM and _PER_THREAD_DEFAULT_STREAM."""


def _driver_entries(name: str, shape: Shape) -> tuple[Entry, ...]:
    """Return a driver function in both ABIs, with their twins of the per-thread default stream."""
    old, new = BatchAbi.V12080, BatchAbi.V13000
    return (
        Entry(name, shape, (name, 12080, _LEGACY), old),
        Entry(f"{name}_ptsz", shape, (name, 12080, _PER_THREAD), old),
        Entry(f"{name}_v2", shape, (name, 13000, _LEGACY), new),
        Entry(f"{name}_v2_ptsz", shape, (name, 13000, _PER_THREAD), new),
    )


ENTRIES: tuple[Entry, ...] = (
    Entry("cudaMemcpyBatchAsync", "batch"),
    Entry("cudaMemcpyBatchAsync_ptsz", "batch"),
    *_driver_entries("cuMemcpyBatchAsync", "batch"),
    Entry("cudaMemcpy3DBatchAsync", "3d"),
    Entry("cudaMemcpy3DBatchAsync_ptsz", "3d"),
    *_driver_entries("cuMemcpy3DBatchAsync", "3d"),
    Entry("cudaMemcpyAsync", "copy"),
    Entry("cudaMemcpyWithAttributesAsync", "attributes", since=CudaVersion(13, 2)),
    Entry("cuGetProcAddress_v2", "lookup"),
    Entry("cudaGetDriverEntryPoint", "lookup"),
    Entry("cudaGetDriverEntryPointByVersion", "lookup"),
    *(
        Entry(name, "call")
        for name in (
            *("cudaHostRegister", "cudaHostUnregister", "cudaMalloc", "cudaMemcpy", "cudaDeviceSynchronize"),
            *("cudaStreamSynchronize", "cudaStreamQuery", "cudaStreamBeginCapture", "cudaStreamEndCapture"),
        )
    ),
)


def entry_of(name: str) -> Entry:
    """Return the entry of that name. Raises KeyError where there is none."""
    return _BY_NAME[name]


_BY_NAME = {entry.name: entry for entry in ENTRIES}
