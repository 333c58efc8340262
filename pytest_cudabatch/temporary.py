"""Where the cells of a run keep what ``tmp_path`` gives them: in one directory, which stays for some runs.

pytest keeps the last three of its base directories, and each cell's process makes one: without this a failed
cell's files would be gone three cells later.
"""

from __future__ import annotations

import fcntl
import getpass
import os
import shutil
import tempfile
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

__all__ = ["TEMPORARY_VARIABLE", "CellTemporaries"]

TEMPORARY_VARIABLE = "PYTEST_DEBUG_TEMPROOT"
"""Where a pytest makes its base directories, by its documentation."""

LOCK = ".owner"


class CellTemporaries:
    """The directory of one run. Close it when the run ends; what the cells left in it stays."""

    def __init__(self, config: pytest.Config) -> None:
        """Make it: below --basetemp, emptied of an earlier run's, else beside those of earlier runs."""
        given = config.getoption("basetemp")
        self._lock: int | None = None
        if given:
            self.path = Path(config.invocation_params.dir, given).resolve() / "cells"
            shutil.rmtree(self.path, ignore_errors=True)
            self.path.mkdir(parents=True, mode=0o700)
            return
        parent = Path(os.environ.get(TEMPORARY_VARIABLE) or tempfile.gettempdir()) / f"cudabatch-of-{_user()}"
        parent.mkdir(mode=0o700, exist_ok=True)
        if parent.stat().st_uid != os.getuid():
            raise pytest.UsageError(f"{parent} belongs to another user; remove it or name a --basetemp")
        _remove_old(parent, keep=int(config.getini("tmp_path_retention_count")) - 1)
        self.path = Path(tempfile.mkdtemp(prefix="run-", dir=parent))
        self._lock = os.open(self.path / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def close(self) -> None:
        """Give the directory up; one that no cell has used is removed."""
        if self._lock is not None:
            (self.path / LOCK).unlink(missing_ok=True)
            os.close(self._lock)
            self._lock = None
        with suppress(OSError):
            self.path.rmdir()


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, ImportError, OSError):  # a user id without a name, as in many containers
        return str(os.getuid())


def _remove_old(parent: Path, keep: int) -> None:
    """Remove all but the newest ``keep`` directories of runs that have ended."""
    newest_first = sorted(parent.glob("run-*"), key=_age)
    for directory in newest_first[max(0, keep) :]:
        with suppress(OSError), ExitStack() as resources:
            if (directory / LOCK).exists():
                owner = os.open(directory / LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
                resources.callback(os.close, owner)
                fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)  # raises where the run is alive
            shutil.rmtree(directory)


def _age(directory: Path) -> float:
    try:
        return -directory.lstat().st_mtime
    except OSError:  # another run has just removed it
        return 0.0
