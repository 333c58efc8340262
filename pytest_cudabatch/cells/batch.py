"""Several items in one child, one after the other: cheap, and believed only if all goes well.

The child says of each item what it would say alone, and how the process ends is known once. So an item counts
only when the process that it ran in ended as it should after all of its items; whoever asked runs the others
again, and the one that spoiled the process alone.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from pytest_cudabatch.cells.cell import ChildProcess, fork_child, reap, watch
from pytest_cudabatch.cells.files import CellFiles
from pytest_cudabatch.cells.launch import RunningZygote
from pytest_cudabatch.cells.outcome import End, Outcome
from pytest_cudabatch.cells.protocol import Json, ProtocolError, decode_line, fields
from pytest_cudabatch.cells.transcript import LINE_LIMIT, Mark, Transcript

__all__ = ["Batch", "BatchCell", "run_batch"]


@dataclass(frozen=True)
class BatchCell:
    """One item of a batch with what its run is given."""

    nodeid: str
    payload: Mapping[str, Json]
    deadline: float


@dataclass(frozen=True)
class Batch:
    """What became of a batch.

    ``outcomes`` holds those that ran in a process that ended as it should, by node id. Otherwise it is empty,
    ``spoiled_by`` is the item that was to blame, where one can be named, and ``spoiled`` says how.
    """

    outcomes: Mapping[str, Outcome]
    spoiled_by: str | None = None
    spoiled: str | None = None


class BatchTranscript:
    """Deals what a child announces out to the transcripts of its items, in their order."""

    def __init__(self, nodeids: Sequence[str]) -> None:
        self.begun: list[Transcript] = []
        self.times: list[float] = []
        self.spent: str | None = None
        self.violation: str | None = None
        self._nodeids = nodeids
        self._closed = False
        self._rest = bytearray()

    @property
    def phase(self) -> str:
        """Where the last item that began was."""
        return self.begun[-1].phase if self.begun else "setup"

    @property
    def complete(self) -> bool:
        """Whether every item was announced in full, and the end after the last of them."""
        finished = len(self.begun) == len(self._nodeids) and self.begun[-1].complete
        return finished and self.violation is None and all(one.done for one in self.begun)

    @property
    def under_way(self) -> str | None:
        """The item that has begun and not come to its end."""
        return self._nodeids[len(self.begun) - 1] if self.begun and not self.begun[-1].done else None

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes of the channel."""
        if self._closed or self.violation is not None:
            return
        *lines, rest = (bytes(self._rest) + chunk).split(b"\n")
        self._rest[:] = rest
        try:
            for line in lines:
                self._take(line)
            if len(self._rest) > LINE_LIMIT:
                raise ProtocolError(f"an announcement of more than {LINE_LIMIT} bytes")
        except ProtocolError as error:
            self.violation = str(error)

    def close(self) -> None:
        """Take nothing more. What is left of a line then is a violation."""
        self._closed = True
        if self._rest and self.violation is None:
            self.violation = f"half an announcement of {len(self._rest)} bytes"

    def _take(self, line: bytes) -> None:
        _, kind, body = decode_line(line)
        if kind == "spent" and self.begun and self.begun[-1].done:
            self.spent = str(body.get("reason"))
            return
        if kind == "begin" and (not self.begun or self.begun[-1].done):
            if len(self.begun) == len(self._nodeids):
                raise ProtocolError("it begins more than it was asked for")
            self.begun.append(Transcript(self._nodeids[len(self.begun)]))
            (at,) = fields({"at": body.get("at")}, at=float)
            self.times.append(min(at, time.monotonic()))
        if not self.begun:
            raise ProtocolError(f"{kind!r} before anything has begun")
        self.begun[-1].feed(line + b"\n")
        if self.begun[-1].violation is not None:
            raise ProtocolError(self.begun[-1].violation)


def run_batch(zygote: RunningZygote, cells: Sequence[BatchCell]) -> Batch:
    """Run the items in one child, each for its ``deadline`` in seconds at most.

    Raises CellRefusedError where the zygote would not fork, and CellError where the zygote is lost or the
    child cannot be killed; then the zygote is of no more use.
    """
    started, clock = time.time(), time.monotonic()
    with ExitStack() as resources:
        files = resources.enter_context(CellFiles())
        asked: list[Json] = [{"nodeid": cell.nodeid, "payload": cell.payload} for cell in cells]
        child = fork_child(zygote, "batch", {"cells": asked}, files, resources)
        transcript = BatchTranscript([cell.nodeid for cell in cells])
        timed_out = watch(child, transcript, _Deadlines(cells, transcript, clock))
        ended = time.monotonic()
        status, survivors = reap(zygote, child, transcript)
        exit_code = os.waitstatus_to_exitcode(status)
        if not timed_out and exit_code == 0 and not survivors and transcript.complete:
            return Batch(dict(_outcomes(cells, transcript, files, child, started - clock, ended)))
        return Batch({}, _blamed(cells, transcript), _spoiled(transcript, timed_out, exit_code, survivors))


class _Deadlines:
    """When the child must have gone on, in the clock of time.monotonic: each item has a time of its own."""

    def __init__(self, cells: Sequence[BatchCell], transcript: BatchTranscript, start: float) -> None:
        self._cells = cells
        self._transcript = transcript
        self._start = start

    def __call__(self) -> float:
        """Return the limit as it is now."""
        if not self._transcript.times:
            return self._start + self._cells[0].deadline
        return self._transcript.times[-1] + self._cells[len(self._transcript.times) - 1].deadline


def _blamed(cells: Sequence[BatchCell], transcript: BatchTranscript) -> str | None:
    """Name the item that ran when the process was spoiled; none where only its exit was bad."""
    if transcript.under_way is not None:
        return transcript.under_way
    if len(transcript.begun) < len(cells):
        # It ended between two items: what came last has spoiled it, though it may have passed.
        return cells[max(0, len(transcript.begun) - 1)].nodeid
    return cells[0].nodeid if len(cells) == 1 else None


def _spoiled(transcript: BatchTranscript, timed_out: bool, exit_code: int, survivors: int) -> str:
    if transcript.spent is not None:
        return transcript.spent
    if timed_out:
        return "it did not go on within its deadline"
    if exit_code < 0:
        return f"it was killed by signal {-exit_code}"
    if transcript.violation is not None:
        return f"its announcements broke off: {transcript.violation}"
    return f"it left {survivors} processes behind" if survivors else f"it left with status {exit_code}"


def _outcomes(
    cells: Sequence[BatchCell],
    transcript: BatchTranscript,
    files: CellFiles,
    child: ChildProcess,
    epoch: float,
    ended: float,
) -> Any:
    """Yield each item's outcome; ``epoch`` turns the monotonic clock into seconds since the epoch."""
    before = Mark("setup", 0, 0)
    ends = [*transcript.times[1:], ended]
    for cell, own, start, end in zip(cells, transcript.begun, transcript.times, ends, strict=True):
        outcome = Outcome(
            nodeid=cell.nodeid,
            end=End.FINISHED,
            phase="exit",
            signal=None,
            exit_code=0,
            violation=None,
            reports=tuple(own.reports),
            warnings=tuple(own.warnings),
            expected_failure=own.expected_failure,
            captured=files.captured(own.marks, since=before, until=own.marks[-1]),
            stacks="",
            started=epoch + start,
            seconds=end - start,
            survivors=0,
            pid=child.pid,
        )
        before = own.marks[-1]
        yield cell.nodeid, outcome
