"""The torture table: what a test may do to its process, and the one right account of it.

The tests are in torture.py and torture_crashes.py. test_torture.py holds the table against the outcomes of
single cells, test_torture_run.py against everything that a whole run tells.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

__all__ = ["DEADLINE", "ROWS", "SOURCES", "Row"]

DEADLINE = 0.5
"""Seconds for a row that does not end by itself."""

SOURCES = {
    f"test_{name}.py": Path(__file__).with_name(f"{name}.py").read_text(encoding="utf-8")
    for name in ("torture", "torture_crashes")
}
"""The files of a project that holds all rows."""


@dataclass(frozen=True)
class Row:
    """One test and its account.

    ``outcomes`` are those of set-up, call and teardown, a letter each (p, f, s; - where there is none), as
    pytest's reports have them, and ``shown`` what they are in pytest's summary. ``end``, ``phase``,
    ``signal`` and ``exit_code`` are the outcome's. ``text`` is part of the captured output.
    """

    name: str
    outcomes: str
    shown: str
    end: str = "finished"
    phase: str = "exit"
    signal: str | None = None
    exit_code: int | None = 0
    text: str = ""
    survivors: int = 0
    stacks: bool = False
    stops: bool = False

    @property
    def nodeid(self) -> str:
        """The test's id in a project of SOURCES."""
        (file,) = [name for name, text in SOURCES.items() if f"def test_{self.name}(" in text]
        return f"{file}::test_{self.name}"

    @property
    def hangs(self) -> bool:
        """Whether it is ended by its deadline."""
        return self.end == "timed-out"

    @property
    def reports(self) -> list[tuple[str, str]]:
        """Phase and outcome of each report of the test itself."""
        words = {"p": "passed", "f": "failed", "s": "skipped"}
        phases = zip(("setup", "call", "teardown"), self.outcomes, strict=True)
        return [(phase, words[letter]) for phase, letter in phases if letter != "-"]


def _finished(name: str, outcomes: str, shown: str, text: str = "", **more: bool) -> Row:
    return Row(name, outcomes, shown, text=text, **more)


_IN_PHASE = {"setup": "f-p", "call": "pfp", "teardown": "ppf", "exit": "ppf"}
_SHOWN = {"setup": "ERROR", "call": "FAILED", "teardown": "PASSED ERROR", "exit": "PASSED ERROR"}


def _signalled(
    name: str,
    phase: str,
    signal: str,
    text: str = "",
    *,
    outcomes: str | None = None,
    shown: str | None = None,
    survivors: int = 0,
    stacks: bool = True,
) -> Row:
    outcomes, shown = outcomes or _IN_PHASE[phase], shown or _SHOWN[phase]
    return Row(name, outcomes, shown, "signalled", phase, signal, None, text, survivors, stacks)


def _exited(name: str, phase: str, status: int, text: str = "") -> Row:
    return Row(name, _IN_PHASE[phase], _SHOWN[phase], "exited", phase, None, status, text)


def _hung(name: str, phase: str, text: str = "", *, stacks: bool = True) -> Row:
    return Row(name, _IN_PHASE[phase], _SHOWN[phase], "timed-out", phase, None, None, text, stacks=stacks)


_SUBTESTS = (
    [_finished("has_subtests", "pfp", "SUBFAILED FAILED", "after the subtests\n")]
    if hasattr(pytest, "Subtests")  # since pytest 9.0
    else []
)

