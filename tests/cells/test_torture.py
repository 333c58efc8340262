"""What a test may do to its process, and what the outcome and pytest's reports then say."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_cudabatch.cells import End, Outcome, Zygote, complete_reports
from pytest_cudabatch.cells.files import KEPT

from .projects import PLENTY, write_project, zygote_of

PASSED = [("setup", "passed"), ("call", "passed"), ("teardown", "passed")]
FAILED = [("setup", "passed"), ("call", "failed"), ("teardown", "passed")]
FAILED_IN_SETUP = [("setup", "failed"), ("teardown", "passed")]
FAILED_IN_TEARDOWN = [("setup", "passed"), ("call", "passed"), ("teardown", "failed")]
FAILED_TWICE = [("setup", "passed"), ("call", "failed"), ("teardown", "failed")]


@pytest.fixture(scope="module")
def zygote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Zygote]:
    source = Path(__file__).with_name("torture.py").read_text()
    directory = write_project(tmp_path_factory.mktemp("torture"), {"test_torture.py": source})
    with zygote_of(directory) as zygote:
        yield zygote


@pytest.fixture
def run(zygote: Zygote, request: pytest.FixtureRequest) -> Iterator[object]:
    """Run a torture test by name; another, healthy one must pass right after it."""

    def run(name: str, deadline: float = PLENTY) -> tuple[Outcome, list[pytest.TestReport]]:
        nodeid = f"test_torture.py::test_{name}"
        outcome = zygote.run(nodeid, deadline=deadline)
        return outcome, complete_reports(outcome, zygote.item(nodeid), "why", config=request.config)

    yield run
    after = zygote.run("test_torture.py::test_passes", deadline=PLENTY)
    assert (after.end, after.survivors, after.violation) == (End.FINISHED, 0, None)


def phases(reports: list[pytest.TestReport]) -> list[tuple[str | None, str]]:
    return [(report.when, report.outcome) for report in reports]


def sections(report: pytest.TestReport) -> dict[str, str]:
    return dict(report.sections)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("passes", PASSED),
        ("fails", FAILED),
        ("exits_python", FAILED),
        ("skips", [("setup", "passed"), ("call", "skipped"), ("teardown", "passed")]),
        ("xfails", [("setup", "passed"), ("call", "skipped"), ("teardown", "passed")]),
        ("warns", PASSED),
        ("leaks_a_thread", PASSED),
        ("lets_a_fork_run_on_into_pytest", PASSED),
    ],
)
def test_finishes(run, name, expected):
    outcome, reports = run(name)
    assert (outcome.end, outcome.phase, outcome.signal, outcome.exit_code) == (End.FINISHED, "exit", None, 0)
    assert phases(reports) == expected
    assert (outcome.violation, outcome.survivors, outcome.stacks) == (None, 0, "")


@pytest.mark.parametrize(
    ("name", "phase", "signal", "expected"),
    [
        ("segfaults", "call", "SIGSEGV", FAILED),
        ("segfaults_in_setup", "setup", "SIGSEGV", FAILED_IN_SETUP),
        ("segfaults_in_teardown", "teardown", "SIGSEGV", FAILED_IN_TEARDOWN),
        ("segfaults_in_session_teardown", "teardown", "SIGSEGV", FAILED_IN_TEARDOWN),
        ("fails_and_segfaults_in_teardown", "teardown", "SIGSEGV", FAILED_TWICE),
        ("segfaults_in_atexit", "exit", "SIGSEGV", FAILED_IN_TEARDOWN),
        ("fails_and_segfaults_in_atexit", "exit", "SIGSEGV", FAILED_TWICE),
        ("segfaults_in_exit_handler_of_c", "exit", "SIGSEGV", FAILED_IN_TEARDOWN),
        ("aborts", "call", "SIGABRT", FAILED),
        ("kills_itself", "call", "SIGKILL", FAILED),
        ("gets_a_signal_without_a_name", "call", "SIG37", FAILED),
    ],
)
def test_is_signalled(run, name, phase, signal, expected):
    outcome, reports = run(name)
    assert (outcome.end, outcome.phase, outcome.signal, outcome.exit_code) == (
        End.SIGNALLED,
        phase,
        signal,
        None,
    )
    assert phases(reports) == expected


@pytest.mark.parametrize(
    ("name", "phase", "status", "expected"),
    [
        ("leaves_with_0", "call", 0, FAILED),
        ("leaves_with_7", "call", 7, FAILED),
        ("leaves_with_0_in_teardown", "teardown", 0, FAILED_IN_TEARDOWN),
        ("leaves_with_0_in_atexit", "exit", 0, FAILED_IN_TEARDOWN),
        ("leaves_with_3_in_exit_handler_of_c", "exit", 3, FAILED_IN_TEARDOWN),
        ("interrupts", "call", 70, FAILED),
        ("exits_pytest", "call", 70, FAILED),
        ("closes_every_descriptor", "call", 70, FAILED),
    ],
)
def test_exits_unannounced(run, name, phase, status, expected):
    outcome, reports = run(name)
    assert (outcome.end, outcome.phase, outcome.signal, outcome.exit_code) == (
        End.EXITED,
        phase,
        None,
        status,
    )
    assert phases(reports) == expected


@pytest.mark.parametrize(
    ("name", "phase", "expected"),
    [
        ("loops", "call", FAILED),
        ("hangs_in_c", "call", FAILED),
        ("hangs_in_c_with_the_gil", "call", FAILED),
        ("hangs_in_c_until_any_signal", "call", FAILED),
        ("hangs_in_fixture", "setup", FAILED_IN_SETUP),
        ("hangs_in_atexit", "exit", FAILED_IN_TEARDOWN),
        ("ignores_sigterm", "call", FAILED),
    ],
)
def test_times_out_with_its_stacks(run, name, phase, expected):
    outcome, reports = run(name, deadline=0.5)
    assert (outcome.end, outcome.phase) == (End.TIMED_OUT, phase)
    assert phases(reports) == expected
    frames = outcome.stacks.splitlines()
    assert frames[0].endswith("(most recent call first):")
    assert 'test_torture.py", line ' in outcome.stacks
    assert not [frame for frame in frames if "/_pytest/" in frame or "/cells/" in frame]
    failed = next(report for report in reports if report.failed)
    assert sections(failed)["Captured stderr (faulthandler)"] == outcome.stacks


@pytest.mark.parametrize("name", ["blocks_every_signal", "stops_itself"])
def test_times_out_without_stacks(run, name):
    outcome, reports = run(name, deadline=0.5)
    assert (outcome.end, outcome.phase, outcome.signal, outcome.stacks) == (
        End.TIMED_OUT,
        "call",
        "SIGKILL",
        "",
    )
    assert phases(reports) == FAILED


@pytest.mark.parametrize(
    ("name", "survivors", "end"),
    [
        ("leaves_a_child", 1, End.FINISHED),
        ("leaves_a_daemon", 1, End.FINISHED),
        ("leaves_a_daemon_and_segfaults", 1, End.SIGNALLED),
        ("leaves_a_family", 3, End.FINISHED),
        ("leaves_a_fork_that_holds_every_descriptor", 1, End.FINISHED),
    ],
)
def test_what_is_left_behind_is_killed_and_counted_and_keeps_nobody(run, name, survivors, end):
    outcome, reports = run(name)
    assert (outcome.end, outcome.survivors) == (end, survivors)
    assert phases(reports) == (PASSED if end is End.FINISHED else FAILED)


@pytest.mark.parametrize(
    ("name", "phase", "violation", "expected"),
    [
        ("writes_garbage_into_the_channel", "call", "not JSON: b'\\x00\\xff not an announcement'", FAILED),
        (
            "writes_half_an_announcement_at_the_end",
            "exit",
            "half an announcement of 4 bytes",
            FAILED_IN_TEARDOWN,
        ),
        ("repeats_a_sequence_number", "call", "announcement 3 where 4 was due", FAILED),
        (
            "reports_for_another_test",
            "call",
            "it speaks of 'other.py::test' instead of 'test_torture.py::test_reports_for_another_test'",
            FAILED,
        ),
        ("announces_its_own_end", "call", "done without a report of teardown", FAILED),
    ],
)
def test_a_broken_announcement_is_no_pass(run, name, phase, violation, expected):
    outcome, reports = run(name)
    assert (outcome.end, outcome.phase, outcome.exit_code) == (End.EXITED, phase, 0)
    assert outcome.violation is not None
    assert outcome.violation.split(" (")[0] == violation
    assert phases(reports) == expected


def test_a_flood_of_announcements_ends_at_the_deadline(run):
    outcome, reports = run("floods_the_channel", deadline=0.5)
    assert (outcome.end, outcome.phase, outcome.signal) == (End.TIMED_OUT, "call", "SIGKILL")
    assert outcome.violation is not None
    assert phases(reports) == FAILED


def test_output_goes_to_the_phase_that_wrote_it(run):
    outcome, reports = run("segfaults_in_teardown")
    assert outcome.text_of("call", "stdout") == "in the call\n"
    assert outcome.text_of("teardown", "stdout") == "in the teardown\n"
    assert [sections(report) for report in reports[:2]] == [{}, {"Captured stdout call": "in the call\n"}]
    last = sections(reports[2])
    assert last.pop("Captured stderr (faulthandler)") == outcome.stacks
    assert last == {"Captured stdout call": "in the call\n", "Captured stdout teardown": "in the teardown\n"}


def test_output_of_both_streams_is_kept_apart(run):
    outcome, reports = run("passes")
    expected = {"Captured stdout call": "to stdout\n", "Captured stderr call": "to stderr\n"}
    assert sections(reports[1]) == sections(reports[2]) == expected
    assert outcome.output == "to stdout\nto stderr\n"
    assert (reports[2].capstdout, reports[2].capstderr) == ("to stdout\n", "to stderr\n")


def test_output_of_python_and_c_before_a_crash_is_kept(run):
    outcome, reports = run("segfaults")
    assert outcome.output == "unfinished line, of printf\n"
    assert reports[1].capstdout == "unfinished line, of printf\n"
    assert outcome.stacks.splitlines()[0] == "Fatal Python error: Segmentation fault"


def test_of_much_output_head_and_tail_are_kept(run):
    outcome, reports = run("writes_much")
    left_out = 10 * (1 << 20) + 12 - 2 * KEPT
    middle = f"\n[... {left_out} bytes left out ...]\n"
    assert outcome.output == "<head>" + "x" * (KEPT - 6) + middle + "x" * (KEPT - 6) + "<tail>"
    assert phases(reports) == PASSED


def test_assertion_is_rewritten_and_its_report_kept(run):
    _, reports = run("fails")
    assert reports[1].longreprtext.splitlines()[-1].startswith("test_torture.py:")
    assert "== 'right'" in reports[1].longreprtext
    assert reports[1].capstdout == "before the assertion\n"


def test_skip_and_xfail_keep_their_reasons(run):
    _, skipped = run("skips")
    _, xfailed = run("xfails")
    assert skipped[1].longrepr[2] == "Skipped: not today"
    assert xfailed[1].wasxfail == "known"


def test_properties_are_kept(run):
    _, reports = run("keeps_its_properties")
    assert [list(map(tuple, report.user_properties)) for report in reports] == [
        [],
        [("number", 12), ("path", "/a/b")],
        [("number", 12), ("path", "/a/b")],
    ]
    _, crashed = run("keeps_properties_of_setup_and_segfaults")
    assert [list(map(tuple, report.user_properties)) for report in crashed] == [[("early", "kept")]] * 3


def test_warnings_come_as_pytest_recorded_them(run):
    outcome, _ = run("warns")
    (recorded,) = outcome.warnings
    assert (recorded.when, recorded.nodeid) == ("runtest", "test_torture.py::test_warns")
    message = recorded.warning_message()
    assert (message.category, str(message.message)) == (DeprecationWarning, "mind the gap")
    assert Path(message.filename).name == "test_torture.py"


def test_interrupting_leaves_its_traceback(run):
    outcome, _ = run("exits_pytest")
    assert outcome.text_of("call", "stderr").splitlines()[-1].endswith("Exit: enough")


def test_descriptions(run):
    def described(name: str) -> str:
        return run(name)[0].describe()

    assert described("segfaults") == "killed by SIGSEGV (Segmentation fault) in call"
    assert described("segfaults_in_atexit") == "killed by SIGSEGV (Segmentation fault) at exit"
    assert described("leaves_with_0") == "exited with status 0 in call without announcing its end"
    assert described("gets_a_signal_without_a_name") == "killed by SIG37 (real-time signal) in call"
    assert run("hangs_in_c", deadline=0.5)[0].describe() == "still running in call after 0.5 s, then killed"


def test_two_runs_of_an_item_do_not_know_of_each_other(run):
    outcomes = [run("segfaults")[0] for _ in range(2)]
    assert outcomes[0].pid != outcomes[1].pid
    assert [outcome.output for outcome in outcomes] == ["unfinished line, of printf\n"] * 2
