"""The journal: one line of JSON for each event of a run, written as it happens.

A line is handed to the kernel whole before the run goes on, so that a killed controller loses nothing that
had finished. The events, each with ``time`` in seconds since the epoch:

    run       the first line: schema, and the report's ``run`` and ``host`` objects
    planned   the cells that are going to run
    started   a cell's process is about to start
    cell      a cell's verdict: the report's cell object, and the texts that JUnit shows
    error     something went wrong beside the verdicts; ``nodeid`` names the cell that it cost, if one
    finished  the last line: pytest's exit status
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pytest_cudabatch.reports.records import CellText, PlannedCell

__all__ = ["JOURNAL_SCHEMA", "Journal"]

JOURNAL_SCHEMA = "pytest-cudabatch/journal/1"


class Journal:
    """An open journal. A fault in writing ends the journal and not the run: ``problem`` then says why."""

    def __init__(self, path: Path) -> None:
        """Open ``path`` anew."""
        self.path = path
        self.problem: str | None = None
        self._descriptor: int | None = None
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC
            self._descriptor = os.open(path, flags, 0o666)
        except OSError as error:
            self._give_up(error)

    def run(self, run: Mapping[str, Any], host: Mapping[str, Any]) -> None:
        """Begin: say what this run is and where."""
        self._write("run", schema=JOURNAL_SCHEMA, run=dict(run), host=dict(host))

    def planned(self, cells: Iterable[PlannedCell]) -> None:
        """Say what is going to run."""
        self._write("planned", cells=[cell.to_json() for cell in cells])

    def started(self, nodeid: str) -> None:
        """Say that a cell is about to run."""
        self._write("started", nodeid=nodeid)

    def cell(self, cell: Mapping[str, Any], text: CellText) -> None:
        """Give a finished cell, as the report has it, and its texts."""
        self._write("cell", cell=dict(cell), **text.to_json())

    def error(self, summary: str, nodeid: str | None) -> None:
        """Say what went wrong, and which cell has no verdict for it."""
        self._write("error", summary=summary, nodeid=nodeid)

    def finished(self, status: int) -> None:
        """Say that nothing more comes, and close the file."""
        self._write("finished", status=status)
        self._close()

    def _write(self, event: str, **fields: object) -> None:
        if self._descriptor is None:
            return
        line = json.dumps({"event": event, "time": round(time.time(), 6), **fields}) + "\n"
        data = memoryview(line.encode())
        try:
            while data:
                data = data[os.write(self._descriptor, data) :]
        except OSError as error:
            self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        self.problem = f"--cuda-report: cannot write {self.path}: {error.strerror}"
        self._close()

    def _close(self) -> None:
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)
