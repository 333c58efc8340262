"""Asks a libcudart for its version; a script of inquiry.py, run by path, importing nothing of this package.

``runtime_child.py FD LIBRARY`` writes to the file descriptor FD. cudaRuntimeGetVersion answers without a
driver from CUDA 12 on (facts: cuda_runtime_api.h, and measured on hosts without one).
"""

from __future__ import annotations

import ctypes
import json
import os
import sys


def _main(descriptor: int, library: str) -> None:
    def report(**facts: object) -> None:
        os.write(descriptor, json.dumps(facts).encode() + b"\n")

    report(step="loading " + library)
    runtime = ctypes.CDLL(library)
    report(step="cudaRuntimeGetVersion")
    version = ctypes.c_int(0)
    code = runtime.cudaRuntimeGetVersion(ctypes.byref(version))
    report(code=code, version=version.value, end=True)


if __name__ == "__main__":
    _main(int(sys.argv[1]), sys.argv[2])
