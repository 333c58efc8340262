"""Platform ``no-driver``: real runtimes without a driver.

The runtimes here are compiled for the test: they answer as a vendor's libcudart without a driver does, and
carry no note, so that nothing tells them from one.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from vendor_wheels import libcudart

from pytest_cudabatch import native
from pytest_cudabatch.cuda.signatures import PARAMETERS
from pytest_cudabatch.runtimes import probe

NO_DRIVER = 35  # cudaErrorInsufficientDriver
OTHERS = "".join(
    f"int {name}(void) {{ return {NO_DRIVER}; }}\n"
    for name in PARAMETERS
    if name not in ("cudaRuntimeGetVersion", "cudaDriverGetVersion")
)
DRIVERLESS = f"int cudaDriverGetVersion(int *version) {{ *version = 0; return 0; }}\n{OTHERS}"

OWN_TESTS = """
def test_version(cuda_runtime, cuda_pairing):
    assert cuda_runtime.version == cuda_pairing.runtime.version
    assert cuda_runtime.driver_version is None
    assert cuda_pairing.driver.version is None
    assert cuda_runtime.call("cudaMalloc", None, 1) == 35

def test_copy(batch_copy, copy_plan, cuda_stream):
    raise AssertionError("nothing can be copied here")

def test_stream(cuda_pairing, cuda_stream):
    raise AssertionError("there are no streams here")
"""


@pytest.fixture(scope="module", autouse=True)
def _without_a_driver() -> None:
    if (driver := probe(60.0).path) is not None:
        pytest.skip(f"this host has a driver, {driver}, and platform no-driver is for hosts without one")


@pytest.fixture
def runtimes(tmp_path: Path) -> dict[str, Path]:
    paths = {}
    for number in (12060, 12090, 13000):
        directory = tmp_path / str(number)
        directory.mkdir()
        path = directory / f"libcudart.so.{number // 1000}"
        paths[str(number)] = libcudart(path, number, batch=number != 12060, extra=DRIVERLESS)
    return paths


def run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return pytester.runpytest_subprocess("--cuda-matrix", "--cuda-platform=no-driver", *arguments)


def named(runtimes: dict[str, Path]) -> list[str]:
    return [f"--cuda-runtime={path}" for path in runtimes.values()]


def test_own_tests_run_without_copying(pytester: pytest.Pytester, runtimes: dict[str, Path]) -> None:
    pytester.makepyfile(test_own=OWN_TESTS)
    result = run(pytester, *named(runtimes), "--cuda-no-suite", "--cuda-report=report.json")
    assert result.ret == 0
    report = json.loads((pytester.path / "report.json").read_text())
    assert report["host"]["platform"] == "no-driver"
    assert [
        (cell["nodeid"], cell["verdict"], cell["platform"], cell["driver"], cell["basis"])
        for cell in report["cells"]
    ] == [
        (f"test_own.py::test_version[cu{version}-dnone]", "passed", "no-driver", {"version": None}, "header")
        for version in ("12.6", "12.9", "13.0")
    ]
    result.stdout.fnmatch_lines(
        [
            "cuda matrix: real runtimes without a driver; pairings: 3 (runtimes: 3, drivers: 0); reference",
            "no-driver cells: 3 passed (basis: 3 header)",
        ]
    )


def test_selection_by_driver_matches_nothing(pytester: pytest.Pytester, runtimes: dict[str, Path]) -> None:
    pytester.makepyfile(test_own=OWN_TESTS)
    chosen = run(pytester, *named(runtimes), "--cuda-no-suite", "--cuda-select=runtime>=12.8")
    chosen.assert_outcomes(passed=2, deselected=2)
    none = run(pytester, *named(runtimes), "--cuda-no-suite", "--cuda-select=driver>=12")
    assert none.ret == pytest.ExitCode.NO_TESTS_COLLECTED


def test_discovered_runtimes_are_paired(
    pytester: pytest.Pytester, runtimes: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The host may have more; of a minor version that it has, too, the one that is found first runs."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(pytester.path / "cache"))
    monkeypatch.setenv("LD_LIBRARY_PATH", str(runtimes["12060"].parent))
    pytester.makepyfile(test_own=OWN_TESTS)
    result = run(pytester, "--cuda-no-suite", "--cuda-select=runtime==12.6", "-k", "test_version")
    result.assert_outcomes(passed=1, deselected=2)


def test_simulated_runtimes_are_refused(pytester: pytest.Pytester) -> None:
    path = native.library("simcuda/runtime-12.8/libcudart.so.12")
    result = run(pytester, f"--cuda-runtime={path}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert [line for line in result.errlines if line] == [
        f"ERROR: --cuda-runtime: {path} is simulated; use --cuda-platform=simulated"
    ]


def test_auto_never_picks_it(pytester: pytest.Pytester, runtimes: dict[str, Path]) -> None:
    result = pytester.runpytest_subprocess("--cuda-matrix", f"--cuda-runtime={runtimes['12090']}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --cuda-runtime: * needs a GPU or --cuda-platform=no-driver, *"])


def test_a_driver_on_the_host_is_told(
    pytester: pytest.Pytester, runtimes: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = native.library("simcuda/driver-13.0/libcuda.so.1")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(driver.parent))
    result = run(pytester, *named(runtimes))
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert [line for line in result.errlines if line] == [
        f"ERROR: --cuda-platform=no-driver: there is a driver, and it would be used: {driver}"
    ]
