"""A ``--cuda-matrix`` run beside pytest's own options and a project's own settings."""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

ONE_PAIRING = ("--cuda-platform=simulated", "--cuda-select=runtime==12.9 on driver==13.0")
ABI = "cudabatch/test_abi.py::test_callee_receives_what_the_caller_passed[reference-cu12.9-d13.0]"
LATER = "cudabatch/test_abi.py::test_choice_holds_for_later_calls_and_other_threads[reference-cu12.9-d13.0]"

OWN_TEST = """
import os

def test_own(batch_copy, copy_plan, cuda_runtime, cuda_stream, cuda_pairing):
    plan = copy_plan("d2h", "mixed", 3)
    assert batch_copy(plan, cuda_stream) == 0
    cuda_runtime.stream_synchronize(cuda_stream)
    assert plan.verify() == []
    assert cuda_pairing.id == "cu12.9-d13.0"

def test_plain():
    pass
"""


def run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return pytester.runpytest_subprocess("--cuda-matrix", *ONE_PAIRING, *arguments)


def report(pytester: pytest.Pytester, *arguments: str) -> tuple[pytest.RunResult, dict[str, Any]]:
    result = run(pytester, "--cuda-report=report.json", *arguments)
    return result, json.loads((pytester.path / "report.json").read_text())


def ids(data: dict[str, Any]) -> list[str]:
    return [cell["nodeid"] for cell in data["cells"]]


