"""One process's CUDA: libraries, memory, streams, over ctypes. Importing it loads nothing of CUDA."""

from pytest_cudabatch.cuda.libraries import LibraryError, loaded_file
from pytest_cudabatch.cuda.memory import DeviceBuffer, PinnedBuffer
from pytest_cudabatch.cuda.runtime import Runtime
from pytest_cudabatch.cuda.simulation import SimulatedVersions

__all__ = ["DeviceBuffer", "LibraryError", "PinnedBuffer", "Runtime", "SimulatedVersions", "loaded_file"]
