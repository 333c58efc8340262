"""From an outcome to the reports that pytest would have made, a failure in the phase where it happened."""

from __future__ import annotations

import types
from collections.abc import Iterable
from typing import Any, Literal, NoReturn, TypeAlias

import pytest

from pytest_cudabatch.cells.outcome import CollectedItem, Location, Outcome
from pytest_cudabatch.cells.protocol import PHASES
from pytest_cudabatch.errors import CellError

__all__ = ["complete_reports", "failure_representation"]

_When: TypeAlias = Literal["setup", "call", "teardown"]


def complete_reports(
    outcome: Outcome,
    item: CollectedItem,
    failure_text: str,
    *,
    config: pytest.Config,
    nodeid: str | None = None,
    location: Location | None = None,
) -> list[pytest.TestReport]:
    """Return the outcome's reports for pytest_runtest_logreport, in order, with what is missing added.

    An end that was not announced fails in its phase with ``failure_text`` (at exit: in teardown), or is
    xfailed where a marker of the test expects it; set-up, call and teardown are then complete, as
    terminal and JUnit need them. Captured text is added in the sections that they know. ``nodeid`` and
    ``location`` replace those of the zygote's rootdir. Raises CellError for a report that no plugin of this
    process can read.
    """
    nodeid, location = nodeid or item.nodeid, location or item.location
    reports = [_restore(data, config, nodeid, location) for data in outcome.reports]
    if not outcome.finished:
        completion = _Completion(outcome, reports, nodeid, location, dict.fromkeys(item.keywords, 1))
        reports = completion.complete(failure_text)
    for report in _of_the_test_itself(reports):
        report.sections[:0] = _captured_until(outcome, report.when)
    return reports


def _restore(
    data: dict[str, Any], config: pytest.Config, nodeid: str, location: Location
) -> pytest.TestReport:
    data = {**data, "nodeid": nodeid, "location": location}
    try:
        report = config.hook.pytest_report_from_serializable(config=config, data=data)
    except (AssertionError, AttributeError, KeyError, TypeError, ValueError) as error:
        # pytest asserts that it knows the type, and takes the rest on trust
        raise CellError(f"{nodeid}: it sent a report that cannot be read: {error!r}") from error
    if not isinstance(report, pytest.TestReport):
        raise CellError(f"{nodeid}: it sent a report of type {data.get('$report_type')!r}")
    if isinstance(report.longrepr, list):  # a skip's place and reason: JSON has no tuples, -rs wants one
        file, line, reason = report.longrepr
        report.longrepr = (file, line, reason)
    return report


def _of_the_test_itself(reports: Iterable[pytest.TestReport]) -> list[pytest.TestReport]:
    """Leave out the reports of subtests, which are of subclasses."""
    return [report for report in reports if type(report) is pytest.TestReport]


def _captured_until(outcome: Outcome, when: str | None) -> list[tuple[str, str]]:
    """Return the sections of all phases up to ``when``: pytest's reports hold those of earlier phases too."""
    last = PHASES.index("exit") if when == "teardown" else PHASES.index(when or "setup")
    return [
        (f"Captured {captured.stream} {captured.phase}", captured.text)
        for captured in outcome.captured
        if PHASES.index(captured.phase) <= last
    ]


class _Completion:
    """Adds the failure of a child that did not finish to the reports that it could send."""

    def __init__(
        self,
        outcome: Outcome,
        reports: list[pytest.TestReport],
        nodeid: str,
        location: Location,
        keywords: dict[str, Any],
    ) -> None:
        self._outcome = outcome
        self._reports = reports
        self._nodeid = nodeid
        self._location = location
        self._keywords = keywords
        self._sent = {report.when: report for report in _of_the_test_itself(reports)}

    def complete(self, failure_text: str) -> list[pytest.TestReport]:
        phase = self._failing_phase()
        failure = self._failure(phase, failure_text)
        kept = [report for report in self._reports if report is not self._sent.get(phase)]
        before = [] if "setup" in self._sent or phase == "setup" else [self._report("setup")]
        after = [] if phase == "teardown" else [self._report("teardown")]
        for report in (failure, *after):  # the terminal shows the failure's, JUnit those of teardown
            report.sections += self._stacks()
        return [*before, *kept, failure, *after]

    def _stacks(self) -> list[tuple[str, str]]:
        texts = {"faulthandler": self._outcome.stacks, "native stacks": self._outcome.native_stacks}
        return [(f"Captured stderr ({name})", text) for name, text in texts.items() if text]

    def _failing_phase(self) -> _When:
        """Return the phase to blame: the last one that began, or its successor where its report has come.

        A phase whose report has come is over, and what ended the process came after it.
        """
        phase = self._outcome.phase
        if phase == "setup" and "setup" in self._sent:
            phase = "call" if self._sent["setup"].passed else "teardown"
        if phase == "call" and "call" not in self._sent:
            return "call"
        return "setup" if phase == "setup" else "teardown"

    def _failure(self, phase: _When, text: str) -> pytest.TestReport:
        replaced = self._sent.get(phase)
        if replaced is not None and replaced.failed:
            text = f"{text}\n\n{replaced.longreprtext}"
        failure = self._report(phase, longrepr=failure_representation(text, self._location))
        spent = sum(report.duration for report in self._sent.values() if report is not replaced)
        failure.duration = max(0.0, self._outcome.seconds - spent)
        if self._outcome.expected_failure is None:
            failure.outcome = "failed"
        else:
            failure.outcome = "skipped"
            failure.wasxfail = self._outcome.expected_failure
        return failure

    def _report(self, when: _When, longrepr: Any = None) -> pytest.TestReport:
        latest = self._reports[-1] if self._reports else None
        return pytest.TestReport(
            nodeid=self._nodeid,
            location=self._location,
            keywords=self._keywords,
            outcome="passed",
            longrepr=longrepr,
            when=when,
            user_properties=latest.user_properties if latest else (),
            start=self._outcome.started,
            stop=self._outcome.started + self._outcome.seconds,
        )


def failure_representation(text: str, location: Location) -> Any:
    """Return the representation of a failure that points at the test.

    Its first line reaches pytest's summary and JUnit's message, which that of a plain string does not.
    """
    file, line, name = location
    # _fail raises in its second line: that is to be the test's first one, and ``line`` counts from 0.
    code = _fail.__code__.replace(co_filename=file, co_firstlineno=line or 0, co_name=name)
    try:
        types.FunctionType(code, {})(pytest.fail.Exception(text, pytrace=False))
    except pytest.fail.Exception as failure:
        return pytest.ExceptionInfo.from_exception(failure).getrepr(style="value")


def _fail(failure: BaseException) -> NoReturn:
    raise failure
