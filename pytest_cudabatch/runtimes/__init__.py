"""CUDA libraries of a host: libcudarts on disk, those fetched from the vendor's wheels, and the driver."""

from __future__ import annotations

from pytest_cudabatch.runtimes.cache import RUNTIMES_VARIABLE, fetched, user_cache
from pytest_cudabatch.runtimes.discovering import discover
from pytest_cudabatch.runtimes.driver import DriverFacts, probe
from pytest_cudabatch.runtimes.elf import ELF_DAMAGE, SharedObject
from pytest_cudabatch.runtimes.fetching import RuntimeRequest, fetch
from pytest_cudabatch.runtimes.machine_code import RuntimeCode
from pytest_cudabatch.runtimes.pip import DownloadError, IndexOptions, download, run_pip
from pytest_cudabatch.runtimes.runtime_file import RuntimeFile, Source
from pytest_cudabatch.runtimes.search import Found
from pytest_cudabatch.runtimes.vendor_wheel import WheelError

__all__ = [
    "ELF_DAMAGE",
    "RUNTIMES_VARIABLE",
    "DownloadError",
    "DriverFacts",
    "Found",
    "IndexOptions",
    "RuntimeCode",
    "RuntimeFile",
    "RuntimeRequest",
    "SharedObject",
    "Source",
    "WheelError",
    "discover",
    "download",
    "fetch",
    "fetched",
    "probe",
    "run_pip",
    "user_cache",
]
