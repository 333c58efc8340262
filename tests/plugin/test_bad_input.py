"""Bad input gets one clear line from the controller and exit status 4, never a traceback."""

from __future__ import annotations

from pathlib import Path

import pytest

IMPLEMENTATIONS = "reference, specimen:dlsym-always-8, specimen:dlsym-always-9, specimen:driver-version"


def refused(pytester: pytest.Pytester, *arguments: str) -> list[str]:
    """Run the matrix, which must be refused; return the lines on stderr."""
    result = pytester.runpytest_subprocess("--cuda-matrix", "--cuda-platform=simulated", *arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "Traceback" not in result.stderr.str() + result.stdout.str()
    return [line for line in result.errlines if line.strip()]


def test_unknown_platform(pytester: pytest.Pytester) -> None:
    assert refused(pytester, "--cuda-platform=gpu") == [
        "ERROR: --cuda-platform: 'gpu' is none of auto, device, simulated, no-driver"
    ]


@pytest.mark.parametrize("seconds", ["-1", "0", "soon", "inf", "nan"])
def test_limit_that_is_no_positive_number(pytester: pytest.Pytester, seconds: str) -> None:
    assert refused(pytester, f"--cuda-timeout={seconds}") == [
        f"ERROR: --cuda-timeout: {seconds!r} is not a positive number of seconds"
    ]


def test_unknown_specimen_lists_those_that_exist(pytester: pytest.Pytester) -> None:
    (line,) = refused(pytester, "--cuda-implementation=specimen:nothing")
    assert line.startswith("ERROR: --cuda-implementation: ")
    assert "'specimen:nothing'" in line
    for name in IMPLEMENTATIONS.split(", "):
        assert name in line


def test_module_that_does_not_exist(pytester: pytest.Pytester) -> None:
    (line,) = refused(pytester, "--cuda-implementation=no_such_module:thing")
    assert "'no_such_module'" in line


def test_expression_that_does_not_parse(pytester: pytest.Pytester) -> None:
    lines = refused(pytester, "--cuda-select=runtime>>12")
    assert lines[0].startswith("ERROR: --cuda-select: ")
    assert len(lines) <= 3  # the line, the expression and a caret under the place


def test_all_problems_at_once(pytester: pytest.Pytester) -> None:
    lines = refused(pytester, "--cuda-platform=gpu", "--cuda-timeout=-3", "--cuda-report=out.xyz")
    assert [line.partition(":")[2].partition(":")[0].strip() for line in lines] == [
        "--cuda-platform",
        "--cuda-timeout",
        "--cuda-report",
    ]


def test_matrix_file_that_is_not_toml(pytester: pytest.Pytester) -> None:
    directory = pytester.mkdir("mine")
    (directory / "runtimes.toml").write_text("this is = not [toml\n")
    lines = refused(pytester, "--cuda-matrix-dir=mine")
    assert len(lines) == 1
    assert str(directory / "runtimes.toml") in lines[0]


def test_all_errors_of_a_matrix_file_at_once(pytester: pytest.Pytester) -> None:
    directory = pytester.mkdir("mine")
    (directory / "drivers.toml").write_text(
        'schema = 1\n[[driver]]\nversion = "x"\n[[driver]]\nverson = "12.9"\n'
    )
    lines = refused(pytester, "--cuda-matrix-dir=mine")
    assert len(lines) >= 2
    assert all("drivers.toml" in line for line in lines)


def test_missing_matrix_directory_and_runtime(pytester: pytest.Pytester) -> None:
    lines = refused(pytester, "--cuda-matrix-dir=missing", "--cuda-runtime=libmissing.so")
    path = pytester.path
    assert sorted(lines) == [
        f"ERROR: --cuda-matrix-dir: there is no directory {str(path / 'missing')!r}",
        f"ERROR: --cuda-runtime: there is no file {str(path / 'libmissing.so')!r}",
    ]


def test_runtime_that_is_no_libcudart(pytester: pytest.Pytester) -> None:
    Path(pytester.path / "libcudart.so.12").write_bytes(b"\x7fELF")
    (line,) = refused(pytester, "--cuda-runtime=libcudart.so.12")
    assert line.startswith("ERROR: --cuda-runtime: ")


def test_suite_only_without_suite(pytester: pytest.Pytester) -> None:
    assert refused(pytester, "--cuda-suite-only", "--cuda-no-suite") == [
        "ERROR: --cuda-suite-only and --cuda-no-suite leave nothing to run; give one of them"
    ]


def test_an_import_that_fails_in_the_cell_is_a_finding(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makepyfile(mine="import missing_dependency\n")
    monkeypatch.setenv("PYTHONPATH", str(pytester.path))
    result = pytester.runpytest_subprocess(
        "--cuda-matrix",
        "--cuda-platform=simulated",
        "--cuda-select=runtime==12.9 on driver==13.0",
        "--cuda-implementation=mine:implementation",
        "-k",
        "test_callee",
        "--cuda-suite-only",
    )
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        [
            "import-error: failed in 1 cell",
            "*implementation 'mine:implementation' cannot be loaded: ModuleNotFoundError: *",
        ]
    )
