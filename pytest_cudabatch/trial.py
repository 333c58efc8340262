"""One cell that has run: its outcome and evidence, judged, and told to pytest as reports."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone

import pytest

from pytest_cudabatch.cells import CollectedItem, Outcome, complete_reports, failure_representation
from pytest_cudabatch.control import (
    CONTROL_INJECTION,
    NO_FUNCTION,
    ControlRun,
    has_no_fallback,
    judge_control,
    wants_control,
)
from pytest_cudabatch.finding_codes import Code
from pytest_cudabatch.findings import CONTROL_RUNS, Finding
from pytest_cudabatch.interposer import Evidence
from pytest_cudabatch.pairings import KnownIssue
from pytest_cudabatch.telling import (
    ANNOUNCED_PATH,
    BLAMED_FINDING,
    ENVIRONMENT_FINDING,
    IMPORT_FAILURE,
    LOST_CONTEXT,
    RETURNED_CODE,
    TOLD,
)
from pytest_cudabatch.verdicts import Account, Cell, CellIdentity, Judgement, Verdict, judge, judge_end

__all__ = ["CELL_ATTRIBUTE", "Trial", "first_line", "verdict_of"]

CELL_ATTRIBUTE = "cudabatch_cell"
"""The attribute of a cell's last report that carries the cell as JSON, also from an xdist worker."""


Rerun = Callable[[str], tuple[Outcome, Evidence] | None]
"""Runs the same cell in a fresh process with the given injections added; None: the budget is spent."""


@dataclass(frozen=True)
class Trial:
    """What is known of a cell when its process is gone, and the means to run it again."""

    identity: CellIdentity
    outcome: Outcome
    evidence: Evidence
    rerun: Rerun

    def reports(
        self, item: pytest.Item, collected: CollectedItem, known_issues: Iterable[KnownIssue]
    ) -> list[pytest.TestReport]:
        """Return the reports for ``item``, in order; the last one carries the cell.

        ``collected`` is the item as its zygote knows it; a failure that is one of ``known_issues`` is
        reported as an expected one.
        """
        declared = self.identity.declared
        ended = None if self.outcome.finished else judge_end(self.outcome, self.evidence, declared)
        if ended is not None and wants_control(ended, self.evidence):
            ended = self._controlled(ended, item, collected)
        reports = _reports_of(self.outcome, item, collected, _text(ended.finding) if ended else "")
        judgement = ended or judge(self.identity, self.evidence, _account(reports))
        if ended is None:
            _overrule(reports, judgement)
        issue = self._known_issue(item, judgement, known_issues)
        if issue is not None:
            _excuse(reports, issue)
        self._attach(reports, judgement, issue.id if issue else None)
        return reports

    def _controlled(self, ended: Judgement, item: pytest.Item, collected: CollectedItem) -> Judgement:
        """Run the matched control, and judge the end by it."""
        runs = self._control_runs(CONTROL_INJECTION, item, collected)
        others = self._control_runs(NO_FUNCTION, item, collected) if has_no_fallback(runs) else ()
        return judge_control(ended, runs, others)

    def _control_runs(
        self, injections: str, item: pytest.Item, collected: CollectedItem
    ) -> Sequence[ControlRun]:
        """Run the cell again, several times, without its batch calls; what it reports is for us alone."""
        runs = []
        for _ in range(CONTROL_RUNS):
            rerun = self.rerun(injections)
            if rerun is None:
                break
            outcome, evidence = rerun
            account = _account(_reports_of(outcome, item, collected, ""))
            passed = outcome.finished and account.result == "passed"
            runs.append(ControlRun(passed, account.codes, evidence))
        return runs

    def settle(self, reports: Sequence[pytest.TestReport]) -> None:
        """Judge a cell that ran in this process; only its last report has not been told yet.

        Evidence that outranks a pass fails that one; known issues excuse nothing here.
        """
        judgement = judge(self.identity, self.evidence, _account(reports))
        bad = judgement.verdict in (Verdict.FAILED, Verdict.CRASHED)
        if bad and not any(report.failed or hasattr(report, "wasxfail") for report in reports):
            reports[-1].outcome = "failed"
            reports[-1].longrepr = failure_representation(_text(judgement.finding), reports[-1].location)
        self._attach(reports, judgement, None)

    def _known_issue(
        self, item: pytest.Item, judgement: Judgement, known_issues: Iterable[KnownIssue]
    ) -> KnownIssue | None:
        """Return the known issue that the failure is, if any; a marker of the test picks among them."""
        if judgement.finding is None:
            return None
        picked = {
            str(argument) for marker in item.iter_markers("cuda_known_issue") for argument in marker.args
        }
        today = datetime.now(timezone.utc).date()
        identity = self.identity
        for issue in known_issues:
            if (not picked or issue.id in picked) and issue.covers(
                identity.case, identity.implementation, identity.pairing, judgement.finding.code, today
            ):
                return issue
        return None

    def _attach(
        self, reports: Sequence[pytest.TestReport], judgement: Judgement, known_issue: str | None
    ) -> None:
        """Put the cell on the last report, and what JUnit shows on all of them."""
        abi = self.evidence.abi_called
        cell = Cell(
            identity=self.identity,
            judgement=judgement,
            phase=self.outcome.phase,
            pytest_result=_pytest_result(reports),
            path=self.evidence.path.value,
            abi_called=abi.value if abi else None,
            batch_calls=self.evidence.batch_count,
            per_copy_calls=self.evidence.per_copy_count,
            signal=self.outcome.signal,
            exit_code=self.outcome.exit_code,
            seconds=self.outcome.seconds,
            known_issue=known_issue,
        )
        properties = list(_properties(cell))
        for report in reports:
            kept = [
                pair for pair in report.user_properties if pair[0] not in (ANNOUNCED_PATH, IMPORT_FAILURE)
            ]
            report.user_properties = kept + properties
        setattr(reports[-1], CELL_ATTRIBUTE, cell.to_json())


