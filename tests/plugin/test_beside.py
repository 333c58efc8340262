"""Cells beside pytest's own options and other plugins: each does what it does for ordinary tests."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pexpect
import pytest
from junitparser.xunit2 import JUnitXml

MATRIX = (
    "--cuda-matrix",
    "--cuda-platform=simulated",
    "--cuda-select=runtime==12.9 on driver==13.0",
    "--cuda-no-suite",
    "--cuda-report=run.json",
)
CELLS = """
import warnings
import pytest

@pytest.fixture(scope="session")
def resource():
    print("resource begins")
    yield "resource"
    print("resource ends")

def test_a(cuda_pairing, resource):
    print("from a")

def test_b(cuda_pairing, resource):
    assert resource == "other"

def test_c(cuda_pairing):
    pass

def test_d(cuda_pairing):
    assert not "d"
"""
ALL = {"a": "passed", "b": "failed", "c": "passed", "d": "failed"}


def run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return pytester.runpytest_subprocess(*MATRIX, *arguments)


def verdicts(pytester: pytest.Pytester) -> dict[str, str]:
    """Each cell's verdict in the order in which they were told."""
    cells = json.loads((pytester.path / "run.json").read_text())["cells"]
    return {cell["case"].rpartition("test_")[2]: cell["verdict"] for cell in cells}


@pytest.fixture(autouse=True)
def project(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_it=CELLS)


@pytest.mark.parametrize(
    ("options", "ran"), [(["-x"], "ab"), (["--maxfail=2"], "abcd"), (["--maxfail=1", "-n1"], "ab")]
)
def test_stop_at_a_failure(pytester: pytest.Pytester, options: list[str], ran: str) -> None:
    result = run(pytester, *options)
    # A worker may have begun with the next cell when it is told to stop.
    assert "".join(verdicts(pytester))[: len(ran)] == ran
    assert result.ret in (pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED)
    if "-x" in options:
        assert verdicts(pytester) == {"a": "passed", "b": "failed"}
        errors = json.loads((pytester.path / "run.json").read_text())["errors"]
        assert [error["unfinished"] for error in errors] == ["not-started"]


def test_last_failed_failed_first_and_stepwise(pytester: pytest.Pytester) -> None:
    run(pytester)
    assert verdicts(pytester) == ALL
    run(pytester, "--lf")
    assert verdicts(pytester) == {"b": "failed", "d": "failed"}
    run(pytester, "--ff")
    assert "".join(verdicts(pytester)) == "bdac"
    run(pytester, "--sw")
    assert "".join(verdicts(pytester)) == "ab"
    run(pytester, "--sw", "--sw-skip")
    assert "".join(verdicts(pytester)) == "bcd"


@pytest.mark.parametrize(
    "option", ["-s", "--capture=fd", "--capture=sys", "--capture=tee-sys", "--capture=no"]
)
def test_captured_output_comes_with_its_report(pytester: pytest.Pytester, option: str) -> None:
    result = run(pytester, option, "-rA", "-k", "test_a")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*Captured stdout call*", "from a"])
    result.stdout.fnmatch_lines(["*Captured stdout setup*", "resource begins"])


def test_debugger_without_isolation(pytester: pytest.Pytester) -> None:
    child = pytester.spawn_pytest(f"{' '.join(map(repr, MATRIX))} --cuda-isolation=none --pdb -k test_b")
    child.expect(r"\(Pdb\) ")
    child.sendline("p resource, cuda_pairing.id")
    child.expect_exact("('resource', 'cu12.9-d13.0')")
    child.sendline("c")
    child.expect("1 failed")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == pytest.ExitCode.TESTS_FAILED


def test_options_that_need_a_terminal_say_so(pytester: pytest.Pytester) -> None:
    """There is none in a cell: it is told as without the options."""
    result = run(pytester, "--pdb", "--setup-show")
    assert verdicts(pytester) == ALL
    assert "(Pdb)" not in result.stdout.str()
    result.stdout.fnmatch_lines(
        [
            "cuda matrix: --pdb does nothing in cells; add --cuda-isolation=none",
            "cuda matrix: --setup-show does nothing in cells; add --cuda-isolation=none",
        ]
    )


