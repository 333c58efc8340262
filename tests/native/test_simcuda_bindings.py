"""cuda.bindings.driver and cuda.core, as their wheels are, on the simulated driver."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_cudabatch.native.__main__ import main

from .processes import clean_environment

PROGRAMS = Path(__file__).parent / "programs"
FETCH_LIMIT = 180.0


def run_program(
    name: str, directory: Path, driver: str, *arguments: str, packages: Path | None = None
) -> None:
    """Run a program of programs/ as the manual says, with ``packages`` before those that are installed."""
    before = {} if packages is None else {"PYTHONPATH": str(packages)}
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest_cudabatch.native", "--driver", driver, "--"),
            *(sys.executable, str(PROGRAMS / name), *arguments),
        ],
        env=clean_environment(before),
        cwd=directory,  # not the checkout, whose package has no libraries
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "exact\n", "")


@pytest.mark.parametrize(("driver", "version"), [("13.0", "13000"), ("13.5", "13050")])
def test_bindings_copy_a_batch(driver: str, version: str, tmp_path: Path) -> None:
    run_program("driver_bindings.py", tmp_path, driver, version)


def test_core_copies_a_batch(tmp_path: Path) -> None:
    if importlib.util.find_spec("cuda.core") is None:
        pytest.skip("cuda-core is not installed")
    run_program("core_objects.py", tmp_path, "13.0")


def fetched(cache: pytest.Cache, requirement: str) -> Path:
    """Return a directory with the wheel of ``requirement``, fetched once with pip; skip where pip cannot."""
    directory = cache.mkdir(requirement.replace("==", "-").rstrip(".*"))
    if not (directory / "cuda").is_dir():
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--only-binary=:all:"]
        done = subprocess.run(
            [*command, "--target", str(directory), requirement],
            env={**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"},
            capture_output=True,
            text=True,
            timeout=FETCH_LIMIT,
            check=False,
        )
        if done.returncode != 0:
            pytest.skip(f"pip cannot fetch {requirement}: {done.stderr.strip().splitlines()[-1]}")
    return directory


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("requirement", "driver", "version"),
    [
        ("cuda-bindings==12.9.*", "12.8", "12080"),
        ("cuda-bindings==12.9.*", "12.9", "12090"),
        ("cuda-bindings==12.9.*", "13.0", "13000"),
        ("cuda-bindings==13.*", "13.0", "13000"),
    ],
)
def test_each_major_version_of_the_bindings(
    pytestconfig: pytest.Config, tmp_path: Path, requirement: str, driver: str, version: str
) -> None:
    assert pytestconfig.cache is not None
    packages = fetched(pytestconfig.cache, requirement)
    run_program("driver_bindings.py", tmp_path, driver, version, packages=packages)


def test_variables_for_a_shell(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pytest_cudabatch.native", "--driver", "12.9", "--runtime", "12.6"]
    ask = "import ctypes; v = ctypes.c_int(); ctypes.CDLL('{}').{}(ctypes.byref(v)); print(v.value)"
    asked = [("libcuda.so.1", "cuDriverGetVersion"), ("libcudart.so.12", "cudaRuntimeGetVersion")]
    lines = [f'{sys.executable} -c "{ask.format(*names)}"' for names in asked]
    script = "\n".join([f'eval "$({" ".join(command)})"', *lines])
    done = subprocess.run(
        ["sh", "-c", script],
        env=clean_environment({}),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["12090", "12060"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--driver", "11.8"], "CUDA 11.8 is not simulated"),
        (["--runtime", "12.8", "--runtime", "12.9"], "at most one of each major version"),
        (["--", "/no/such/program"], "No such file"),
    ],
)
def test_what_cannot_be_run(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert said in capsys.readouterr().err
