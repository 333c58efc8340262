"""What people and machines read of a run: the terminal's matrix and paragraphs, reports, journal, JUnit."""

from __future__ import annotations

from pytest_cudabatch.reports.journal import Journal
from pytest_cudabatch.reports.json_report import HostFacts, write_report, write_whole
from pytest_cudabatch.reports.junit import junit_xml
from pytest_cudabatch.reports.merging import Merged, conflict_lines, merge
from pytest_cudabatch.reports.reading import read_records
from pytest_cudabatch.reports.records import (
    NOT_STARTED,
    RUNNING,
    CellText,
    FailureText,
    PlannedCell,
    RunError,
    RunRecord,
    unfinished_errors,
)
from pytest_cudabatch.reports.terminal import Summary

__all__ = [
    "NOT_STARTED",
    "RUNNING",
    "CellText",
    "FailureText",
    "HostFacts",
    "Journal",
    "Merged",
    "PlannedCell",
    "RunError",
    "RunRecord",
    "Summary",
    "conflict_lines",
    "junit_xml",
    "merge",
    "read_records",
    "unfinished_errors",
    "write_report",
    "write_whole",
]
