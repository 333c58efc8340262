"""Scenarios that load CUDA libraries, each in a process of its own; prints the result as JSON."""

from __future__ import annotations

import ctypes
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pytest_cudabatch.abi import CudaVersion
from pytest_cudabatch.cuda import LibraryError, Runtime, SimulatedVersions, loaded_file
from pytest_cudabatch.errors import CudaError
from pytest_cudabatch.native import library


def driver_file(version: str) -> Path:
    return library(f"simcuda/driver-{version}/libcuda.so.1")


def runtime_file(version: str) -> Path:
    return library(f"simcuda/runtime-{version}/libcudart.so.{version[:2]}")


def simulated(driver: str = "13.0", runtime: str = "13.0") -> Runtime:
    return Runtime.open(runtime_file(runtime), driver=driver_file(driver))


def facts(driver: str, driver_version: str, runtime: str, runtime_version: str) -> dict[str, Any]:
    SimulatedVersions(CudaVersion.parse(driver_version), CudaVersion.parse(runtime_version)).apply()
    opened = simulated(driver, runtime)
    return {
        "version": str(opened.version),
        "driver_version": str(opened.driver_version),
        "abi": opened.abi.value,
        "exports_batch": opened.exports_batch,
        "path": str(opened.path),
        "visible": hasattr(ctypes.CDLL(None), "cudaMemcpy"),
        "driver_visible": hasattr(ctypes.CDLL(None), "cuInit"),
        "last_error": opened.last_error(),
    }


def round_trip() -> dict[str, Any]:
    runtime = simulated()
    stream = runtime.stream_create()
    source, target = runtime.malloc_host(5000), runtime.malloc_host(5000)
    device = runtime.malloc(5000)
    source.bytes[:] = 7
    target.bytes[:] = 0
    runtime.memset(device.address, 9, 5000)
    runtime.device_synchronize()
    runtime.memcpy(device.address + 1, source.address, 4998)
    runtime.memcpy(target.address, device.address, 5000)
    seen = target.bytes.tolist()
    runtime.stream_synchronize(stream)
    runtime.stream_destroy(stream)
    runtime.free(device)
    runtime.free_host(source)
    runtime.free_host(target)
    return {"bytes": seen, "devices": runtime.device_count(), "stream_is_handle": stream > 2}


def own_error_leaves_nothing_behind() -> dict[str, Any]:
    runtime = simulated()
    device = runtime.malloc(4096)
    try:
        runtime.memset(device.address, 0, 1 << 40)
    except CudaError as error:
        return {"function": error.function, "code": error.code, "last_error": runtime.last_error()}
    raise AssertionError("memset past the allocation was accepted")


def last_error_of_others_is_read_once() -> list[int]:
    runtime = simulated()
    device = runtime.malloc(4096)
    code = runtime.call("cudaMemset", device.address, 0, 1 << 40)
    return [code, runtime.last_error(), runtime.last_error()]


def refused(open_it: Callable[[], object]) -> str:
    try:
        open_it()
    except LibraryError as error:
        return str(error)
    raise AssertionError("nothing was refused")


def driver_loaded_before() -> str:
    ctypes.CDLL(str(driver_file("12.8")))
    return refused(simulated)


def runtime_loaded_before() -> str:
    simulated(runtime="12.6")
    return refused(lambda: simulated(runtime="12.8"))


def not_a_library(path: str) -> str:
    return refused(lambda: Runtime.open(Path(path), driver=driver_file("13.0")))


def not_cuda() -> str:
    return refused(
        lambda: Runtime.open(runtime_file("13.0"), driver=library("implementations/libreference.so"))
    )


def without_driver() -> Any:
    """On a host with no libcuda of its own."""
    opened = Runtime.open(runtime_file("13.0"))
    return None if opened.driver_version is None else str(opened.driver_version)


def files() -> list[str | None]:
    simulated()
    found = [loaded_file("libcuda.so.1"), loaded_file("libcudart.so.12")]
    return [None if path is None else str(path) for path in found]


if __name__ == "__main__":
    json.dump(globals()[sys.argv[1]](*sys.argv[2:]), sys.stdout)
