"""The files without a name into which a cell writes, and their heads and tails.

Files and not pipes: nobody has to read along and be woken for each line, nothing blocks when much is
written, a crash loses nothing, and a process left behind that keeps one open holds up nobody.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from types import TracebackType

from pytest_cudabatch.cells.outcome import CapturedText
from pytest_cudabatch.cells.transcript import Mark

__all__ = ["CHANNEL_LIMIT", "KEPT", "CellFiles", "Channel", "Dump", "clip", "unlinked_file"]

CHANNEL_LIMIT = 64 << 20
"""Bytes of all announcements of a process. A report with a long traceback is some 100 KB."""

KEPT = 64 << 10
"""Bytes that are kept of a text's head, and again of its tail."""


_BEGINNING = Mark("setup", 0, 0)


def unlinked_file(resources: ExitStack) -> int:
    """Open a new file that has no name and is gone with its last descriptor. ``resources`` closes it."""
    # Append mode: several processes may write, and none may overwrite another's text.
    return resources.enter_context(tempfile.TemporaryFile("ab+", buffering=0)).fileno()


class Channel:
    """A child's announcements: a file in memory that cannot grow, which the child fills from its start on.

    How far it has come is where the open file, which both processes share, is.
    """

    def __init__(self, resources: ExitStack) -> None:
        self.descriptor = os.memfd_create("cudabatch-channel", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        resources.callback(os.close, self.descriptor)
        os.truncate(self.descriptor, CHANNEL_LIMIT)
        seals = fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
        fcntl.fcntl(self.descriptor, fcntl.F_ADD_SEALS, seals)
        self._taken = 0

    def take(self) -> bytes:
        """Return what has come since the last time."""
        announced = min(os.lseek(self.descriptor, 0, os.SEEK_CUR), CHANNEL_LIMIT)
        new = os.pread(self.descriptor, max(0, announced - self._taken), self._taken)
        self._taken += len(new)
        return new


def clip(descriptor: int, start: int = 0, stop: int | None = None) -> str:
    """Return the text between two offsets in bytes, without its middle where it is long."""
    size = os.fstat(descriptor).st_size
    start, stop = min(start, size), size if stop is None else min(stop, size)
    if stop - start <= 2 * KEPT:
        return _read(descriptor, start, stop)
    head, tail = _read(descriptor, start, start + KEPT), _read(descriptor, stop - KEPT, stop)
    return f"{head}\n[... {stop - start - 2 * KEPT} bytes left out ...]\n{tail}"


def _read(descriptor: int, start: int, stop: int) -> str:
    # pread: the offset belongs to the open file, which the writing process shares.
    return os.pread(descriptor, max(0, stop - start), start).decode(errors="replace")


class Dump:
    """What faulthandler of a child writes, by a pipe, so that its supervisor is woken by a crash."""

    def __init__(self, resources: ExitStack) -> None:
        self.source, self.descriptor = os.pipe()
        resources.callback(os.close, self.source)
        resources.callback(os.close, self.descriptor)
        os.set_blocking(self.source, False)
        self._taken = bytearray()

    @property
    def text(self) -> str:
        """What has been taken so far."""
        return self._taken.decode(errors="replace")

    def take(self) -> None:
        """Take what is there; of an endless text, its beginning."""
        while True:
            try:
                chunk = os.read(self.source, KEPT)
            except BlockingIOError:
                return
            self._taken += chunk[: max(0, 2 * KEPT - len(self._taken))]


class CellFiles:
    """Announcements, standard output and error, and faulthandler's stacks of a child; a context manager."""

    def __init__(self) -> None:
        with ExitStack() as resources:
            self.channel = Channel(resources)
            self.stdout = unlinked_file(resources)
            self.stderr = unlinked_file(resources)
            self.dump = Dump(resources)
            self._resources = resources.pop_all()

    def captured(
        self, marks: Sequence[Mark], *, since: Mark = _BEGINNING, until: Mark | None = None
    ) -> tuple[CapturedText, ...]:
        """Cut the output at the marks; what came before the first, from ``since`` on, belongs to set-up."""
        starts = [since._replace(phase="setup"), *marks]
        last = (until.stdout, until.stderr) if until else (None, None)
        stops = [*((mark.stdout, mark.stderr) for mark in marks), last]
        texts = (
            CapturedText(start.phase, stream, clip(descriptor, offset, stop))
            for start, (stdout_stop, stderr_stop) in zip(starts, stops, strict=True)
            for stream, descriptor, offset, stop in (
                ("stdout", self.stdout, start.stdout, stdout_stop),
                ("stderr", self.stderr, start.stderr, stderr_stop),
            )
        )
        return tuple(captured for captured in texts if captured.text)

    def __enter__(self) -> CellFiles:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._resources.close()
