"""One process's CUDA: libraries, memory, streams, over ctypes. Importing it loads nothing of CUDA."""

from pytest_cudabatch.cuda.context import STICKY_ERRORS, lost_context
from pytest_cudabatch.cuda.driver import Driver
from pytest_cudabatch.cuda.gate import Gate
from pytest_cudabatch.cuda.host_memory import HostMemory
from pytest_cudabatch.cuda.libraries import LibraryError, load, loaded_file
from pytest_cudabatch.cuda.memory import DeviceBuffer, Memory, PinnedBuffer
from pytest_cudabatch.cuda.registered import RegisteredHalves
from pytest_cudabatch.cuda.runtime import Runtime
from pytest_cudabatch.cuda.simulation import Schedule, SimulatedVersions

__all__ = [
    "STICKY_ERRORS",
    "DeviceBuffer",
    "Driver",
    "Gate",
    "HostMemory",
    "LibraryError",
    "Memory",
    "PinnedBuffer",
    "RegisteredHalves",
    "Runtime",
    "Schedule",
    "SimulatedVersions",
    "load",
    "loaded_file",
    "lost_context",
]
