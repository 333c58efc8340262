"""Opening a chosen pair of libraries, proving it, and the calls that plans need; on simulated CUDA."""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pytest_cudabatch.abi import CudaVersion
from pytest_cudabatch.cuda import SimulatedVersions
from pytest_cudabatch.native import library


def child(scenario: str, *arguments: str) -> Any:
    """Run a scenario of cuda_child.py and return its result."""
    command = [sys.executable, str(Path(__file__).with_name("cuda_child.py")), scenario, *arguments]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, timeout=60).stdout)


@pytest.mark.parametrize(
    ("driver", "runtime", "abi", "exports_batch"),
    [
        (("12.4", "12.4"), ("12.6", "12.6"), "v12080", False),
        (("12.8", "12.9"), ("12.8", "12.9"), "v12080", True),
        (("13.0", "13.5"), ("12.8", "12.8"), "v12080", True),
        (("13.0", "13.0"), ("13.0", "13.0"), "v13000", True),
        (("13.0", "13.2"), ("13.0", "13.5"), "v13000", True),
    ],
)
def test_an_opened_pair_is_what_was_asked_for(
    driver: tuple[str, str], runtime: tuple[str, str], abi: str, exports_batch: bool
) -> None:
    """Driver and runtime: the simulated file, and the version that it is to report."""
    file, version = runtime
    assert child("facts", *driver, *runtime) == {
        "version": version,
        "driver_version": driver[1],
        "abi": abi,
        "exports_batch": exports_batch,
        "path": str(library(f"simcuda/runtime-{file}/libcudart.so.{file[:2]}")),
        "visible": True,
        "driver_visible": False,
        "last_error": 0,
    }


def test_memory_copies_and_streams() -> None:
    assert child("round_trip") == {
        "bytes": [9] + [7] * 4998 + [9],
        "devices": 1,
        "stream_is_handle": True,
    }


def test_an_error_of_our_own_is_raised_and_cleared() -> None:
    assert child("own_error_leaves_nothing_behind") == {"function": "cudaMemset", "code": 1, "last_error": 0}


def test_the_last_error_is_read_once() -> None:
    assert child("last_error_of_others_is_read_once") == [1, 1, 0]


def test_a_driver_that_was_loaded_before_is_named() -> None:
    early, wanted = (library(f"simcuda/driver-{version}/libcuda.so.1") for version in ("12.8", "13.0"))
    message = f"libcuda.so.1 is {early} in this process, which was loaded before {wanted}"
    assert child("driver_loaded_before") == message


def test_a_runtime_that_was_loaded_before_is_named() -> None:
    early, wanted = (library(f"simcuda/runtime-{version}/libcudart.so.12") for version in ("12.6", "12.8"))
    message = f"libcudart.so.12 is {early} in this process, which was loaded before {wanted}"
    assert child("runtime_loaded_before") == message


def test_a_file_that_is_no_library_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "libcudart.so.13"
    path.write_bytes(b"not ELF " * 512)
    assert child("not_a_library", str(path)) == f"cannot load {path}: {path}: invalid ELF header"


def test_a_library_of_another_name_is_no_driver() -> None:
    path = library("implementations/libreference.so")
    assert child("not_cuda") == (
        f"{path} was loaded, but nothing answers to the name libcuda.so.1: its SONAME differs"
    )


def test_loaded_files_are_found_by_soname() -> None:
    assert child("files") == [str(library("simcuda/driver-13.0/libcuda.so.1")), None]


def has_own_driver() -> bool:
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


@pytest.mark.skipif(has_own_driver(), reason="this host has a libcuda of its own")
def test_without_a_driver_there_is_no_driver_version() -> None:
    assert child("without_driver") is None


def test_simulated_versions_are_variables_of_the_process() -> None:
    versions = SimulatedVersions(driver=CudaVersion(13, 2), runtime=CudaVersion(12, 9))
    assert versions.variables() == {"CUDABATCH_SIM_DRIVER": "13020", "CUDABATCH_SIM_RUNTIME_12": "12090"}
