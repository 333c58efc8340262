"""Known issues of drivers and runtimes: failures that are not the fault of the code under test.

Each has an owner and a date on which it expires: after that it excuses nothing, so that somebody looks again.
"""

from __future__ import annotations

import datetime
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from pytest_cudabatch.errors import UsageError
from pytest_cudabatch.finding_codes import Code
from pytest_cudabatch.pairings.matrix_files import KNOWN_ISSUES_FILE, packaged_matrix
from pytest_cudabatch.pairings.pairing import Pairing
from pytest_cudabatch.pairings.toml_tables import Entry, read_document, read_entries
from pytest_cudabatch.pairings.version_range import VersionRange

__all__ = ["KNOWN_ISSUES_FILE", "KnownIssue", "load_known_issues"]


REFINED = {Code.DRIVER_FAULT: {Code.DRIVER_FAULT.value, Code.CRASH.value, Code.HANG.value}}
"""Findings that say more of what others are too: an entry for a crash holds for a driver's fault."""


@dataclass(frozen=True)
class KnownIssue:
    """One entry of known-issues.toml.

    ``releases`` are driver releases (glob patterns, such as ``580.159.*``), ``cases`` and
    ``implementations`` glob patterns of cases and names, ``findings`` the codes that a failure may have.
    ``evidence`` and ``workaround`` are for people.
    """

    id: str
    title: str
    runtime: VersionRange
    driver: VersionRange
    releases: tuple[str, ...]
    cases: tuple[str, ...]
    implementations: tuple[str, ...]
    findings: tuple[str, ...]
    evidence: str
    workaround: str
    owner: str
    expires: datetime.date

    def covers(
        self,
        case: str,
        implementation: str | None,
        pairing: Pairing | None,
        finding: Code,
        today: datetime.date,
    ) -> bool:
        """Whether a failure of that case on that pairing is this issue; simulated CUDA has none."""
        if pairing is None or pairing.platform != "device" or today > self.expires:
            return False
        runtime, driver = pairing.runtime, pairing.driver
        return (
            not REFINED.get(finding, {finding.value}).isdisjoint(self.findings)
            and self.runtime.contains(runtime.version, runtime.release)
            and (driver.version is None or self.driver.contains(driver.version))
            and _matches(driver.release or "", self.releases)
            and _matches(case, self.cases)
            and _matches(implementation or "", self.implementations)
        )


def _matches(text: str, patterns: Collection[str]) -> bool:
    return any(fnmatchcase(text, pattern) for pattern in patterns)


def load_known_issues(directory: Path | None = None) -> tuple[KnownIssue, ...]:
    """Read the packaged known issues, then those of ``directory`` where it has any.

    Raises UsageError with every problem that the files have.
    """
    problems: list[str] = []
    issues: list[KnownIssue] = []
    for place in (packaged_matrix(), directory):
        if place is not None:
            path = place / KNOWN_ISSUES_FILE
            document = read_document(path, ("issue",), problems)
            issues += read_entries(path, document, "issue", _issue, problems)
    identifiers = [issue.id for issue in issues]
    problems.extend(
        f"{KNOWN_ISSUES_FILE}: id: {identifier!r} is there {identifiers.count(identifier)} times"
        for identifier in sorted(set(identifiers))
        if identifiers.count(identifier) > 1
    )
    if error := UsageError.collect(problems):
        raise error
    return tuple(issues)


def _issue(entry: Entry) -> KnownIssue:
    issue = KnownIssue(
        id=entry.value("id", str),
        title=entry.value("title", str),
        runtime=entry.range("runtime"),
        driver=entry.range("driver"),
        releases=entry.texts("releases"),
        cases=entry.texts("cases"),
        implementations=entry.texts("implementations"),
        findings=entry.texts("findings"),
        evidence=entry.value("evidence", str),
        workaround=entry.value("workaround", str),
        owner=entry.value("owner", str),
        expires=entry.optional("expires", datetime.date) or datetime.date.min,
    )
    entry.check("expires", issue.expires > datetime.date.min, "is missing; write a date, such as 2027-06-30")
    unknown = _unknown_codes(issue.findings)
    entry.check("findings", not unknown, f"there is no finding {', '.join(unknown)}")
    return issue


def _unknown_codes(names: Sequence[str]) -> list[str]:
    return sorted(set(names) - {code.value for code in Code})
