"""What users do wrong, and what goes wrong around a run: told in one line, never silently green."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from pytest_cudabatch.native import library

ONE_PAIRING = "--cuda-select=runtime==12.9 on driver==13.0"
OPTIONS = ("--cuda-matrix", "--cuda-platform=simulated", ONE_PAIRING)
ABI = "cudabatch/test_abi.py::test_callee_receives_what_the_caller_passed"


def run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return pytester.runpytest_subprocess(*OPTIONS, "--cuda-report=report.json", *arguments)


def report(pytester: pytest.Pytester) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((pytester.path / "report.json").read_text())
    return data


@pytest.mark.parametrize("option", ["--cuda-strict", "--cuda-require=device:1"])
def test_a_gate_that_lost_its_flag_is_refused(pytester: pytest.Pytester, option: str) -> None:
    result = pytester.runpytest_subprocess(option)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    name = option.partition("=")[0]
    assert result.errlines[0] == f"ERROR: {name} goes with --cuda-matrix, which is missing"


@pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["one process", "two workers"])
@pytest.mark.parametrize(
    ("marker", "problem"),
    [
        ("cuda_cell(finding='zzz')", "cuda_cell(finding='zzz'): must be one of wrong-abi, *"),
        ("cuda_cell(tier='weekly')", "cuda_cell(tier='weekly'): must be one of smoke, gate, nightly"),
        ("cuda_cell('gate')", "cuda_cell takes kind, finding, tier, pairings, alone and devices by name, *"),
        (
            "cuda_cell(foo=1)",
            "cuda_cell takes kind, finding, tier, pairings, alone and devices by name, *'foo'*",
        ),
    ],
)
def test_bad_markers_fail_their_test_and_no_other(
    pytester: pytest.Pytester, marker: str, problem: str, workers: tuple[str, ...]
) -> None:
    pytester.makepyfile(
        f"""
        import pytest

        @pytest.mark.{marker}
        def test_marked(cuda_pairing):
            pass

        def test_other(cuda_pairing):
            pass
        """
    )
    result = run(pytester, "--cuda-no-suite", *workers)
    assert result.ret == 1
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines([f"the cell could not be run: {problem}".replace("[", "[[]")])
    assert "Traceback" not in result.stdout.str()


@pytest.mark.parametrize("marker", ["cuda_pairings('bogus')", "cuda_pairings()"])
def test_a_bad_selection_by_marker_is_a_line(pytester: pytest.Pytester, marker: str) -> None:
    pytester.makepyfile(f"import pytest\n\n@pytest.mark.{marker}\ndef test_it(cuda_pairing):\n    pass\n")
    result = run(pytester, "--cuda-no-suite")
    assert result.ret != 0
    assert "cuda_pairings" in result.stdout.str()
    assert "conformance" not in result.stdout.str()
    assert "run.py" not in result.stdout.str()


def test_text_that_utf8_cannot_carry_loses_no_cell(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_it(cuda_pairing):\n    assert 0, '\\udcff bad'\n")
    result = run(pytester, "--cuda-no-suite", "-n2")
    assert result.ret == 1
    result.assert_outcomes(failed=1)
    assert [cell["verdict"] for cell in report(pytester)["cells"]] == ["failed"]


def test_a_cell_that_is_never_reported_fails_the_run(pytester: pytest.Pytester) -> None:
    """A plugin that drops a cell, or a worker that loses one, must not leave a green run."""
    pytester.makeconftest(
        """
        import pytest

        @pytest.hookimpl(trylast=True)
        def pytest_collection_finish(session):
            session.items[:] = [item for item in session.items if "lost" not in item.name]
        """
    )
    pytester.makepyfile("def test_lost(cuda_pairing):\n    pass\n\ndef test_kept(cuda_pairing):\n    pass\n")
    result = run(pytester, "--cuda-no-suite", "-p", "no:randomly")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["FAILED 1 cells were never reported, the first is *::test_lost*"])
    assert [error["summary"] for error in report(pytester)["errors"]] == ["1 of 2 planned cells: not started"]


def test_a_tier_reaches_the_projects_own_cells(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_medium(cuda_pairing):\n    pass\n")
    result = pytester.runpytest_subprocess(
        *OPTIONS[:2], "--cuda-select=smoke runtime==12.9 on driver==13.0", "-k", "test_medium or test_callee"
    )
    assert result.ret == 0
    assert result.parseoutcomes()["passed"] == 1


def test_an_implementation_that_lives_in_the_project_is_found(pytester: pytest.Pytester) -> None:
    """From the directory of python -m pytest, and from the ini's pythonpath."""
    source = pytester.mkdir("src")
    text = "from pytest_cudabatch.implementations import load\nimplementation = load('reference')\n"
    (source / "mine.py").write_text(text)
    pytester.makepyfile(beside=text)
    pytester.makeini("[pytest]\npythonpath = src\n")
    for name in ("mine", "beside"):
        result = run(pytester, f"--cuda-implementation={name}:implementation", "-k", "test_callee")
        assert result.ret == 0
        assert [cell["implementation"] for cell in report(pytester)["cells"]] == [f"{name}:implementation"]


