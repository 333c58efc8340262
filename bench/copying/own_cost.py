"""What an implementation costs by itself: its calls on a driver whose batch function does nothing.

The driver is noop_driver.c, built here; no GPU takes part. The same calls to an empty function are measured
in between, and their time, which is Python's and ctypes', is taken off.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from pytest_cudabatch.implementations import LinkedSharedObject, SharedObject, load

__all__ = ["measure_own_cost"]

_SOURCE = Path(__file__).with_name("noop_driver.c")
_COUNTS = (1, 64, 1024, 8192, 51_828)
_ROUNDS = 200
_LIMIT = 60.0
_STREAM = 0x7F00_0000_1000
"""Any address will do: nothing on this driver looks at it."""


def measure_own_cost(name: str) -> dict[str, Any]:
    """Return the own cost of the implementation ``name`` in a process of its own.

    ``call_us`` is that of a call with one descriptor, ``descriptor_ns`` what each further one adds, up to
    the largest of ``counts``; ``total_us`` gives all of them. Where it cannot be had, ``skipped`` says why.
    """
    compiler = shutil.which("cc")
    if compiler is None:
        return {"implementation": name, "skipped": "there is no C compiler (cc) to build the driver with"}
    with tempfile.TemporaryDirectory() as directory:
        driver = Path(directory, "libcuda.so.1")
        flags = ("-shared", "-fPIC", "-O2", "-fvisibility=hidden", f"-Wl,-soname,{driver.name}")
        subprocess.run([compiler, *flags, "-o", str(driver), str(_SOURCE)], check=True)
        command = [sys.executable, __file__, name, str(driver)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, timeout=_LIMIT)
    totals: dict[str, float] = json.loads(done.stdout)
    smallest, largest = _COUNTS[0], _COUNTS[-1]
    return {
        "implementation": name,
        "call_us": totals[str(smallest)],
        "descriptor_ns": 1e3 * (totals[str(largest)] - totals[str(smallest)]) / (largest - smallest),
        "total_us": totals,
    }


def _time_calls(name: str, driver: str) -> dict[int, float]:
    """Return the median own time in microseconds for each count; counts and functions take turns."""
    empty = ctypes.CDLL(driver, mode=os.RTLD_NOW | os.RTLD_GLOBAL)
    implementation = load(name)
    if not isinstance(implementation, SharedObject | LinkedSharedObject):
        raise TypeError(f"{name} is not in a shared object, whose C entry point could be called")
    functions = (ctypes.CDLL(str(implementation.path)), empty)
    times: dict[tuple[int, int], list[int]] = {}
    arrays = [np.arange(1, _COUNTS[-1] + 1, dtype=np.uint64) * 4096 for _ in range(3)]
    addresses = [ctypes.c_void_p(array.ctypes.data) for array in arrays]
    for _ in range(_ROUNDS):
        for count in _COUNTS:
            arguments = (*addresses, ctypes.c_size_t(count), ctypes.c_void_p(_STREAM))
            for index, function in enumerate(functions):
                start = time.perf_counter_ns()
                code = function.cudabatch_copy(*arguments)
                times.setdefault((count, index), []).append(time.perf_counter_ns() - start)
                if code:
                    raise RuntimeError(f"{name} returned {code} on the driver that does nothing")
    return {count: float(np.median(times[count, 0]) - np.median(times[count, 1])) / 1e3 for count in _COUNTS}


if __name__ == "__main__":
    json.dump(_time_calls(*sys.argv[1:]), sys.stdout)
