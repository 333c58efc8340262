"""The exit status of ``cudabatch record``: the program's, whatever becomes of what is told of it."""

from __future__ import annotations

import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from .recorded import arguments, record


@pytest.mark.parametrize(
    ("command", "status"),
    [
        (["sh", "-c", "exit 3"], 3),
        (["sh", "-c", "kill -TERM $$"], 128 + signal.SIGTERM),
        (["env", "--", "sh", "-c", 'test "$*" = "-- --json"', "sh", "--", "--json"], 0),
    ],
)
def test_exit_status_is_the_programs(tmp_path: Path, command: list[str], status: int) -> None:
    assert record(tmp_path, *command).status == status


def test_status_is_known_where_whoever_started_us_ignores_its_children(tmp_path: Path) -> None:
    ignore = "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN)"
    ignoring = f"{ignore}; os.execv(sys.argv[1], sys.argv[1:])"
    command = [sys.executable, "-c", ignoring, *arguments(command=["sh", "-c", "exit 3"])]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False, timeout=60)
    assert done.returncode == 3


@pytest.mark.parametrize("redirection", ["2>&-", "2>/dev/full", "2>&1 | true", "<&- >&- 2>&-"])
def test_exit_status_is_the_programs_whoever_reads_stderr(tmp_path: Path, redirection: str) -> None:
    """A pipe without a reader, a full disk, or no stderr at all, as a service may be started."""
    command = shlex.join(arguments(command=["sh", "-c", "exit 7"]))
    shell = ["bash", "-c", f"trap '' PIPE; {command} {redirection}; exit ${{PIPESTATUS[0]}}"]
    assert subprocess.run(shell, cwd=tmp_path, check=False, timeout=60).returncode == 7


@pytest.mark.parametrize(
    ("option", "program", "status"), [("-o", "0", 4), ("--trace", "0", 4), ("-o", "7", 7)]
)
def test_recording_outlives_a_file_that_cannot_be_written(
    tmp_path: Path, option: str, program: str, status: int
) -> None:
    done = subprocess.run(
        arguments(option, "/dev/full", command=["sh", "-c", f"exit {program}"]),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == status
    assert done.stderr.splitlines() == [
        f"cudabatch: processes that use CUDA: 0; 1 more made no call; exit status {program}",
        "cudabatch: cannot write /dev/full: No space left on device",
    ]
