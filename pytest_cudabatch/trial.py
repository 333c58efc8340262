"""One cell that has run: its outcome and evidence, judged, and told to pytest as reports."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pytest

from pytest_cudabatch.cells import CollectedItem, Outcome, complete_reports, failure_representation
from pytest_cudabatch.findings import Finding
from pytest_cudabatch.fixtures import ANNOUNCED_PATH, IMPORT_FAILURE
from pytest_cudabatch.interposer import Evidence
from pytest_cudabatch.verdicts import Announcement, Cell, CellIdentity, Judgement, Verdict, judge

__all__ = ["CELL_ATTRIBUTE", "Trial"]

CELL_ATTRIBUTE = "cudabatch_cell"
"""The attribute of a cell's last report that carries the cell as JSON, also from an xdist worker."""


@dataclass(frozen=True)
class Trial:
    """What is known of a cell when its process is gone."""

    identity: CellIdentity
    outcome: Outcome
    evidence: Evidence

    def reports(self, item: pytest.Item, collected: CollectedItem) -> list[pytest.TestReport]:
        """Return the reports for ``item``, in order; the last one carries the cell.

        ``collected`` is the item as its zygote knows it.
        """
        unfinished = None if self.outcome.finished else self._judge("failed", Announcement())
        reports = complete_reports(
            self.outcome,
            collected,
            _text(unfinished.finding) if unfinished else "",
            config=item.config,
            nodeid=item.nodeid,
            location=item.location,
        )
        judgement = unfinished or self._judge(_test_result(reports), _announcement(reports))
        if not unfinished:
            _overrule(reports, judgement)
        self._attach(reports, judgement)
        return reports

    def _judge(self, test_result: str, announcement: Announcement) -> Judgement:
        return judge(self.identity, self.outcome, test_result, self.evidence, announcement)

    def _attach(self, reports: Sequence[pytest.TestReport], judgement: Judgement) -> None:
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
        )
        properties = list(_properties(cell))
        for report in reports:
            kept = [
                pair for pair in report.user_properties if pair[0] not in (ANNOUNCED_PATH, IMPORT_FAILURE)
            ]
            report.user_properties = kept + properties
        setattr(reports[-1], CELL_ATTRIBUTE, cell.to_json())


def _properties(cell: Cell) -> Iterator[tuple[str, object]]:
    yield "cudabatch_verdict", cell.verdict.value
    yield "cudabatch_path", cell.path
    if cell.identity.pairing is not None:
        yield "cudabatch_pairing", cell.identity.pairing.id
        yield "cudabatch_platform", cell.identity.pairing.platform
    if cell.finding is not None:
        yield "cudabatch_finding", cell.finding.code.value


def _announcement(reports: Sequence[pytest.TestReport]) -> Announcement:
    """Read what the child said of itself, from the user properties of its last report."""
    properties = reports[-1].user_properties
    return Announcement(
        paths=tuple(str(value) for name, value in properties if name == ANNOUNCED_PATH),
        import_failure=next((str(value) for name, value in properties if name == IMPORT_FAILURE), None),
    )


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
    """Let a verdict that is worse than the test's own result show in the report of its call."""
    if judgement.finding is None or judgement.verdict is Verdict.PASSED:
        return
    for report in reports:
        if report.when == "call" and report.passed:
            if judgement.verdict is Verdict.UNAVAILABLE:
                file, line, _ = report.location
                report.outcome, report.longrepr = (
                    "skipped",
                    (file, line or 0, f"Skipped: {_text(judgement.finding)}"),
                )
            else:
                report.outcome = "failed"
                report.longrepr = failure_representation(_text(judgement.finding), report.location)


def _text(finding: Finding | None) -> str:
    """Return a report's text; the hint stands once in the run's summary, not in each cell."""
    return f"{finding.code.value}: {finding.summary}" if finding else ""
