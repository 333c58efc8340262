"""One process's CUDA over ctypes: a libcudart on a libcuda, chosen by path and proved afterwards."""

from __future__ import annotations

import ctypes
from pathlib import Path

from pytest_cudabatch.abi import BatchAbi, CudaVersion
from pytest_cudabatch.cuda.libraries import LibraryError, load, loaded_file
from pytest_cudabatch.cuda.memory import DeviceBuffer, PinnedBuffer
from pytest_cudabatch.cuda.signatures import PARAMETERS
from pytest_cudabatch.errors import CudaError

__all__ = ["Runtime"]

_MEMCPY_DEFAULT = 4  # cudaMemcpyDefault: the addresses say the direction
_STREAM_NON_BLOCKING = 1  # cudaStreamNonBlocking: not ordered with the legacy default stream


class Runtime:
    """The loaded libcudart. Addresses and stream handles are integers, sizes are in bytes.

    Every method that calls CUDA raises CudaError when the call fails, and leaves no last error behind,
    so that what ``last_error`` returns is always of the code under test.
    """

    def __init__(self, path: Path, library: ctypes.CDLL) -> None:
        self.path = path
        self._library = library
        for name, parameters in PARAMETERS.items():
            function = getattr(library, name)
            function.argtypes = parameters
            function.restype = ctypes.c_int

    @classmethod
    def open(cls, path: Path, driver: Path | None = None) -> Runtime:
        """Load the libcudart at ``path``, after the libcuda at ``driver`` (None: the host's own).

        The driver is loaded first and privately, so that libcudart finds it by its SONAME; libcudart
        is then loaded RTLD_GLOBAL, as torch does with its own. Libraries stay loaded until the process
        ends. Raises LibraryError where one cannot be loaded, or where another file answers to its
        SONAME because the process had loaded one before.
        """
        if driver is not None:
            load(driver, visible=False)
            _prove(driver, "libcuda.so.1")
        runtime = cls(path, load(path, visible=True))
        _prove(path, f"libcudart.so.{runtime.version.major}")
        return runtime

    @property
    def version(self) -> CudaVersion:
        """The version that the library reports of itself."""
        return CudaVersion.from_api(self._read_int("cudaRuntimeGetVersion"))

    @property
    def driver_version(self) -> CudaVersion | None:
        """The newest CUDA version that the driver supports; None where there is no driver."""
        number = self._read_int("cudaDriverGetVersion")
        return CudaVersion.from_api(number) if number else None

    @property
    def abi(self) -> BatchAbi:
        """The ABI of this library's cudaMemcpyBatchAsync."""
        return self.version.abi

    @property
    def exports_batch(self) -> bool:
        """Whether the library exports cudaMemcpyBatchAsync (from 12.8 on)."""
        return hasattr(self._library, "cudaMemcpyBatchAsync")

    def call(self, name: str, *arguments: object) -> int:
        """Call the function of that C name (one of signatures.py) and return its cudaError_t."""
        return int(getattr(self._library, name)(*arguments))

    def check(self, name: str, *arguments: object) -> None:
        """Call as ``call`` does; raise CudaError unless the function returns 0."""
        code = self.call(name, *arguments)
        if code != 0:
            self.call("cudaGetLastError")
            raise CudaError(name, code)

    def last_error(self) -> int:
        """Return the calling thread's cudaGetLastError, which this also clears."""
        return self.call("cudaGetLastError")

    def device_count(self) -> int:
        """Return how many devices there are."""
        return self._read_int("cudaGetDeviceCount")

    def set_device(self, device: int) -> None:
        """Make the device of that ordinal the calling thread's current one."""
        self.check("cudaSetDevice", device)

    def device_synchronize(self) -> None:
        """Wait for all work of the current device."""
        self.check("cudaDeviceSynchronize")

    def malloc(self, nbytes: int) -> DeviceBuffer:
        """Allocate device memory. The caller frees it."""
        return DeviceBuffer(self._read_address("cudaMalloc", nbytes), nbytes)

    def free(self, buffer: DeviceBuffer) -> None:
        """Free device memory."""
        self.check("cudaFree", buffer.address)

    def malloc_host(self, nbytes: int) -> PinnedBuffer:
        """Allocate pinned host memory. The caller frees it."""
        return PinnedBuffer(self._read_address("cudaMallocHost", nbytes), nbytes)

    def free_host(self, buffer: PinnedBuffer) -> None:
        """Free pinned host memory; views of it are dangling afterwards."""
        self.check("cudaFreeHost", buffer.address)

    def memcpy(self, dst: int, src: int, nbytes: int) -> None:
        """Copy between any two memories and wait; not ordered with work on non-blocking streams."""
        self.check("cudaMemcpy", dst, src, nbytes, _MEMCPY_DEFAULT)

    def enqueue_memcpy(self, dst: int, src: int, nbytes: int, stream: int) -> None:
        """Enqueue a copy between any two memories, as one row: it is no single copy in the evidence.

        So a test's own copies on a stream do not count as those of the implementation that it tests.
        """
        self.check("cudaMemcpy2DAsync", dst, nbytes, src, nbytes, nbytes, 1, _MEMCPY_DEFAULT, stream)

    def launch_host_function(self, stream: int, function: int, argument: int) -> None:
        """Enqueue a call of the C function at address ``function`` with a pointer; it must not call CUDA."""
        self.check("cudaLaunchHostFunc", stream, function, argument)

    def memset(self, dst: int, value: int, nbytes: int) -> None:
        """Set each of ``nbytes`` bytes of device memory to ``value`` (0 to 255); may return early."""
        self.check("cudaMemset", dst, value, nbytes)

    def stream_create(self, *, non_blocking: bool = True) -> int:
        """Create a stream and return its handle. The caller destroys it."""
        stream = ctypes.c_void_p()
        flags = _STREAM_NON_BLOCKING if non_blocking else 0
        self.check("cudaStreamCreateWithFlags", ctypes.byref(stream), flags)
        return stream.value or 0

    def stream_destroy(self, stream: int) -> None:
        """Destroy a stream; work on it still completes."""
        self.check("cudaStreamDestroy", stream)

    def stream_synchronize(self, stream: int) -> None:
        """Wait for all work on ``stream``, whose errors show here."""
        self.check("cudaStreamSynchronize", stream)

    def begin_capture(self, stream: int, mode: int) -> None:
        """Capture what is queued on ``stream``: mode 0 global, 1 thread-local, 2 relaxed (driver_types.h)."""
        self.check("cudaStreamBeginCapture", stream, mode)

    def end_capture(self, stream: int) -> int:
        """End the capture and return its graph's handle. The caller destroys it (``cudaGraphDestroy``)."""
        graph = ctypes.c_void_p()
        self.check("cudaStreamEndCapture", stream, ctypes.byref(graph))
        return graph.value or 0

    def abandon_capture(self, stream: int) -> int:
        """End the capture and destroy its graph; return the code, not 0 where it was invalidated."""
        graph = ctypes.c_void_p()
        code = self.call("cudaStreamEndCapture", stream, ctypes.byref(graph))
        self.last_error()
        if graph.value:
            self.check("cudaGraphDestroy", graph)
        return code

    def run_graph(self, graph: int, stream: int) -> None:
        """Instantiate ``graph``, launch it once on ``stream``, and wait for it."""
        executable = ctypes.c_void_p()
        self.check("cudaGraphInstantiateWithFlags", ctypes.byref(executable), graph, 0)
        self.check("cudaGraphLaunch", executable, stream)
        self.stream_synchronize(stream)
        self.check("cudaGraphExecDestroy", executable)

    def _read_int(self, name: str) -> int:
        value = ctypes.c_int()
        self.check(name, ctypes.byref(value))
        return value.value

    def _read_address(self, name: str, nbytes: int) -> int:
        address = ctypes.c_void_p()
        self.check(name, ctypes.byref(address), nbytes)
        return address.value or 0


def _prove(wanted: Path, soname: str) -> None:
    """Raise LibraryError unless ``wanted`` is the file that answers to ``soname`` in this process."""
    actual = loaded_file(soname)
    if actual is None:
        raise LibraryError(
            f"{wanted} was loaded, but nothing answers to the name {soname}: its SONAME differs"
        )
    if not actual.samefile(wanted):
        raise LibraryError(f"{soname} is {actual} in this process, which was loaded before {wanted}")
