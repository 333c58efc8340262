"""The torture table of a contender: is a test that mistreats its process told rightly; do others live."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import tempfile
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from cells.projects import processes_with
from cells.table import ROWS, SOURCES, Row

from isolating.contenders import Contender, pytest_command

__all__ = ["RIGHT", "Account", "judge_rows"]

NEIGHBOUR = "import pytest\n\npytestmark = pytest.mark.cuda_cell\n\ndef test_neighbour():\n    pass\n"
INI = "[pytest]\nmarkers = cuda_cell: a cell\n"

LIMIT = 2
"""Seconds that a test may take, where a contender can be told."""

MARK = "ISOLATION_BENCH"
"""In the environment of a run's processes, so that they are found whatever session they are in."""

PATIENCE = 25
"""Seconds for three tests; a run that takes longer never ends for its user."""

RIGHT = "right"

SUMMARY_LINE = re.compile(r"([A-Z]+)(?:\([^)]*\)|\[[^]]*\])* (\S+\.py::\S+)")
"""A word, perhaps with a subtest's message, and the test's id."""


@dataclass(frozen=True)
class Account:
    """What a contender made of a row: ``right``, or what was wrong; whether it named the signal or status."""

    row: Row
    verdict: str
    names_the_cause: bool


def judge_rows(python: Path, directory: Path, contender: Contender) -> Iterable[Account]:
    """Run each row between two tests that pass, and yield what came of it."""
    project = directory / "torture"
    project.mkdir(exist_ok=True)
    (project / "pytest.ini").write_text(INI, encoding="utf-8")
    for name, source in SOURCES.items():
        marked = source + "\nimport pytest\npytestmark = pytest.mark.cuda_cell\n"
        (project / name).write_text(marked, encoding="utf-8")
    for name in ("test_a_before.py", "test_z_after.py"):
        (project / name).write_text(NEIGHBOUR, encoding="utf-8")
    for row in ROWS:
        if not row.stops:
            yield _judge(python, project, contender, row)


def _judge(python: Path, project: Path, contender: Contender, row: Row) -> Account:
    before, after = "test_a_before.py::test_neighbour", "test_z_after.py::test_neighbour"
    limits = [option.format(limit=LIMIT) for option in contender.hangs] if row.hangs else []
    arguments = ["-rA", "--tb=short", "-Wdefault", *limits, before, row.nodeid, after]
    command, environment = pytest_command(python, contender, arguments, os.environ)
    output = _output(command, project, environment)
    if output is None:
        return Account(row, "never ends", False)
    words = {nodeid: _words(output, nodeid) for nodeid in (before, row.nodeid, after)}
    cause = row.signal or (f"status {row.exit_code}" if row.end == "exited" else "")
    return Account(row, _verdict(row, words, before, after), bool(cause) and cause in output)


def _output(command: list[str], project: Path, environment: dict[str, str]) -> str | None:
    """Return what a run writes; None where it does not end. Whatever it leaves behind is killed."""
    mark = uuid.uuid4().hex
    with tempfile.TemporaryFile("w+", errors="replace") as file:
        process = subprocess.Popen(
            command,
            cwd=project,
            env={**environment, MARK: mark},
            stdin=subprocess.DEVNULL,
            stdout=file,  # a pipe would be held open by what a test leaves behind
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            process.wait(PATIENCE)
            ended = True
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            ended = False
        for left in processes_with(MARK, mark):
            with contextlib.suppress(ProcessLookupError):
                os.kill(left, signal.SIGKILL)
        file.seek(0)
        return file.read() if ended else None


def _words(output: str, nodeid: str) -> set[str]:
    """Return what pytest's summary says of a test: each of its lines begins with a word and the id."""
    matches = (SUMMARY_LINE.match(line) for line in output.splitlines())
    return {match[1] for match in matches if match and match[2] == nodeid}


def _verdict(row: Row, words: dict[str, set[str]], before: str, after: str) -> str:
    expected = {word for word in row.shown.split() if word != "SKIPPED"}  # its line has a place, not an id
    if words[row.nodeid] != expected:
        told = " ".join(sorted(words[row.nodeid])) or "nothing"
        return f"told {told} instead of {row.shown}"
    if words[before] != {"PASSED"} or words[after] != {"PASSED"}:
        return "its neighbours did not pass"
    return RIGHT