def verdict_of(reports: Sequence[pytest.TestReport]) -> Verdict:
    """Return the verdict that the reports of a trial carry."""
    return Verdict(getattr(reports[-1], CELL_ATTRIBUTE)["verdict"])


def _reports_of(
    outcome: Outcome, item: pytest.Item, collected: CollectedItem, text: str
) -> list[pytest.TestReport]:
    """Return the reports of an outcome, with ``text`` for what an unannounced end leaves out."""
    return complete_reports(
        outcome, collected, text, config=item.config, nodeid=item.nodeid, location=item.location
    )


def _properties(cell: Cell) -> Iterator[tuple[str, object]]:
    yield "cudabatch_verdict", cell.verdict.value
    yield "cudabatch_path", cell.path
    if cell.identity.pairing is not None:
        yield "cudabatch_pairing", cell.identity.pairing.id
        yield "cudabatch_platform", cell.identity.pairing.platform
    if cell.finding is not None:
        yield "cudabatch_finding", cell.finding.code.value


def _account(reports: Sequence[pytest.TestReport]) -> Account:
    """Read what the child said of itself from the user properties of its last report."""
    told = {name: [str(v) for n, v in reports[-1].user_properties if n == name] for name in TOLD}
    blamed, environment = told[BLAMED_FINDING], told[ENVIRONMENT_FINDING]
    return Account(
        result=_test_result(reports),
        message=next((first_line(report) for report in reports if report.failed), ""),
        paths=tuple(told[ANNOUNCED_PATH]),
        codes=tuple(map(int, told[RETURNED_CODE])),
        import_failure=told[IMPORT_FAILURE][0] if told[IMPORT_FAILURE] else None,
        blamed=Code(blamed[0]) if blamed else None,
        lost_context=told[LOST_CONTEXT][0] if told[LOST_CONTEXT] else None,
        environment=Code(environment[0]) if environment else None,
    )


def first_line(report: pytest.TestReport) -> str:
    """Return a failure's first line, as pytest's short summary shows it."""
    crash = getattr(report.longrepr, "reprcrash", None)
    # longreprtext begins with the name of the xdist worker, if there is one.
    plain = report.longrepr if isinstance(report.longrepr, str) else report.longreprtext
    text: str = crash.message if crash else plain
    return text.strip().partition("\n")[0]


def _pytest_result(reports: Sequence[pytest.TestReport]) -> str:
    """Return what pytest counts these reports as: the worst of them."""
    if any(report.failed for report in reports):
        return "failed"
    expected = [report for report in reports if hasattr(report, "wasxfail")]
    if expected:
        return "xfailed" if expected[0].skipped else "xpassed"
    return "skipped" if any(report.skipped for report in reports) else "passed"


def _test_result(reports: Sequence[pytest.TestReport]) -> str:
    """Return what the test itself came to, expected or not: passed, failed or skipped."""
    return {"xfailed": "failed", "xpassed": "passed"}.get(result := _pytest_result(reports), result)


def _overrule(reports: Sequence[pytest.TestReport], judgement: Judgement) -> None:
    """Let a verdict that is worse than the test's own result show in the reports."""
    if judgement.finding is None:
        return
    text = _text(judgement.finding)
    for report in reports:
        if judgement.verdict is Verdict.UNAVAILABLE:
            if report.failed or report.when == "call":
                report.outcome = "skipped"
                report.longrepr = (report.location[0], report.location[1] or 0, f"Skipped: {text}")
        elif report.when == "call" and report.passed:
            report.outcome = "failed"
            report.longrepr = failure_representation(text, report.location)


def _excuse(reports: Sequence[pytest.TestReport], issue: KnownIssue) -> None:
    """Report a known issue as pytest reports an expected failure."""
    for report in reports:
        if report.failed:
            report.outcome = "skipped"
            report.wasxfail = f"known issue {issue.id}: {issue.title}"


def _text(finding: Finding | None) -> str:
    """Return a report's text; the hint stands once in the run's summary, not in each cell."""
    return f"{finding.code.value}: {finding.summary}" if finding else ""
