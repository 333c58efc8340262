"""A context that is lost is found after the cell that lost it, also where that cell passed."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc builds the fake driver")

FAKE_DRIVER = """
int cuCtxGetCurrent(void **context) { *context = CURRENT; return 0; }
int cuCtxSynchronize(void) { return SYNCHRONISED; }
"""


def fake_driver(directory: Path, *, current: int, synchronised: int) -> Path:
    """Build a libcuda whose thread has a context or none, and whose work ends with a code."""
    source, library = directory / "fake.c", directory / "libcuda.so.1"
    source.write_text(FAKE_DRIVER)
    subprocess.run(
        [
            *("gcc", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", str(library), str(source)),
            *(f"-DCURRENT=(void *){current}", f"-DSYNCHRONISED={synchronised}"),
        ],
        check=True,
    )
    return library


@pytest.mark.parametrize(
    ("current", "synchronised", "expected"),
    [
        (1, 0, "None"),
        (0, 700, "None"),
        (1, 719, "cuCtxSynchronize returned CUDA error 719"),
        (1, 700, "cuCtxSynchronize returned CUDA error 700"),
        (1, 900, "None"),  # the context of a stream under capture is well
    ],
)
def test_only_the_sticky_error_of_a_current_context_counts(
    tmp_path: Path, current: int, synchronised: int, expected: str
) -> None:
    library = fake_driver(tmp_path, current=current, synchronised=synchronised)
    source = (
        f"import ctypes; ctypes.CDLL({str(library)!r})\n"
        "from pytest_cudabatch.cuda import lost_context; print(lost_context())"
    )
    done = subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert done.stdout.strip() == expected


def test_without_a_driver_there_is_nothing_to_lose(tmp_path: Path) -> None:
    source = "from pytest_cudabatch.cuda import lost_context; print(lost_context())"
    done = subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert done.stdout.strip() == "None"


def test_the_guilty_cell_is_named_though_it_passed(pytester: pytest.Pytester) -> None:
    library = fake_driver(pytester.path, current=1, synchronised=700)
    pytester.makepyfile(
        f"""
        import ctypes, pytest
        pytestmark = pytest.mark.cuda_cell

        def test_before(): pass
        def test_guilty(): ctypes.CDLL({str(library)!r})
        def test_after(): pass
        """
    )
    result = pytester.runpytest_subprocess(
        *("--cuda-matrix", "--cuda-no-suite", "--cuda-platform=simulated", "--cuda-report=report.json"),
        *("--cuda-select=runtime==12.9 on driver==13.0", "-p", "no:randomly"),
    )
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    cells = json.loads((pytester.path / "report.json").read_text())["cells"]
    assert [cell["verdict"] for cell in cells] == ["passed", "crashed", "passed"]
    assert cells[1]["finding"]["code"] == "crash"
    assert cells[1]["finding"]["summary"].endswith("cuCtxSynchronize returned CUDA error 700")


@pytest.mark.parametrize("code", [2, 46])
def test_a_device_that_others_hold_is_unavailable(pytester: pytest.Pytester, code: int) -> None:
    """Too little memory, and exclusive mode or a busy device."""
    pytester.makepyfile(
        f"""
        import pytest
        from pytest_cudabatch.errors import CudaError

        @pytest.mark.cuda_cell
        def test_it(): raise CudaError("cudaMalloc", {code})
        """
    )
    pytester.runpytest_subprocess(
        *("--cuda-matrix", "--cuda-no-suite", "--cuda-platform=simulated", "--cuda-report=report.json"),
        "--cuda-select=runtime==12.9 on driver==13.0",
    )
    (cell,) = json.loads((pytester.path / "report.json").read_text())["cells"]
    assert (cell["verdict"], cell["finding"]["code"]) == ("unavailable", "no-gpu")
    assert f"cudaMalloc returned CUDA error {code}" in cell["finding"]["summary"]
