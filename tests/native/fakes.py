"""Fakes of CUDA's libraries that answer as a test tells them, and processes that use them."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pytest_cudabatch.native import library

__all__ = ["STREAM", "Fakes", "Outcome", "call", "needs_compiler"]

HERE = Path(__file__).parent
STREAM = 0x7F00_0000_1230

needs_compiler = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc builds the fakes and the header")


@dataclass(frozen=True)
class Outcome:
    """What a scenario's child printed, or the signal that ended it."""

    results: list[tuple[int, bool]] = field(default_factory=list)
    seen: dict[str, dict[str, int]] = field(default_factory=dict)
    signal: str | None = None

    def counts(self, name: str) -> tuple[int, int]:
        """Batch calls and single copies that the library ``name`` got."""
        return self.seen[name]["fake_batch_calls"], self.seen[name]["fake_copies"]


class Fakes:
    """The fakes' paths, and running an implementation on some of them."""

    def __init__(self, directory: Path) -> None:
        self.paths = {
            "driver": self._build(directory / "libcuda.so.1", "-DFAKE_DRIVER"),
            "runtime12": self._build(directory / "libcudart.so.12", "-DFAKE_RUNTIME=12"),
            "runtime13": self._build(directory / "libcudart.so.13", "-DFAKE_RUNTIME=13"),
        }

    @staticmethod
    def _build(path: Path, *definitions: str) -> str:
        # -Bsymbolic: each fake keeps to its own counters, though the others have the same names
        linking = ("-shared", "-fPIC", "-Wl,-Bsymbolic", f"-Wl,-soname,{path.name}")
        flags = ("-fvisibility=hidden", "-Wall", "-Wextra", "-Werror", *linking)
        subprocess.run(["gcc", *flags, *definitions, str(HERE / "fake_cuda.c"), "-o", str(path)], check=True)
        return str(path)

    def run(
        self,
        *names: str,
        implementation: str = "reference",
        calls: list[dict[str, Any]] | None = None,
        threads: int = 1,
        **variables: dict[str, int],
    ) -> Outcome:
        """Load the fakes ``names`` in that order, set ``variables`` of each, and make ``calls``."""
        scenario = {
            "libraries": {name: self.paths[name] for name in names},
            "set": variables,
            "implementation": str(library(_file_of(implementation))),
            "calls": calls if calls is not None else [call()],
            "threads": threads,
        }
        # Neither site-packages nor user settings: a quick start, and the same everywhere.
        child = subprocess.run(
            [sys.executable, "-S", "-E", str(HERE / "dispatch_child.py"), json.dumps(scenario)],
            check=False,
            capture_output=True,
            text=True,
            timeout=60,
        )
        if child.returncode < 0:
            return Outcome(signal=signal.Signals(-child.returncode).name)
        assert child.returncode == 0, child.stderr
        answer = json.loads(child.stdout)
        return Outcome([(code, right) for code, right in answer["results"]], answer["seen"])


def _file_of(implementation: str) -> str:
    directory, separator, name = implementation.rpartition("/")
    return f"implementations/{directory}{separator}lib{name}.so"


def call(sizes: list[int] | None = None, stream: int = STREAM) -> dict[str, Any]:
    """Return one call of a scenario; the sizes are in bytes."""
    return {"sizes": [64, 1, 300] if sizes is None else sizes, "stream": stream}
