"""One cell, seen from the supervisor: ask for a child, watch it to its end, and say how it ended."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass

from pytest_cudabatch.cells.files import CellFiles, clip
from pytest_cudabatch.cells.launch import RunningZygote
from pytest_cudabatch.cells.outcome import End, Outcome
from pytest_cudabatch.cells.protocol import STACKS_SIGNAL, Json, ProtocolError, fields
from pytest_cudabatch.cells.signals import signal_name
from pytest_cudabatch.cells.stacks import without_runner
from pytest_cudabatch.cells.transcript import Transcript
from pytest_cudabatch.errors import CellError

__all__ = ["CellRefusedError", "run_cell"]

STACKS_LIMIT = 0.3
"""Seconds for faulthandler to write the stacks of a child that hangs. Measured: some milliseconds."""

KILL_LIMIT = 10.0
"""Seconds for a killed child to be gone. Longer means that the kernel cannot end it."""

_CHUNK = 1 << 20
_DRAIN_LIMIT = 16 << 20  # far above what a pipe holds, so a writer that escaped cannot keep us


class CellRefusedError(CellError):
    """A healthy zygote would not fork, for a reason that it gives, such as threads."""


@dataclass(frozen=True)
class _Child:
    pid: int
    process: int
    """Its pidfd: readable when it has ended, whoever still holds its pipes."""
    channel: int
    """Our end of its announcements, non-blocking."""


def run_cell(zygote: RunningZygote, nodeid: str, deadline: float, payload: Mapping[str, Json]) -> Outcome:
    """Run one item in a child of its own, for ``deadline`` seconds at most.

    Raises CellRefusedError where the zygote would not fork, and CellError where the zygote is lost or the
    child cannot be killed; then the zygote is of no more use.
    """
    started, clock = time.time(), time.monotonic()
    with ExitStack() as resources:
        files = resources.enter_context(CellFiles())
        child = _fork(zygote, nodeid, payload, files, resources)
        transcript = Transcript(nodeid)
        timed_out = _watch(child, transcript, clock + deadline)
        seconds = time.monotonic() - clock
        status, survivors = _reap(zygote, child)
        _drain(child, transcript)
        end, number, exit_code = _end(timed_out, os.waitstatus_to_exitcode(status), transcript)
        return Outcome(
            nodeid=nodeid,
            end=end,
            phase=transcript.phase,
            signal=signal_name(number) if number else None,
            exit_code=exit_code,
            violation=transcript.violation,
            reports=tuple(transcript.reports),
            warnings=tuple(transcript.warnings),
            stop=transcript.stop,
            expected_failure=transcript.expected_failure,
            captured=files.captured(transcript.marks),
            stacks=without_runner(clip(files.stacks)),
            started=started,
            seconds=seconds,
            survivors=survivors,
            pid=child.pid,
        )


def _end(timed_out: bool, status: int, transcript: Transcript) -> tuple[End, int | None, int | None]:
    """Return the kind of end, the signal's number and the exit status; after a deadline both are ours."""
    if timed_out:
        return End.TIMED_OUT, None, None
    if status < 0:
        return End.SIGNALLED, -status, None
    return End.FINISHED if status == 0 and transcript.complete else End.EXITED, None, status


def _fork(
    zygote: RunningZygote, nodeid: str, payload: Mapping[str, Json], files: CellFiles, resources: ExitStack
) -> _Child:
    channel, theirs = os.pipe()
    resources.callback(os.close, channel)
    os.set_blocking(channel, False)
    try:
        answer = zygote.ask(
            "run",
            {"nodeid": nodeid, "payload": payload},
            (theirs, files.stdout, files.stderr, files.stacks),
            {"forked": 1, "refused": 0},
        )
    finally:
        os.close(theirs)
    if answer.kind == "refused":
        raise CellRefusedError(f"{nodeid}: {answer.body.get('reason')}")
    (process,) = answer.descriptors
    resources.callback(os.close, process)
    (pid,) = fields(answer.body, pid=int)
    return _Child(pid, process, channel)


def _watch(child: _Child, transcript: Transcript, limit: float) -> bool:
    """Wait for the child's end. After ``limit`` ask for its stacks, kill it and return True."""
    poll = select.poll()
    poll.register(child.process, select.POLLIN)
    poll.register(child.channel, select.POLLIN)
    if _ends_before(limit, poll, child, transcript):
        return False
    # The signal may wake the test; what it does from here on is not in time.
    transcript.close()
    _send(child, STACKS_SIGNAL)
    if not _ends_before(time.monotonic() + STACKS_LIMIT, poll, child, transcript):
        _kill(child)
        if not _ends_before(time.monotonic() + KILL_LIMIT, poll, child, transcript):
            raise CellError(f"process {child.pid} did not end within {KILL_LIMIT:g} s of SIGKILL")
    return True


def _ends_before(limit: float, poll: select.poll, child: _Child, transcript: Transcript) -> bool:
    while (left := limit - time.monotonic()) > 0:
        ready = dict(poll.poll(left * 1000))
        if child.channel in ready and not _read(child, transcript):
            poll.unregister(child.channel)
        if child.process in ready:
            return True
    return False


def _read(child: _Child, transcript: Transcript) -> int:
    """Take what is in the channel; return its size, 0 at the end of file or where nothing is left."""
    try:
        chunk = os.read(child.channel, _CHUNK)
    except BlockingIOError:
        return 0
    transcript.feed(chunk)
    return len(chunk)


def _kill(child: _Child) -> None:
    # Both: before the child has a session of its own, there is no such group.
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    _send(child, signal.SIGKILL)


def _send(child: _Child, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):  # it has ended, and with its zygote gone it was reaped too
        signal.pidfd_send_signal(child.process, number)


def _reap(zygote: RunningZygote, child: _Child) -> tuple[int, int]:
    """Return the child's wait status and how many processes it left behind."""
    try:
        answer = zygote.ask("reap", {"pid": child.pid}, (), {"reaped": 0})
        status, survivors = fields(answer.body, status=int, survivors=int)
    except ProtocolError as error:
        raise CellError(f"process {child.pid} was not reaped: {error}") from error
    except CellError:
        # The test has killed its zygote. Nobody is left to adopt, but the group can still be reached.
        _kill(child)
        raise
    return status, survivors


def _drain(child: _Child, transcript: Transcript) -> None:
    left = _DRAIN_LIMIT
    while left > 0 and (size := _read(child, transcript)):
        left -= size
    transcript.close()
