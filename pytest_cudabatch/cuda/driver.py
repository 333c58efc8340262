"""One process's CUDA through the driver API alone: for tests in whose process no runtime of ours may be."""

from __future__ import annotations

import ctypes
from pathlib import Path

from pytest_cudabatch.cuda.libraries import load, load_by_soname
from pytest_cudabatch.cuda.memory import DeviceBuffer, PinnedBuffer
from pytest_cudabatch.errors import CudaError

__all__ = ["Driver"]

_STREAM_NON_BLOCKING = 1  # CU_STREAM_NON_BLOCKING: not ordered with the legacy default stream

_int = ctypes.c_int
_size = ctypes.c_size_t
_address = ctypes.c_uint64  # CUdeviceptr
_handle = ctypes.c_void_p
_out_address = ctypes.POINTER(_address)
_out_handle = ctypes.POINTER(_handle)

_PARAMETERS: dict[str, tuple[type, ...]] = {
    "cuInit": (ctypes.c_uint,),
    "cuDevicePrimaryCtxRetain": (_out_handle, _int),
    "cuCtxSetCurrent": (_handle,),
    "cuCtxSynchronize": (),
    "cuMemAlloc_v2": (_out_address, _size),
    "cuMemFree_v2": (_address,),
    "cuMemHostAlloc": (_out_handle, _size, ctypes.c_uint),
    "cuMemFreeHost": (_handle,),
    "cuMemcpy": (_address, _address, _size),
    "cuMemsetD8_v2": (_address, ctypes.c_uint8, _size),
    "cuStreamCreate": (_out_handle, ctypes.c_uint),
    "cuStreamDestroy_v2": (_handle,),
    "cuStreamSynchronize": (_handle,),
}
"""Parameter types by C name, as cuda.h maps the names. Every one of these functions returns a CUresult."""


class Driver:
    """The loaded libcuda, with the first device's primary context current in the calling thread.

    That context is the one that a runtime takes, too, so addresses and stream handles are good for both.
    Every method raises CudaError where the call fails.
    """

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        for name, parameters in _PARAMETERS.items():
            function = getattr(library, name)
            function.argtypes = parameters
            function.restype = _int
        context = _handle()
        self._check("cuInit", 0)
        self._check("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        self._check("cuCtxSetCurrent", context)

    @classmethod
    def open(cls, path: Path | None) -> Driver:
        """Load the libcuda at ``path`` out of sight of other libraries; None: the host's own.

        Raises LibraryError where it cannot be loaded, CudaError where there is no device.
        """
        return cls(load_by_soname("libcuda.so.1") if path is None else load(path, visible=False))

    def device_synchronize(self) -> None:
        """Wait for all work of the context."""
        self._check("cuCtxSynchronize")

    def malloc(self, nbytes: int) -> DeviceBuffer:
        """Allocate device memory. The caller frees it."""
        address = _address()
        self._check("cuMemAlloc_v2", ctypes.byref(address), nbytes)
        return DeviceBuffer(address.value, nbytes)

    def free(self, buffer: DeviceBuffer) -> None:
        """Free device memory."""
        self._check("cuMemFree_v2", buffer.address)

    def malloc_host(self, nbytes: int) -> PinnedBuffer:
        """Allocate pinned host memory. The caller frees it."""
        address = _handle()
        self._check("cuMemHostAlloc", ctypes.byref(address), nbytes, 0)
        return PinnedBuffer(address.value or 0, nbytes)

    def free_host(self, buffer: PinnedBuffer) -> None:
        """Free pinned host memory; views of it are dangling afterwards."""
        self._check("cuMemFreeHost", buffer.address)

    def memcpy(self, dst: int, src: int, nbytes: int) -> None:
        """Copy between any two memories and wait; not ordered with work on non-blocking streams."""
        self._check("cuMemcpy", dst, src, nbytes)

    def memset(self, dst: int, value: int, nbytes: int) -> None:
        """Set each of ``nbytes`` bytes of device memory to ``value`` (0 to 255); may return early."""
        self._check("cuMemsetD8_v2", dst, value, nbytes)

    def stream_create(self) -> int:
        """Create a non-blocking stream and return its handle. The caller destroys it."""
        stream = _handle()
        self._check("cuStreamCreate", ctypes.byref(stream), _STREAM_NON_BLOCKING)
        return stream.value or 0

    def stream_destroy(self, stream: int) -> None:
        """Destroy a stream; work on it still completes."""
        self._check("cuStreamDestroy_v2", stream)

    def stream_synchronize(self, stream: int) -> None:
        """Wait for all work on ``stream``, whose errors show here."""
        self._check("cuStreamSynchronize", stream)

    def _check(self, name: str, *arguments: object) -> None:
        code = getattr(self._library, name)(*arguments)
        if code != 0:
            raise CudaError(name, code)
