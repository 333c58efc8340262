"""A run's own temporary directory, which a later run removes where this one could not."""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
from contextlib import ExitStack, suppress
from pathlib import Path

__all__ = ["RunDirectory"]

_PREFIX = "cudabatch-run-"
_OWNER = "owner"
"""The file that whoever uses the directory holds locked; the kernel unlocks it however that process ends."""


class RunDirectory:
    """A fresh directory under the system's temporary one. Close it; those of killed runs are removed here.

    One without an owner's file is being made this moment, or is none of ours: it is left alone.
    """

    def __init__(self) -> None:
        parent = Path(tempfile.gettempdir())
        _remove_ownerless(parent)
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
        new = self.path / f"{_OWNER}.new"
        self._owner = os.open(new, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._owner, fcntl.LOCK_EX)
        new.rename(self.path / _OWNER)  # nobody can find it and take it for ownerless before it is locked

    def close(self) -> None:
        """Remove the directory."""
        if self._owner >= 0:
            shutil.rmtree(self.path, ignore_errors=True)
            os.close(self._owner)
            self._owner = -1


def _remove_ownerless(parent: Path) -> None:
    for directory in parent.glob(f"{_PREFIX}*"):
        with suppress(OSError):  # another run removes it, or it belongs to somebody else
            _remove_if_ownerless(directory)


def _remove_if_ownerless(directory: Path) -> None:
    about = directory.lstat()
    if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.geteuid():
        return
    with ExitStack() as resources:
        owner = os.open(directory / _OWNER, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        resources.callback(os.close, owner)
        fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(directory)
