"""The report, version 1, as JSON (schema ``pytest-cudabatch/report/1``)."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pytest_cudabatch.reports.records import RunError
from pytest_cudabatch.verdicts import Cell

__all__ = ["MERGED_SCHEMA", "SCHEMA", "HostFacts", "write_report", "write_whole"]

SCHEMA = "pytest-cudabatch/report/1"
MERGED_SCHEMA = "pytest-cudabatch/merged/1"
"""Of several runs: the parts of their reports, one cell for each key, and what they disagree on."""


@dataclass(frozen=True)
class HostFacts:
    """Where a run took place.

    ``driver`` is the CUDA version that the host's libcuda reports and ``driver_release`` the kernel
    driver's release; both None on simulated CUDA, where each pairing brings a driver of its own.
    ``gpus`` are the devices' names; ``libraries`` the files that the pairings ran on.
    """

    platform: str
    driver: str | None
    driver_release: str | None
    gpus: tuple[str, ...]
    libraries: tuple[Mapping[str, str | None], ...]

    def to_json(self) -> dict[str, Any]:
        """Return the report's ``host`` object."""
        return {
            "platform": self.platform,
            "driver": self.driver,
            "driver_release": self.driver_release,
            "gpus": [{"name": name} for name in self.gpus],
            "flags": {
                "mps": "CUDA_MPS_PIPE_DIRECTORY" in os.environ,
                "mig": any(
                    name.startswith("MIG") for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
                ),
                "wsl": "microsoft" in platform.release().lower(),
                "launch_blocking": os.environ.get("CUDA_LAUNCH_BLOCKING", "0") not in ("", "0"),
            },
            "libraries": [dict(library) for library in self.libraries],
            "image": None,
            "python": platform.python_version(),
            "plugin": version("pytest-cudabatch"),
        }


def write_report(
    path: Path,
    run: Mapping[str, Any],
    host: HostFacts,
    cells: Sequence[Cell],
    errors: Sequence[RunError],
) -> None:
    """Write the report to ``path``, whole or not at all.

    ``run`` is the report's ``run`` object; ``errors`` are what went wrong beside the cells, such as a file
    that could not be collected. Raises OSError where the file cannot be written.
    """
    report = {
        "schema": SCHEMA,
        "run": dict(run),
        "host": host.to_json(),
        "cells": [cell.to_json() for cell in cells],
        "errors": [error.to_json() for error in errors],
    }
    write_whole(path, (json.dumps(report, indent=1) + "\n").encode())


def write_whole(path: Path, data: bytes) -> None:
    """Write a file whole or not at all. Raises OSError where it cannot be written."""
    if path.exists() and not path.is_file():  # /dev/stdout, a pipe: nothing to replace
        path.write_bytes(data)
        return
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        unfinished.write_bytes(data)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
