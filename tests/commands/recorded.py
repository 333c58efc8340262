"""Programs under ``cudabatch record``, and what it said of them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_cudabatch import native

DRIVER = native.library("simcuda/driver-13.0/libcuda.so.1")
RUNTIMES = {
    12: native.library("simcuda/runtime-12.8/libcudart.so.12"),
    13: native.library("simcuda/runtime-13.0/libcudart.so.13"),
}

PRELUDE = f"""
import os, signal, subprocess, sys
from pathlib import Path
from pytest_cudabatch.copies import BoundPlan, Direction, Mixture, make_plan
from pytest_cudabatch.cuda import Runtime
from pytest_cudabatch.implementations import load

DRIVER = Path({str(DRIVER)!r})
RUNTIMES = {{12: Path({str(RUNTIMES[12])!r}), 13: Path({str(RUNTIMES[13])!r})}}

def copy(*counts, name="reference", major=13):
    runtime = Runtime.open(RUNTIMES[major], driver=DRIVER)
    stream, implementation = runtime.stream_create(), load(name).open()
    for count in counts:
        with BoundPlan(make_plan(Direction.H2D, Mixture.MIXED, count, 0), runtime) as plan:
            plan.fill()
            assert implementation.copy(plan, stream) == 0
            runtime.stream_synchronize(stream)
            assert plan.verify() == []
"""


@dataclass(frozen=True)
class Recorded:
    """How ``cudabatch record`` ended, and its JSON."""

    status: int
    output: str
    errors: str
    data: dict[str, Any]

    @property
    def counts(self) -> list[tuple[str, int, int]]:
        """Path, batch calls and single copies of each process."""
        return [
            (process["path"], process["calls"]["batch"], process["calls"]["per_copy"])
            for process in self.data["processes"]
        ]


def arguments(*options: str, command: Sequence[str]) -> list[str]:
    return [sys.executable, "-m", "pytest_cudabatch", "record", *options, "--", *command]


def record(directory: Path, *command: str, options: Sequence[str] = ()) -> Recorded:
    """Record a command; by JSON, into a file."""
    output = directory / "recording.json"
    done = subprocess.run(
        arguments("--json", "-o", str(output), *options, command=command),
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return Recorded(done.returncode, done.stdout, done.stderr, json.loads(output.read_text()))


def script(text: str) -> tuple[str, ...]:
    return (sys.executable, "-c", PRELUDE + text)
