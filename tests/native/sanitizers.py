"""Builds the simulated driver's sources with gcc's sanitizers."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

__all__ = ["build", "driver_sources", "library_of", "without_options"]

SOURCES = Path(__file__).parents[2] / "pytest_cudabatch" / "native" / "simcuda"
"""In the repository: an installed package has no C sources."""
DEFINITIONS = (
    '-DSIM_VARIANT="13.0"',
    "-DSIM_DRIVER_OWN=13000",
    "-DSIM_DRIVER_FIRST=13000",
    "-DSIM_DRIVER_LAST=13990",
)
FLAGS = ("-std=gnu11", "-g", "-O1", "-Wall", "-Wextra", "-Werror", "-fno-sanitize-recover=all", "-pthread")


def build(sanitizers: str, sources: Sequence[str], target: Path, *more: str) -> Path:
    """Compile with the driver's definitions; skip where the compiler lacks the sanitizers' libraries."""
    probe = ["gcc", f"-fsanitize={sanitizers}", "-x", "c", "-", "-o", str(target)]
    if subprocess.run(probe, input=b"int main(void) { return 0; }", check=False).returncode != 0:
        pytest.skip(f"this gcc cannot link -fsanitize={sanitizers}")
    options = [f"-fsanitize={sanitizers}", *FLAGS, f"-I{SOURCES}", *DEFINITIONS, *more]
    subprocess.run(["gcc", *options, *sources, "-o", str(target)], check=True)
    return target


def driver_sources() -> list[str]:
    found = sorted(SOURCES.glob("driver/*.c")) + sorted(SOURCES.glob("engine/*.c"))
    shared = [SOURCES / name for name in ("note.c", "version_setting.c", "error_table.c")]
    return [str(path) for path in [*found, *shared, SOURCES / "exports" / "unsupported.c"]]


def library_of(sanitizer: str) -> str:
    """The path of gcc's own libasan.so, say, which a program must have before all else."""
    name = f"lib{sanitizer}.so"
    done = subprocess.run(["gcc", f"-print-file-name={name}"], capture_output=True, text=True, check=True)
    return str(Path(done.stdout.strip()).resolve())


def without_options() -> dict[str, str]:
    """The environment without the user's options of sanitizers."""
    return {name: value for name, value in os.environ.items() if not name.endswith("SAN_OPTIONS")}