def test_a_report_that_cannot_be_written_is_refused_at_once(pytester: pytest.Pytester) -> None:
    pytester.mkdir("dir.json")
    result = pytester.runpytest_subprocess(*OPTIONS, "--cuda-report=dir.json")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert result.errlines[0] == f"ERROR: --cuda-report: {str(pytester.path / 'dir.json')!r} is a directory"


def test_a_report_that_fails_at_the_end_costs_nothing_else(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        """
        import pathlib

        def pytest_cudabatch_cell_finished(config, cell):
            pathlib.Path("report.json").mkdir()
        """
    )
    result = run(pytester, "-k", "test_callee")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["FAILED --cuda-report: cannot write *report.json: *", "*1 passed*"])


def test_collect_only_touches_no_report(pytester: pytest.Pytester) -> None:
    (pytester.path / "report.json").write_text("kept")
    assert run(pytester, "--collect-only", "-q", "-k", "test_callee", "--cuda-strict").ret == 0
    assert (pytester.path / "report.json").read_text() == "kept"


def test_cuda_that_was_used_at_import_is_told_as_such(pytester: pytest.Pytester) -> None:
    driver = library("simcuda/driver-13.0/libcuda.so.1")
    pytester.makepyfile(
        f"""
        import ctypes

        libcuda = ctypes.CDLL({str(driver)!r})
        assert libcuda.cuInit(0) == 0
        device, context = ctypes.c_int(), ctypes.c_void_p()
        libcuda.cuDeviceGet(ctypes.byref(device), 0)
        libcuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)

        def test_it(batch_copy, copy_plan, cuda_stream):
            batch_copy.check(copy_plan("h2d", "uniform", 4), cuda_stream)
        """
    )
    result = run(pytester, "--cuda-no-suite")
    assert result.ret == 1
    (cell,) = report(pytester)["cells"]
    assert (cell["verdict"], cell["finding"]["code"]) == ("failed", "leaked-state")


def test_suite_ids_from_below_rootdir_and_the_whole_suite(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makeini("[pytest]\n")
    below = pytester.mkdir("below")
    monkeypatch.chdir(below)
    for name in (f"../{ABI}", ABI):
        result = pytester.runpytest_subprocess(*OPTIONS, name, "--rootdir", "..", "-c", "../tox.ini")
        assert result.ret == 0
        result.assert_outcomes(passed=1)
    monkeypatch.chdir(pytester.path)
    result = pytester.runpytest_subprocess(*OPTIONS, "cudabatch/", "-k", "test_callee")
    assert result.parseoutcomes()["passed"] == 1


def test_an_unknown_suite_id_is_told_by_two_workers_too(pytester: pytest.Pytester) -> None:
    result = run(pytester, "cudabatch/test_abi.py::nope", "-n2")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stdout.fnmatch_lines(["ERROR: not found in the suite: cudabatch/test_abi.py::nope"])


def test_a_zygote_that_cannot_start_is_started_once(pytester: pytest.Pytester) -> None:
    log = pytester.path / "starts"
    pytester.makeconftest(
        f"""
        import pathlib, sys

        if "pytest_cudabatch.cells.zygote" in sys.modules:
            with pathlib.Path({str(log)!r}).open("a") as file:
                file.write("x")
            raise RuntimeError("not here")
        """
    )
    pytester.makepyfile(
        "import pytest\n\n@pytest.mark.parametrize('i', range(3))\ndef test_it(cuda_pairing, i):\n    pass\n"
    )
    result = run(pytester, "--cuda-no-suite")
    assert result.ret == 1
    result.assert_outcomes(errors=3)
    assert log.read_text() == "x"


def test_a_fixture_asked_for_at_run_time_says_what_to_do(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.cuda_cell
        def test_it(request):
            request.getfixturevalue("cuda_pairing")
        """
    )
    result = run(pytester, "--cuda-no-suite")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*name cuda_pairing among the test's arguments*"])


def test_a_module_that_exits_on_import_is_an_import_error(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makepyfile(leaves="raise SystemExit(5)\n")
    monkeypatch.setenv("PYTHONPATH", os.fspath(pytester.path))
    result = run(pytester, "--cuda-implementation=leaves:thing", "-k", "test_callee")
    assert result.ret == 1
    assert [cell["finding"]["code"] for cell in report(pytester)["cells"]] == ["import-error"]
