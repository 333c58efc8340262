"""The simulated driver's sources under sanitizers: many threads, good and bad calls, a reset under load."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SOURCES = HERE.parents[1] / "pytest_cudabatch" / "native" / "simcuda"
"""In the repository: an installed package has no C sources."""
DEFINITIONS = (
    '-DSIM_VARIANT="13.0"',
    "-DSIM_DRIVER_OWN=13000",
    "-DSIM_DRIVER_FIRST=13000",
    "-DSIM_DRIVER_LAST=13990",
)
FLAGS = ("-std=gnu11", "-g", "-O1", "-Wall", "-Wextra", "-Werror", "-fno-sanitize-recover=all", "-pthread")


def build(sanitizers: str, source: Path, directory: Path, *more: str) -> Path | None:
    """Compile with sanitizers; None where the compiler lacks their libraries."""
    probe, program = directory / "probe", directory / "program"
    link = ["gcc", f"-fsanitize={sanitizers}", "-x", "c", "-", "-o", str(probe)]
    linked = subprocess.run(link, input=b"int main(void) { return 0; }", capture_output=True, check=False)
    if linked.returncode != 0:
        return None
    command = ["gcc", f"-fsanitize={sanitizers}", *FLAGS, *more, str(source), "-o", str(program)]
    subprocess.run(command, check=True)
    return program


def driver_sources() -> list[str]:
    found = sorted(SOURCES.glob("driver/*.c")) + sorted(SOURCES.glob("engine/*.c"))
    shared = [
        SOURCES / name for name in ("note.c", "version_setting.c", "error_table.c", "exports/unsupported.c")
    ]
    return [str(path) for path in found + shared]


@pytest.mark.nightly
@pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc builds the sources with sanitizers")
@pytest.mark.parametrize("sanitizers", ["address,undefined", "thread"])
def test_stress_is_clean(sanitizers: str, tmp_path: Path) -> None:
    more = (f"-I{SOURCES}", *DEFINITIONS, *driver_sources())
    program = build(sanitizers, HERE / "simcuda_stress.c", tmp_path, *more)
    if program is None:
        pytest.skip(f"this gcc cannot link -fsanitize={sanitizers}")
    environment = {name: value for name, value in os.environ.items() if not name.endswith("SAN_OPTIONS")}
    for _ in range(3):  # another schedule each time
        done = subprocess.run(
            [program], env=environment, capture_output=True, text=True, timeout=120, check=False
        )
        assert (done.returncode, done.stderr) == (0, "")
