"""The reference and the specimens on simulated CUDA: right bytes, or a crash exactly where the facts say."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_cudabatch.abi import CudaVersion
from pytest_cudabatch.native import library

DRIVERS = {"12.4": "12.4", "12.8": "12.8", "13.0": "13.0", "13.5": "13.0"}
RUNTIMES = {"12.6": "12.6", "12.8": "12.8", "12.9": "12.8", "13.0": "13.0", "13.5": "13.0"}
"""Version -> the simulated file that can be it."""


def simulated_pairings() -> dict[str, dict[str, str]]:
    """All legal ones: a 13.x runtime needs a driver from 13.0 on."""
    return {
        f"cu{runtime}-d{driver}": {
            "runtime": runtime,
            "driver": driver,
            "runtime_path": str(library(f"simcuda/runtime-{runtime_file}/libcudart.so.{runtime[:2]}")),
            "driver_path": str(library(f"simcuda/driver-{driver_file}/libcuda.so.1")),
        }
        for runtime, runtime_file in RUNTIMES.items()
        for driver, driver_file in DRIVERS.items()
        if CudaVersion.parse(runtime).major <= CudaVersion.parse(driver).major
    }


CRASHES = {
    "reference": set(),
    "specimen:driver-version": {"cu12.8-d13.0", "cu12.8-d13.5", "cu12.9-d13.0", "cu12.9-d13.5"},
    "specimen:dlsym-always-9": {"cu13.0-d13.0", "cu13.0-d13.5", "cu13.5-d13.0", "cu13.5-d13.5"},
    "specimen:dlsym-always-8": {
        "cu12.8-d12.8",
        "cu12.8-d13.0",
        "cu12.8-d13.5",
        "cu12.9-d12.8",
        "cu12.9-d13.0",
        "cu12.9-d13.5",
    },
}


@pytest.mark.parametrize("implementation", CRASHES)
def test_every_pairing_ends_as_the_facts_say(implementation: str) -> None:
    pairings = simulated_pairings()
    child = subprocess.run(
        [
            sys.executable,
            str(Path(__file__).with_name("pairing_child.py")),
            json.dumps({"implementation": implementation, "pairings": pairings}),
        ],
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},  # the child forks: no threads of numpy's before
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        timeout=120,
    )
    expected = {name: "SIGSEGV" if name in CRASHES[implementation] else "right" for name in pairings}
    assert len(pairings) == 16
    assert json.loads(child.stdout) == expected