ROWS: tuple[Row, ...] = (
    _finished("passes", "ppp", "PASSED", "to stdout\nto stderr\n"),
    _finished("fails", "pfp", "FAILED", "before the assertion\n"),
    _finished("raises", "pfp", "FAILED"),
    _finished("exits_python", "pfp", "FAILED"),
    _finished("interrupts", "pfp", "FAILED"),
    _finished("exits_pytest", "pfp", "FAILED", "before the exit\ntorn down\n", stops=True),
    _finished("exits_pytest_in_setup", "f-p", "ERROR", stops=True),
    _finished("exits_pytest_in_teardown", "ppf", "PASSED ERROR", "torn down\n", stops=True),
    _finished("skips", "psp", "SKIPPED"),
    _finished("skips_in_setup", "s-p", "SKIPPED"),
    _finished("xfails", "psp", "XFAIL"),
    _finished("xpasses", "ppp", "XPASS"),
    *_SUBTESTS,
    _finished("warns", "ppp", "PASSED"),
    _finished("keeps_its_properties", "ppp", "PASSED"),
    _finished("leaks_a_thread", "ppp", "PASSED"),
    _finished("lets_a_fork_run_on_into_pytest", "ppp", "PASSED"),
    _finished("writes_much", "ppp", "PASSED", "<tail>"),
    _finished("runs_out_of_address_space", "pfp", "FAILED"),
    _signalled("segfaults", "call", "SIGSEGV", "unfinished line, of printf\n"),
    _signalled("xfails_by_a_crash", "call", "SIGSEGV", "before it\n", outcomes="psp", shown="XFAIL"),
    _signalled("aborts", "call", "SIGABRT"),
    _signalled("reads_beyond_a_mapped_file", "call", "SIGBUS"),
    _signalled("divides_by_zero", "call", "SIGFPE"),
    _signalled("executes_what_is_no_instruction", "call", "SIGILL"),
    _signalled("overflows_its_stack", "call", "SIGSEGV"),
    _signalled("kills_itself", "call", "SIGKILL", stacks=False),
    _signalled("is_killed_for_its_memory", "call", "SIGKILL", "cgroup", stacks=False),
    _signalled("uses_up_its_processor_time", "call", "SIGXCPU", stacks=False),
    _signalled("gets_a_signal_without_a_name", "call", "SIG37", stacks=False),
    _signalled(
        "segfaults_under_a_faulthandler_of_its_own", "call", "SIGSEGV", "Segmentation fault", stacks=False
    ),
    _signalled("segfaults_after_it_disabled_the_faulthandler", "call", "SIGSEGV", stacks=False),
    _signalled("keeps_properties_of_setup_and_segfaults", "call", "SIGSEGV"),
    _signalled("segfaults_in_setup", "setup", "SIGSEGV", "in the fixture\n"),
    _signalled("segfaults_in_session_setup", "setup", "SIGSEGV"),
    _signalled("segfaults_in_teardown", "teardown", "SIGSEGV", "in the call\nin the teardown\n"),
    _signalled("segfaults_in_session_teardown", "teardown", "SIGSEGV"),
    _signalled(
        "fails_and_segfaults_in_teardown", "teardown", "SIGSEGV", outcomes="pff", shown="FAILED ERROR"
    ),
    _signalled("segfaults_in_atexit", "exit", "SIGSEGV"),
    _signalled("fails_and_segfaults_in_atexit", "exit", "SIGSEGV", outcomes="pff", shown="FAILED ERROR"),
    _signalled("segfaults_in_a_finalizer_at_exit", "exit", "SIGSEGV"),
    _signalled("segfaults_in_exit_handler_of_c", "exit", "SIGSEGV"),
    _signalled("segfaults_in_a_destructor_at_exit", "exit", "SIGSEGV"),
    _exited("leaves_with_0", "call", 0),
    _exited("leaves_with_7", "call", 7),
    _exited("leaves_with_0_in_teardown", "teardown", 0),
    _exited("leaves_with_0_in_atexit", "exit", 0),
    _exited("leaves_with_3_in_exit_handler_of_c", "exit", 3),
    _exited("closes_every_descriptor", "call", 70),
    _hung("loops", "call"),
    _hung("hangs_in_c", "call"),
    _hung("hangs_in_c_with_the_gil", "call"),
    _hung("hangs_in_c_until_any_signal", "call"),
    _hung("hangs_in_fixture", "setup"),
    _hung("hangs_in_atexit", "exit"),
    _hung("ignores_sigterm", "call"),
    _hung("hangs_with_a_handler_of_its_own", "call", "handled\n", stacks=False),
    _hung("blocks_every_signal", "call", stacks=False),
    _hung("stops_itself", "call", stacks=False),
    Row("leaves_a_child", "ppp", "PASSED", survivors=1),
    Row("leaves_a_daemon", "ppp", "PASSED", survivors=1),
    Row("leaves_a_family", "ppp", "PASSED", survivors=3),
    Row("leaves_a_fork_that_holds_every_descriptor", "ppp", "PASSED", survivors=1),
    _signalled("leaves_a_daemon_and_segfaults", "call", "SIGSEGV", survivors=1),
    _exited("floods_the_channel", "call", 70),
    _exited("writes_garbage_into_the_channel", "call", 0),
    _exited("writes_half_an_announcement_at_the_end", "exit", 0),
    _exited("repeats_a_sequence_number", "call", 0),
    _exited("reports_for_another_test", "call", 0),
    _exited("announces_its_own_end", "call", 0),
)
