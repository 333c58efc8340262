"""The unlinked regular files into which a cell writes, and their heads and tails.

Regular files and not pipes: nobody has to read along, nothing blocks when much is written, and a process
left behind that keeps one open holds up nobody.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from types import TracebackType

from pytest_cudabatch.cells.outcome import CapturedText
from pytest_cudabatch.cells.transcript import Mark

__all__ = ["KEPT", "CellFiles", "clip", "unlinked_file"]

KEPT = 64 << 10
"""Bytes that are kept of a text's head, and again of its tail."""


_BEGINNING = Mark("setup", 0, 0)


def unlinked_file(resources: ExitStack) -> int:
    """Open a new file that has no name and is gone with its last descriptor. ``resources`` closes it."""
    # Append mode: several processes may write, and none may overwrite another's text.
    return resources.enter_context(tempfile.TemporaryFile("ab+", buffering=0)).fileno()


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


class CellFiles:
    """Standard output, standard error and faulthandler's stacks of one cell; a context manager."""

    def __init__(self) -> None:
        with ExitStack() as resources:
            self.stdout = unlinked_file(resources)
            self.stderr = unlinked_file(resources)
            self.stacks = unlinked_file(resources)
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
