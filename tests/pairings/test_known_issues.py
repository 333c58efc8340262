"""Known issues: read whole or refused whole, and covering exactly what they say."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest

from pytest_cudabatch.abi import CudaVersion
from pytest_cudabatch.errors import UsageError
from pytest_cudabatch.finding_codes import Code
from pytest_cudabatch.pairings import DriverEntry, KnownIssue, Pairing, RuntimeEntry, load_known_issues

ENTRY = """
[[issue]]
id = "ours"
title = "it crashes"
runtime = ">=12.8"
driver = "==13.0"
releases = ["580.159.*"]
cases = ["tests/test_it.py::*"]
implementations = ["mine"]
findings = ["crash"]
evidence = "a report"
workaround = "smaller batches"
owner = "us"
expires = 2027-01-31
"""
DAY = datetime.date(2027, 1, 31)


def issues(directory: Path, text: str) -> tuple[KnownIssue, ...]:
    (directory / "known-issues.toml").write_text(text)
    return load_known_issues(directory)


def pairing(release: str | None = "580.159.04", runtime: str = "12.9", platform: str = "device") -> Pairing:
    version = CudaVersion.parse(runtime)
    return Pairing(
        RuntimeEntry(version, runtime, version.abi, True, None, "wheel"),
        DriverEntry(CudaVersion(13, 0), None, release),
        "device" if platform == "device" else "simulated",
        "header",
    )


def test_the_packaged_ones_are_read_and_not_expired() -> None:
    packaged = load_known_issues()
    assert [issue.id for issue in packaged] == ["mixed-h2d-batch"]
    assert all(issue.expires > datetime.date(2026, 11, 30) for issue in packaged)


def test_a_projects_own_come_after_the_packaged(tmp_path: Path) -> None:
    assert [issue.id for issue in issues(tmp_path, "schema = 1\n" + ENTRY)] == ["mixed-h2d-batch", "ours"]


@pytest.mark.parametrize(
    ("case", "implementation", "where", "finding", "day", "covered"),
    [
        ("tests/test_it.py::test_x", "mine", pairing(), Code.CRASH, DAY, True),
        # What is known as a crash stays known when the control says more of it.
        ("tests/test_it.py::test_x", "mine", pairing(), Code.DRIVER_FAULT, DAY, True),
        ("tests/test_other.py::test_x", "mine", pairing(), Code.CRASH, DAY, False),
        ("tests/test_it.py::test_x", "reference", pairing(), Code.CRASH, DAY, False),
        ("tests/test_it.py::test_x", "mine", pairing(), Code.WRONG_ABI, DAY, False),
        ("tests/test_it.py::test_x", "mine", pairing(release="575.57.08"), Code.CRASH, DAY, False),
        ("tests/test_it.py::test_x", "mine", pairing(runtime="12.6"), Code.CRASH, DAY, False),
        ("tests/test_it.py::test_x", "mine", pairing(platform="simulated"), Code.CRASH, DAY, False),
        ("tests/test_it.py::test_x", "mine", None, Code.CRASH, DAY, False),
        ("tests/test_it.py::test_x", "mine", pairing(), Code.CRASH, DAY + datetime.timedelta(1), False),
    ],
    ids=[
        "it",
        "it, controlled",
        "case",
        "implementation",
        "finding",
        "release",
        "runtime",
        "simulated",
        "no pairing",
        "expired",
    ],
)
def test_what_an_issue_covers(
    tmp_path: Path,
    case: str,
    implementation: str,
    where: Pairing | None,
    finding: Code,
    day: datetime.date,
    covered: bool,
) -> None:
    issue = issues(tmp_path, "schema = 1\n" + ENTRY)[-1]
    assert issue.covers(case, implementation, where, finding, day) is covered


def test_all_problems_at_once(tmp_path: Path) -> None:
    text = "schema = 1\n" + ENTRY.replace('owner = "us"\n', "").replace("crash", "crush") + ENTRY + ENTRY
    with pytest.raises(UsageError) as refusal:
        issues(tmp_path, text)
    path = tmp_path / "known-issues.toml"
    assert refusal.value.problems == (
        f"{path}: issue 1: owner: is missing",
        "known-issues.toml: id: 'ours' is there 2 times",
    )


def test_an_unknown_finding_and_a_missing_date(tmp_path: Path) -> None:
    path = tmp_path / "known-issues.toml"
    with pytest.raises(UsageError) as refusal:
        issues(tmp_path, "schema = 1\n" + ENTRY.replace('"crash"', '"crush"'))
    assert str(refusal.value) == f"{path}: issue 1: findings: there is no finding crush"
    with pytest.raises(UsageError) as refusal:
        issues(tmp_path, "schema = 1\n" + ENTRY.replace("expires = 2027-01-31\n", ""))
    assert str(refusal.value) == f"{path}: issue 1: expires: is missing; write a date, such as 2027-06-30"
