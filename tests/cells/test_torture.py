"""What a test may do to its process, and what the outcome and pytest's reports then say."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_cudabatch.cells import End, Outcome, Stop, Zygote, complete_reports
from pytest_cudabatch.cells.files import KEPT

from .projects import PLENTY, write_project, zygote_of
from .table import DEADLINE, ROWS, SOURCES


@pytest.fixture(scope="module")
def zygote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Zygote]:
    directory = write_project(tmp_path_factory.mktemp("torture"), SOURCES)
    with zygote_of(directory) as zygote:
        yield zygote


@pytest.fixture
def run(zygote: Zygote, request: pytest.FixtureRequest) -> Iterator[object]:
    """Run a torture test by name; another, healthy one must pass right after it."""

    def run(name: str, deadline: float = PLENTY) -> tuple[Outcome, list[pytest.TestReport]]:
        nodeid = next(row.nodeid for row in ROWS if row.name == name)
        outcome = zygote.run(nodeid, deadline=deadline)
        return outcome, complete_reports(outcome, zygote.item(nodeid), "why", config=request.config)

    yield run
    after = zygote.run("test_torture.py::test_passes", deadline=PLENTY)
    assert (after.end, after.survivors, after.violation) == (End.FINISHED, 0, None)


def phases(reports: list[pytest.TestReport]) -> list[tuple[str | None, str]]:
    """Leave out those of subtests, which are of subclasses."""
    return [(report.when, report.outcome) for report in reports if type(report) is pytest.TestReport]


def sections(report: pytest.TestReport) -> dict[str, str]:
    return dict(report.sections)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_row(run, row):
    outcome, reports = run(row.name, DEADLINE if row.hangs else PLENTY)
    assert (outcome.end.value, outcome.phase, outcome.signal, outcome.exit_code) == (
        row.end,
        row.phase,
        row.signal,
        row.exit_code,
    )
    assert phases(reports) == row.reports
    assert row.text in outcome.output
    assert bool(outcome.stacks) == row.stacks
    assert outcome.survivors == row.survivors
    assert bool(outcome.stop) == row.stops


def test_every_test_is_a_row():
    """But some that only one test here wants."""
    rows = {row.name for row in ROWS}
    tests = {name for text in SOURCES.values() for name in re.findall(r"^def test_(\w+)", text, re.MULTILINE)}
    assert tests - rows <= {"has_subtests"}


@pytest.mark.parametrize("row", [row for row in ROWS if row.hangs and row.stacks], ids=lambda row: row.name)
def test_the_stacks_of_a_hang_begin_with_the_test(run, row):
    outcome, reports = run(row.name, DEADLINE)
    frames = outcome.stacks.splitlines()
    assert frames[0].endswith("(most recent call first):")
    assert 'test_torture.py", line ' in outcome.stacks
    assert not [frame for frame in frames if "/_pytest/" in frame or "/cells/" in frame]
    failed = next(report for report in reports if report.failed)
    assert sections(failed)["Captured stderr (faulthandler)"] == outcome.stacks


@pytest.mark.parametrize(
    ("name", "violation"),
    [
        ("writes_garbage_into_the_channel", "not JSON: b'\\x00\\xff not an announcement'"),
        ("writes_half_an_announcement_at_the_end", "half an announcement of 4 bytes"),
        ("repeats_a_sequence_number", "announcement 3 where 4 was due"),
        (
            "reports_for_another_test",
            "it speaks of 'other.py::test' instead of 'test_torture.py::test_reports_for_another_test'",
        ),
        ("announces_its_own_end", "done without a report of teardown"),
    ],
)
def test_what_was_wrong_with_an_announcement_is_said(run, name, violation):
    outcome, _ = run(name)
    assert outcome.violation is not None
    assert outcome.violation.split(" (")[0] == violation


def test_a_flood_of_announcements_is_a_violation_and_takes_limited_memory(run):
    outcome, _ = run("floods_the_channel")
    assert outcome.violation is not None
    assert outcome.violation.startswith("not JSON: b'garbagegarbage")
    assert "PermissionError" in outcome.output


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
    outcome, _ = run("writes_much")
    left_out = 100 * (1 << 20) + 12 - 2 * KEPT
    middle = f"\n[... {left_out} bytes left out ...]\n"
    assert outcome.output == "<head>" + "x" * (KEPT - 6) + middle + "x" * (KEPT - 6) + "<tail>"


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


@pytest.mark.parametrize(
    ("name", "stop"),
    [
        ("exits_pytest", Stop("enough", 9)),
        ("exits_pytest_in_setup", Stop("enough", None)),
        ("exits_pytest_in_teardown", Stop("enough", None)),
        ("interrupts", None),
    ],
)
def test_who_ends_the_session_fails_and_says_why(run, name, stop):
    outcome, reports = run(name)
    assert outcome.stop == stop
    (failed,) = [report for report in reports if report.failed]
    assert failed.longrepr.reprcrash.message == (
        "_pytest.outcomes.Exit: enough" if stop else "KeyboardInterrupt"
    )
    assert Path(failed.longrepr.reprcrash.path).name == "test_torture.py"
    assert "/cells/" not in failed.longreprtext


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
