"""The simulated driver's sources under sanitizers: many threads, good and bad calls, a reset under load."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from .sanitizers import build, driver_sources, library_of, without_options
from .stateful.driver import Driver
from .stateful.machine import DriverMachine
from .stateful.sequences import run_sequences

HERE = Path(__file__).parent
needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc builds the sources with sanitizers")


@pytest.mark.nightly
@needs_gcc
@pytest.mark.parametrize("sanitizers", ["address,undefined", "thread"])
def test_stress_is_clean(sanitizers: str, tmp_path: Path) -> None:
    program = build(sanitizers, [str(HERE / "simcuda_stress.c"), *driver_sources()], tmp_path / "stress")
    for _ in range(3):  # another schedule each time
        done = subprocess.run(
            [program], env=without_options(), capture_output=True, text=True, timeout=120, check=False
        )
        assert (done.returncode, done.stderr) == (0, "")


@needs_gcc
def test_sequences_are_clean(tmp_path: Path) -> None:
    """Random calls, as test_simcuda_stateful makes them, and fewer of them."""
    library = build("address,undefined", driver_sources(), tmp_path / "libcuda.so.1", "-shared", "-fPIC")
    variables = {"LD_PRELOAD": library_of("asan"), "ASAN_OPTIONS": "detect_leaks=0"}  # Python's own leak
    with Driver(library, variables) as driver:
        DriverMachine.driver = driver
        run_sequences(DriverMachine, 30)
