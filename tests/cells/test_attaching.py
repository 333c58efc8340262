"""Native stacks: a crash and a hang show the C function and the Python line that called it."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

from pytest_cudabatch.cells import End, Zygote, complete_reports
from pytest_cudabatch.cells.attaching import MOST, Debugger, fatal_signal, find_debugger

from .projects import PLENTY, write_project, zygote_of
from .table import DEADLINE, ROWS, SOURCES

PYSTACK = find_debugger() if find_debugger() is not None and find_debugger().name == "pystack" else None

needs_pystack = pytest.mark.skipif(PYSTACK is None, reason="pystack is not installed (the extra 'stacks')")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_project(tmp_path_factory.mktemp("attaching"), SOURCES)


@pytest.fixture
def zygote(project: Path) -> Iterator[Zygote]:
    with zygote_of(project, native_stacks=True) as zygote:
        yield zygote


def nodeid(name: str) -> str:
    return next(row.nodeid for row in ROWS if row.name == name)


@needs_pystack
@pytest.mark.parametrize(
    ("name", "signal", "function"),
    [
        ("segfaults", "SIGSEGV", "memset"),
        ("aborts", "SIGABRT", "abort"),
        ("divides_by_zero", "SIGFPE", "div"),
        ("segfaults_in_atexit", "SIGSEGV", "memset"),
    ],
)
def test_a_crash_shows_c_and_python_and_keeps_its_signal(zygote, pytestconfig, name, signal, function):
    outcome = zygote.run(nodeid(name), deadline=PLENTY)
    assert (outcome.end, outcome.signal) == (End.SIGNALLED, signal)
    assert function in outcome.native_stacks
    assert "test_torture_crashes.py" in outcome.native_stacks
    assert outcome.stacks.startswith("Fatal Python error: ")
    reports = complete_reports(outcome, zygote.item(outcome.nodeid), "why", config=pytestconfig)
    (failed,) = [report for report in reports if report.failed]
    assert outcome.native_stacks in failed.capstderr  # which is what JUnit takes


@needs_pystack
@pytest.mark.parametrize("name", ["hangs_in_c", "hangs_in_c_with_the_gil"])
def test_a_hang_shows_c_and_python(zygote, name):
    outcome = zygote.run(nodeid(name), deadline=DEADLINE)
    assert outcome.end is End.TIMED_OUT
    assert "sleep" in outcome.native_stacks
    assert f"in test_{name}" in outcome.native_stacks
    assert f"in test_{name}" in outcome.stacks


@pytest.mark.parametrize("name", ["passes", "fails", "leaves_with_7", "kills_itself", "warns"])
def test_who_neither_crashes_nor_hangs_has_none(zygote, name):
    assert zygote.run(nodeid(name), deadline=PLENTY).native_stacks == ""


def test_enough_is_enough(zygote, monkeypatch):
    taken = []

    def stacks(self: Debugger, process: int) -> str:
        taken.append(process)
        return "stacks"

    monkeypatch.setattr(Debugger, "stacks", stacks)
    outcomes = [zygote.run(nodeid("segfaults"), deadline=PLENTY) for _ in range(MOST + 1)]
    assert {outcome.signal for outcome in outcomes} == {"SIGSEGV"}
    has_one = find_debugger() is not None
    assert [bool(outcome.native_stacks) for outcome in outcomes] == [has_one] * MOST + [False]
    assert taken == [outcome.pid for outcome in outcomes[:MOST]] * has_one


def test_a_debugger_that_fails_or_is_slow_says_so(monkeypatch):
    def says(*command: str) -> str:
        return Debugger("it", lambda _: command).stacks(1)

    assert says(sys.executable, "-c", "import sys; sys.exit('no luck')") == "it gave no stacks: no luck"
    assert says(sys.executable, "-c", "") == "it gave no stacks: it said nothing"
    assert says("/no/such/program").startswith("it gave no stacks: [Errno 2]")
    monkeypatch.setattr("pytest_cudabatch.cells.attaching.ATTACH_LIMIT", 0.2)
    assert "timed out" in says("sleep", "3600")


UNTOLD = ("segfaults_under_a_faulthandler_of_its_own", "segfaults_after_it_disabled_the_faulthandler")
"""Nobody hears of these crashes, so they wait for as long as the handler does: eleven seconds."""


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(row, id=row.name, marks=[pytest.mark.nightly] * (row.name in UNTOLD))
        for row in ROWS
        if row.end == "signalled"
    ],
)
def test_waiting_for_a_debugger_changes_no_account(project, monkeypatch, row):
    monkeypatch.setattr("pytest_cudabatch.cells.launch.find_debugger", lambda: SILENT)
    with zygote_of(project, native_stacks=True) as zygote:
        outcome = zygote.run(row.nodeid, deadline=PLENTY)
    assert (outcome.end.value, outcome.phase, outcome.signal, bool(outcome.stacks)) == (
        row.end,
        row.phase,
        row.signal,
        row.stacks,
    )
    assert outcome.native_stacks == ("nothing" if row.stacks else "")


SILENT = Debugger("silent", lambda _: ("echo", "nothing"))


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("faulthandler._sigsegv()", signal.SIGSEGV),
        ("faulthandler._sigabrt()", signal.SIGABRT),
        ("faulthandler._sigfpe()", signal.SIGFPE),
        ("os.kill(os.getpid(), signal.SIGBUS)", signal.SIGBUS),
        ("os.kill(os.getpid(), signal.SIGILL)", signal.SIGILL),
        ("faulthandler.dump_traceback()", None),
    ],
)
def test_faulthandlers_own_words_for_signals_are_known(name: str, number: signal.Signals | None) -> None:
    """They differ between releases of Python."""
    source = f"import faulthandler, os, signal; faulthandler.enable(); {name}"
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=False)
    assert fatal_signal(done.stderr) == number


@needs_pystack
def test_native_stacks_reach_junit(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("import os\n\ndef test_one(cuda_pairing):\n    os.abort()\n")
    pytester.runpytest_subprocess(
        *("--cuda-matrix", "--cuda-no-suite", "--cuda-platform=simulated"),
        *("--cuda-select=runtime==12.9 on driver==13.0", "--junitxml=junit.xml", "-ojunit_logging=all"),
    )
    (case,) = ElementTree.parse(pytester.path / "junit.xml").iter("testcase")
    text = "".join(case.itertext())
    assert "Fatal Python error: Aborted" in text
    assert "abort.c" in text or "in abort" in text
    assert 'test_native_stacks_reach_junit.py", line 4, in test_one' in text
    assert "_pytest/runner.py" not in text
