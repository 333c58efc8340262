"""CUDA libraries of a host: libcudarts on disk, those fetched from the vendor's wheels, and the driver."""

from __future__ import annotations

from pytest_cudabatch.runtimes.cache import RUNTIMES_VARIABLE, fetched, user_cache
from pytest_cudabatch.runtimes.driver import DriverFacts, probe
from pytest_cudabatch.runtimes.elf import SharedObject
from pytest_cudabatch.runtimes.fetching import RuntimeRequest, fetch
from pytest_cudabatch.runtimes.pip import DownloadError, IndexOptions, download, run_pip
from pytest_cudabatch.runtimes.runtime_file import RuntimeFile, Source
from pytest_cudabatch.runtimes.vendor_wheel import WheelError

__all__ = [
    "RUNTIMES_VARIABLE",
    "DownloadError",
    "DriverFacts",
    "IndexOptions",
    "RuntimeFile",
    "RuntimeRequest",
    "SharedObject",
    "Source",
    "WheelError",
    "download",
    "fetch",
    "fetched",
    "probe",
    "run_pip",
    "user_cache",
]
