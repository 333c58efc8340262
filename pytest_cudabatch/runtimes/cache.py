"""Where fetched runtimes lie: one directory a release, with the library and its record.

A directory appears whole by one rename, so a reader never meets a half-written one; several fetches may run
at once.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from pytest_cudabatch.errors import InstallationError, UsageError
from pytest_cudabatch.runtimes.record import RECORD_NAME, Record
from pytest_cudabatch.runtimes.runtime_file import RuntimeFile

__all__ = ["RUNTIMES_VARIABLE", "fetched", "fetched_entries", "load", "store", "user_cache"]

RUNTIMES_VARIABLE = "CUDABATCH_RUNTIMES"
"""Directories, separated by ``:``, that are searched in front of the user's cache (a bundle sets it)."""


def user_cache() -> Path:
    """Return where fetched runtimes are kept: ``pytest-cudabatch/runtimes`` in the user's cache directory.

    By the XDG base directory specification: $XDG_CACHE_HOME where it is an absolute path, else ~/.cache.
    """
    configured = Path(os.environ.get("XDG_CACHE_HOME", ""))
    base = configured if configured.is_absolute() else Path.home() / ".cache"
    return base / "pytest-cudabatch" / "runtimes"


def fetched() -> tuple[RuntimeFile, ...]:
    """Return the runtimes that were fetched or came with a bundle, oldest release first.

    Raises InstallationError where one of them is damaged, rather than testing on fewer runtimes.
    """
    found = [load(entry) for entry in fetched_entries()]
    return tuple(sorted(found, key=lambda runtime: runtime.release_order))


def fetched_entries() -> tuple[Path, ...]:
    """Return the directory of each fetched release, unread; of two with one release the first listed."""
    found: dict[str, Path] = {}
    for directory in (*_listed_directories(), user_cache()):
        for entry in _entries(directory):
            found.setdefault(entry.name, entry)
    return tuple(found.values())


def _listed_directories() -> list[Path]:
    return [Path(name) for name in os.environ.get(RUNTIMES_VARIABLE, "").split(os.pathsep) if name]


def _entries(directory: Path) -> list[Path]:
    """Return the releases' directories; what starts with a dot is a fetch at work."""
    if not directory.is_dir():
        return []
    return sorted(entry for entry in directory.iterdir() if entry.is_dir() and entry.name[0] != ".")


def load(entry: Path) -> RuntimeFile:
    """Read one release's directory and check it. Raises InstallationError where it is damaged."""
    try:
        record = Record.read(entry)
        content = (entry / record.library).read_bytes()
        if hashlib.sha256(content).hexdigest() != record.sha256:
            raise ValueError(f"{record.library} is not what was fetched: its checksum differs")
        if record.release != entry.name:
            raise ValueError(f"its record is of release {record.release}")
        return RuntimeFile.read(entry / record.library)
    except (OSError, ValueError, UsageError) as error:
        raise InstallationError(
            f"the fetched runtime in {entry} is damaged ({error}); "
            f"remove it, or run: cudabatch fetch {entry.name}"
        ) from error


def store(directory: Path, record: Record, content: bytes) -> RuntimeFile:
    """Keep a libcudart's ``content`` under ``directory``; a sound one of that release stays as it is.

    Raises OSError where the directory cannot be written.
    """
    directory.mkdir(parents=True, exist_ok=True)
    entry = directory / record.release
    with _writing(directory), tempfile.TemporaryDirectory(prefix=".incoming-", dir=directory) as incoming:
        if entry.exists():
            try:
                return load(entry)
            except InstallationError:  # damaged: it makes room, and goes with the temporary directory
                entry.rename(Path(incoming, "damaged"))
        staged = Path(incoming, record.release)
        staged.mkdir()
        (staged / record.library).write_bytes(content)
        (staged / RECORD_NAME).write_text(json.dumps(record.to_json(), indent=1) + "\n", encoding="utf-8")
        staged.rename(entry)
    return load(entry)


@contextlib.contextmanager
def _writing(directory: Path) -> Iterator[None]:
    """Let one process at a time change ``directory``; the kernel drops the lock of one that dies."""
    with (directory / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