def test_setup_show_without_isolation(pytester: pytest.Pytester) -> None:
    result = run(pytester, "--setup-show", "--cuda-isolation=none", "-k", "test_a")
    result.stdout.fnmatch_lines(["SETUP    S resource", "*test_it.py::test_a*fixtures used: *resource*"])


@pytest.mark.parametrize(
    "options",
    [
        ("-W", "error"),
        ("--import-mode=importlib",),
        ("-p", "no:faulthandler"),
        ("-p", "no:xdist"),
        ("-p", "no:cacheprovider", "-p", "no:timeout"),
    ],
    ids=lambda options: options[-1],
)
def test_options_that_change_nothing(pytester: pytest.Pytester, options: tuple[str, ...]) -> None:
    result = run(pytester, *options)
    assert verdicts(pytester) == ALL
    result.assert_outcomes(passed=2, failed=2)


def test_warnings_as_errors_fail_the_cell_that_warns(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_it="import warnings\n\ndef test_w(cuda_pairing):\n    warnings.warn('mind')\n")
    assert run(pytester).ret == 0
    assert run(pytester, "-W", "error").ret == 1


def test_without_the_loading_of_plugins(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    result = run(pytester, "-p", "pytest_cudabatch.plugin")
    assert verdicts(pytester) == ALL
    result.assert_outcomes(passed=2, failed=2)


BLOCKS = """
def test_first(cuda_pairing):
    pass

def test_blocks(cuda_pairing):
    open({ready!r}, "w").close()
    open({hold!r}).read()

def test_last(cuda_pairing):
    pass
"""


def test_control_c_ends_the_run_and_its_cells(pytester: pytest.Pytester) -> None:
    ready, hold = pytester.path / "ready", pytester.path / "hold"
    os.mkfifo(ready)
    os.mkfifo(hold)
    pytester.makepyfile(test_it=BLOCKS.format(ready=str(ready), hold=str(hold)))
    command = [sys.executable, "-m", "pytest", *MATRIX]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        ready.open().close()  # blocks until the cell opens it
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate()
    assert process.returncode == pytest.ExitCode.INTERRUPTED
    assert "KeyboardInterrupt" in output
    assert verdicts(pytester) == {"first": "passed"}
    errors = json.loads((pytester.path / "run.json").read_text())["errors"]
    assert {error["unfinished"]: len(error["cells"]) for error in errors} == {"running": 1, "not-started": 1}


@pytest.mark.parametrize("options", [(), ("-n1",)], ids=["one process", "one worker"])
def test_exit_of_pytest_in_a_cell_ends_the_run(pytester: pytest.Pytester, options: tuple[str, ...]) -> None:
    pytester.makepyfile(
        test_it="""
        import pytest

        def test_first(cuda_pairing):
            pass

        def test_exits(cuda_pairing):
            pytest.exit("enough")

        def test_last(cuda_pairing):
            pass
        """
    )
    result = run(pytester, *options)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert verdicts(pytester) == {"first": "passed", "exits": "failed"}
    assert "enough" in result.stdout.str()


def test_coverage_without_isolation(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(measured="def used():\n    return 1\n\ndef unused():\n    return 2\n")
    pytester.makepyfile(
        test_it="from measured import used\n\ndef test_it(cuda_pairing):\n    assert used() == 1\n"
    )
    result = run(pytester, "--cuda-isolation=none", "--cov=measured", "--cov-report=term-missing")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["measured.py * 4 * 1 * 75% * 5"])
    # In cells it measures what the session itself imports, and harms nobody.
    assert run(pytester, "--cov=measured").ret == 0


def test_random_order(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTEST_ADDOPTS")
    orders = set()
    for seed in (1, 2, 3):
        result = run(pytester, f"--randomly-seed={seed}")
        result.assert_outcomes(passed=2, failed=2)
        orders.add("".join(verdicts(pytester)))
        assert verdicts(pytester) == ALL
    assert len(orders) > 1


@pytest.mark.parametrize("options", [("--reruns=2",), ("--reruns=2", "-n1")], ids=["one process", "worker"])
def test_reruns_hide_no_failure(pytester: pytest.Pytester, options: tuple[str, ...]) -> None:
    """A cell's failure is a finding, and a rate of failures is for other means: nothing is run anew."""
    result = run(pytester, *options)
    assert verdicts(pytester) == ALL
    result.assert_outcomes(passed=2, failed=2)


HANGS = """
import threading
import pytest

@pytest.mark.timeout({limit})
def test_hangs(cuda_pairing):
    threading.Event().wait()

def test_next(cuda_pairing):
    pass
"""


@pytest.mark.parametrize(
    ("marker", "options"),
    [(1, ("--cuda-timeout=50",)), (50, ("--cuda-timeout=1",)), (50, ("--cuda-timeout=1", "--timeout=40"))],
)
def test_of_two_limits_the_smaller_wins(
    pytester: pytest.Pytester, marker: int, options: tuple[str, ...]
) -> None:
    pytester.makepyfile(test_it=HANGS.format(limit=marker))
    result = run(pytester, *options, "--junitxml=run.xml")
    assert verdicts(pytester) == {"hangs": "hung", "next": "passed"}
    result.assert_outcomes(passed=1, failed=1)
    (suite,) = JUnitXml.fromfile(str(pytester.path / "run.xml"))
    seconds = {case.name.partition("[")[0]: case.time for case in suite}
    assert 1 <= seconds["test_hangs"] < 30


def test_a_limit_on_the_command_line_holds_for_cells(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_it=HANGS.replace("@pytest.mark.timeout({limit})\n", ""))
    run(pytester, "--timeout=1")
    assert verdicts(pytester) == {"hangs": "hung", "next": "passed"}


def test_ignored_files_of_the_suite_do_not_run(pytester: pytest.Pytester) -> None:
    options = (*MATRIX[:3], "--collect-only", "-q", "cudabatch")

    def files(*more: str) -> set[str]:
        result = pytester.runpytest_subprocess(*options, *more)
        return {line.partition("::")[0] for line in result.outlines if "::" in line}

    everything = files()
    assert {"cudabatch/test_abi.py", "cudabatch/test_bytes.py", "cudabatch/test_large.py"} < everything
    assert files("--ignore=cudabatch/test_abi.py", "--ignore-glob=cudabatch/test_l*") == {
        name for name in everything if not name.startswith(("cudabatch/test_abi", "cudabatch/test_l"))
    }


KEEPS = """
import pytest

@pytest.mark.parametrize("number", range(6))
def test_writes(cuda_pairing, tmp_path, number):
    (tmp_path / "kept").write_text(str(number))
    print("place:", tmp_path / "kept")
"""


def places(result: pytest.RunResult) -> list[Path]:
    return [Path(line.partition("place: ")[2]) for line in result.outlines if line.startswith("place: ")]


@pytest.mark.parametrize("options", [(), ("-n2",)], ids=["one process", "two workers"])
def test_what_cells_wrote_stays_for_three_runs(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
) -> None:
    monkeypatch.setenv("PYTEST_DEBUG_TEMPROOT", str(pytester.mkdir("temporary")))
    pytester.makepyfile(test_it=KEEPS)
    kept: list[list[Path]] = []
    for _ in range(4):
        # pytester gives a --basetemp of its own, which is not what is tested here.
        command = [sys.executable, "-m", "pytest", *MATRIX, "-rA", *options]
        kept.append(places(pytester.run(*command)))
        assert len(set(kept[-1])) == 6
    assert [[path.exists() for path in run] for run in kept] == [[False] * 6, *[[True] * 6] * 3]


def test_a_basetemp_holds_what_cells_wrote_last(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_it=KEEPS)
    first, second = (places(run(pytester, "-rA", "--basetemp=mine")) for _ in range(2))
    assert [path.exists() for path in second] == [True] * 6
    assert all((pytester.path / "mine") in path.parents for path in first + second)
    assert len(list((pytester.path / "mine").rglob("kept"))) == 6