def test_without_the_flag_cell_tests_are_skipped_with_the_reason(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(OWN_TEST)
    result = pytester.runpytest_subprocess("-rs")
    result.assert_outcomes(passed=1, skipped=1)
    result.stdout.fnmatch_lines(["SKIPPED*a cell test of pytest-cudabatch: runs with --cuda-matrix only"])


def test_suite_and_own_cells_run_and_others_are_deselected(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(OWN_TEST)
    result, data = report(pytester, "-k", "test_own or test_callee or test_plain")
    assert result.ret == 0
    assert sorted(ids(data)) == [
        ABI,
        "test_suite_and_own_cells_run_and_others_are_deselected.py::test_own[reference-cu12.9-d13.0]",
    ]
    assert result.parseoutcomes()["deselected"] > 1


def test_report_says_what_ran_where(pytester: pytest.Pytester) -> None:
    _, data = report(pytester, ABI)
    assert data["schema"] == "pytest-cudabatch/report/1"
    assert data["host"]["platform"] == "simulated"
    assert data["host"]["driver"] is None
    (cell,) = data["cells"]
    assert {key: cell[key] for key in cell if key not in {"seconds", "basis"}} == {
        "nodeid": ABI,
        "case": "cudabatch/test_abi.py::test_callee_receives_what_the_caller_passed",
        "kind": "F1",
        "implementation": "reference",
        "pairing": "cu12.9-d13.0",
        "runtime": {"version": "12.9", "abi": "v12080", "source": "simulated"},
        "driver": {"version": "13.0"},
        "platform": "simulated",
        "verdict": "passed",
        "phase": "exit",
        "pytest": "passed",
        "path": "batch",
        "abi_called": "v12080",
        "calls": {"batch": 1, "per_copy": 0},
        "signal": None,
        "exit_code": 0,
        "rate": None,
        "finding": None,
        "known_issue": None,
    }
    assert 0 < cell["seconds"] < 60


@pytest.mark.parametrize("options", [(), ("-n2",)], ids=["one process", "two workers"])
def test_printed_ids_can_be_pasted_back(pytester: pytest.Pytester, options: tuple[str, ...]) -> None:
    own = pytester.makepyfile(OWN_TEST).name + "::test_own[reference-cu12.9-d13.0]"
    result, data = report(pytester, *options, ABI, LATER, own)
    assert result.ret == 0
    assert sorted(ids(data)) == sorted([ABI, LATER, own])


def test_an_own_cells_id_does_not_bring_the_suite(pytester: pytest.Pytester) -> None:
    own = pytester.makepyfile(OWN_TEST).name + "::test_own[reference-cu12.9-d13.0]"
    _, data = report(pytester, own)
    assert ids(data) == [own]


def test_a_case_and_a_file_select_their_cells(pytester: pytest.Pytester) -> None:
    _, data = report(pytester, "cudabatch/test_abi.py")
    assert ids(data) == [ABI, LATER]
    _, data = report(pytester, ABI.partition("[")[0])
    assert ids(data) == [ABI]


def test_an_id_that_names_no_cell_is_refused(pytester: pytest.Pytester) -> None:
    result = run(pytester, "cudabatch/test_abi.py::test_missing")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: not found in the suite: cudabatch/test_abi.py::test_missing"])


def test_collect_only_lists_ids_and_runs_nothing(pytester: pytest.Pytester) -> None:
    result = run(pytester, "--collect-only", "-q", "cudabatch/test_abi.py")
    assert result.ret == 0
    assert [line for line in result.outlines if line.startswith("cudabatch/")] == [ABI, LATER]


def test_deselect(pytester: pytest.Pytester) -> None:
    _, data = report(pytester, "cudabatch/test_abi.py", "--deselect", LATER)
    assert ids(data) == [ABI]


def test_last_failed_and_failed_first(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        def test_good(cuda_pairing):
            pass

        def test_wrong(cuda_pairing):
            assert cuda_pairing is None
        """
    )
    chosen = ("-k", "test_good or test_wrong or test_callee")
    first, data = report(pytester, *chosen)
    assert first.ret == 1
    assert len(ids(data)) == 3
    _, data = report(pytester, *chosen, "--lf")
    assert [name.partition("::")[2] for name in ids(data)] == ["test_wrong[cu12.9-d13.0]"]
    _, data = report(pytester, *chosen, "--ff")
    assert ids(data)[0].endswith("test_wrong[cu12.9-d13.0]")
    assert len(ids(data)) == 3


def test_stops_at_the_first_failure(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        "def test_wrong(cuda_pairing):\n    assert 0\n\ndef test_next(cuda_pairing):\n    pass\n"
    )
    result, data = report(pytester, "-x", "--cuda-no-suite")
    assert result.ret == 1
    assert [name.partition("::")[2] for name in ids(data)] == ["test_wrong[cu12.9-d13.0]"]


def test_junit_has_each_cell_once_with_its_verdict(pytester: pytest.Pytester) -> None:
    run(pytester, "cudabatch/test_abi.py", "--junitxml=junit.xml")
    cases = ElementTree.parse(pytester.path / "junit.xml").getroot().findall(".//testcase")
    assert [(case.get("classname"), case.get("name")) for case in cases] == [
        ("cudabatch.test_abi", ABI.partition("::")[2]),
        ("cudabatch.test_abi", LATER.partition("::")[2]),
    ]
    for case in cases:
        properties = {p.get("name"): p.get("value") for p in case.findall("./properties/property")}
        assert properties["cudabatch_verdict"] == "passed"
        assert properties["cudabatch_path"] == "batch"


def test_foreign_settings_do_not_reach_the_suite(pytester: pytest.Pytester) -> None:
    pytester.makeini(
        """
        [pytest]
        python_files = check_*.py
        python_functions = check_*
        usefixtures = missing_fixture
        addopts = -q --import-mode=importlib
        """
    )
    pytester.makeconftest(
        """
        import pytest

        @pytest.fixture(autouse=True, params=["a", "b"])
        def everywhere(request):
            raise RuntimeError("reached the suite")
        """
    )
    _, data = report(pytester, "-k", "test_callee")
    assert ids(data) == [ABI]
    assert data["cells"][0]["verdict"] == "passed"


def test_own_cells_follow_the_projects_settings(pytester: pytest.Pytester) -> None:
    pytester.makeini(
        "[pytest]\npython_files = check_*.py\npython_functions = check_*\naddopts = -n 2 --own=seven\n"
    )
    pytester.makeconftest(
        """
        import pytest

        def pytest_addoption(parser):
            parser.addoption("--own")

        @pytest.fixture(autouse=True)
        def number(request):
            return request.config.getoption("--own")
        """
    )
    pytester.makepyfile(check_it="def check_number(cuda_pairing, number):\n    assert number == 'seven'\n")
    result, data = report(pytester, "--cuda-no-suite")
    assert result.ret == 0
    assert ids(data) == ["check_it.py::check_number[cu12.9-d13.0]"]


def test_importlib_mode_with_equal_file_names(pytester: pytest.Pytester) -> None:
    for name in ("one", "two"):
        directory = pytester.mkdir(name)
        (directory / "test_same.py").write_text("def test_it(cuda_pairing):\n    pass\n")
    result, data = report(pytester, "--import-mode=importlib", "--cuda-no-suite")
    assert result.ret == 0
    assert ids(data) == ["one/test_same.py::test_it[cu12.9-d13.0]", "two/test_same.py::test_it[cu12.9-d13.0]"]


def test_suite_inside_an_in_tree_virtual_environment(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A suite found by path would be ignored, since pytest does not look into virtual environments."""
    site = (
        pytester.path
        / ".venv"
        / "lib"
        / f"python{sys.version_info[0]}.{sys.version_info[1]}"
        / "site-packages"
    )
    site.mkdir(parents=True)
    (pytester.path / ".venv" / "pyvenv.cfg").write_text(f"home = {Path(sys.executable).parent}\n")
    import pytest_cudabatch  # noqa: PLC0415 - where the installed package lies

    (site / "pytest_cudabatch").symlink_to(Path(pytest_cudabatch.__file__).parent)
    monkeypatch.setenv("PYTHONPATH", str(site))
    _, data = report(pytester, "-k", "test_callee")
    assert ids(data) == [ABI]


def test_a_checkout_in_the_current_directory_does_not_shadow_the_package(pytester: pytest.Pytester) -> None:
    """The pytest script keeps the current directory off sys.path; so do the zygotes that it starts."""
    pytester.mkpydir("pytest_cudabatch").joinpath("__init__.py").write_text(
        "raise RuntimeError('shadowed')\n"
    )
    script = Path(sysconfig.get_path("scripts"), "pytest")
    options = (
        "--cuda-matrix",
        *ONE_PAIRING,
        "--cuda-suite-only",
        "-k",
        "test_callee",
        "-p",
        "no:cacheprovider",
    )
    # Not by pytester, which adds the current directory to PYTHONPATH.
    done = subprocess.run([script, *options], cwd=pytester.path, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "1 passed" in done.stdout.splitlines()[-1]


def test_own_cells_import_from_the_current_directory_under_python_m_pytest(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(beside="VALUE = 3\n")
    tests = pytester.mkdir("tests")
    (tests / "test_it.py").write_text(
        "import beside\n\ndef test_it(cuda_pairing):\n    assert beside.VALUE == 3\n"
    )
    result, data = report(pytester, "--cuda-no-suite", "tests")
    assert result.ret == 0
    assert ids(data) == ["tests/test_it.py::test_it[cu12.9-d13.0]"]


def test_suite_only_does_not_import_the_project(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("raise RuntimeError('imported')\n")
    result, data = report(pytester, "--cuda-suite-only", "-k", "test_callee")
    assert result.ret == 0
    assert ids(data) == [ABI]
    assert data["errors"] == []


@pytest.mark.parametrize("options", [(), ("-n2",)], ids=["one process", "two workers"])
def test_an_import_error_of_the_project_stops_nothing_else(
    pytester: pytest.Pytester, options: tuple[str, ...]
) -> None:
    pytester.makepyfile(
        test_broken="import missing_module\n", test_fine="def test_it(cuda_pairing):\n    pass\n"
    )
    result, data = report(pytester, *options, "-k", "test_callee or test_it or test_broken")
    assert result.ret == 1
    assert sorted(ids(data)) == [ABI, "test_fine.py::test_it[cu12.9-d13.0]"]
    assert [error["summary"].partition(":")[0] for error in data["errors"]] == ["test_broken.py"]


def test_marker_narrows_a_tests_pairings(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.cuda_pairings("runtime>=13 on driver>=13")
        def test_new(cuda_pairing):
            pass

        @pytest.mark.cuda_pairings("runtime==12.9")
        def test_old(cuda_pairing):
            pass
        """
    )
    _, data = report(pytester, "--cuda-no-suite")
    assert [name.partition("::")[2] for name in ids(data)] == ["test_old[cu12.9-d13.0]"]


def test_marked_test_without_a_pairing_runs_once_in_a_process_of_its_own(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import os
        import pytest

        @pytest.mark.cuda_cell
        def test_dies():
            os.abort()
        """
    )
    result, data = report(pytester, "--cuda-no-suite")
    assert result.ret == 1
    (cell,) = data["cells"]
    assert (cell["verdict"], cell["signal"], cell["pairing"]) == ("crashed", "SIGABRT", None)


def test_no_cell_is_exit_status_five(pytester: pytest.Pytester) -> None:
    assert run(pytester, "--cuda-no-suite").ret == pytest.ExitCode.NO_TESTS_COLLECTED


def test_without_the_plugin_no_trace_remains(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_plain():\n    pass\n")
    result = pytester.runpytest_subprocess("-p", "no:cudabatch", "--markers")
    assert "cuda_cell" not in result.stdout.str()
    result = pytester.runpytest_subprocess("-p", "no:cudabatch", "--help")
    assert "--cuda-" not in result.stdout.str()
    assert pytester.runpytest_subprocess("-p", "no:cudabatch").ret == 0


def test_pytest_timeouts_smaller_limit_wins(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import signal
        import pytest

        @pytest.mark.timeout(0.5)
        def test_stuck(cuda_pairing):
            signal.pause()
        """
    )
    result, data = report(pytester, "--cuda-no-suite", "--cuda-timeout=50")
    assert result.ret == 1
    (cell,) = data["cells"]
    assert (cell["verdict"], cell["finding"]["code"]) == ("hung", "hang")
    assert cell["seconds"] < 5


def test_hooks_are_called(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        """
        def pytest_cudabatch_modify_pairings(config, pairings):
            pairings[:] = [pairing for pairing in pairings if pairing.id == "cu13.0-d13.0"]

        def pytest_cudabatch_cell_finished(config, cell):
            print("finished", cell.identity.nodeid, cell.verdict.value)
        """
    )
    result = pytester.runpytest_subprocess(
        "--cuda-matrix", "--cuda-platform=simulated", "-k", "test_callee", "-s"
    )
    name = ABI.replace("cu12.9", "cu13.0")
    assert [
        line for line in result.outlines if "finished" in line and "passed" in line and name in line
    ] != []
    result.assert_outcomes(passed=1, deselected=None)
