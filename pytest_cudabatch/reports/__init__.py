"""What people and machines read of a run: the terminal's matrix and paragraphs, the JSON report."""

from __future__ import annotations

from pytest_cudabatch.reports.json_report import HostFacts, write_report
from pytest_cudabatch.reports.terminal import Summary

__all__ = ["HostFacts", "Summary", "write_report"]
