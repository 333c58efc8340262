"""Runs a scenario on simulated CUDA in a process of its own and says how it ended."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pytest_cudabatch.native import library

SCENARIOS = Path(__file__).parent / "scenarios" / "main.py"
LIMIT = 60.0
"""Seconds; a scenario takes a fraction of one."""


@dataclass(frozen=True)
class Ended:
    """How a scenario's process ended, and what it returned."""

    exit_code: int | None
    signal: str | None
    value: Any
    stderr: str


def driver_path(variant: str) -> Path:
    return library(f"simcuda/driver-{variant}/libcuda.so.1")


def runtime_path(variant: str) -> Path:
    return library(f"simcuda/runtime-{variant}/libcudart.so.{variant.partition('.')[0]}")


def clean_environment(extra: Mapping[str, str]) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("CUDABATCH_")}
    return {**inherited, **extra}


def run(
    scenario: str,
    *,
    driver: str | None = None,
    runtime: str | None = None,
    environment: Mapping[str, str] | None = None,
    **arguments: object,
) -> Ended:
    """Run ``scenario`` of scenarios/ on a driver and a runtime variant, either of them absent if None."""
    request = {
        "driver": None if driver is None else str(driver_path(driver)),
        "runtime": None if runtime is None else str(runtime_path(runtime)),
        "arguments": arguments,
    }
    # Neither site-packages nor user settings: a quick start, and the same everywhere.
    done = subprocess.run(
        [sys.executable, "-S", "-E", str(SCENARIOS), scenario, json.dumps(request)],
        env=clean_environment(environment or {}),
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    crashed = done.returncode < 0
    return Ended(
        exit_code=None if crashed else done.returncode,
        signal=signal.Signals(-done.returncode).name if crashed else None,
        value=json.loads(done.stdout) if done.stdout else None,
        stderr=done.stderr,
    )


def value_of(scenario: str, **options: Any) -> Any:
    """Return what a scenario returned; it must have ended by itself, with nothing on stderr."""
    ended = run(scenario, **options)
    if (ended.exit_code, ended.signal, ended.stderr) != (0, None, ""):
        pytest.fail(f"{scenario} ended with {ended.signal or ended.exit_code}:\n{ended.stderr}")
    return ended.value
