"""One cell, seen from the supervisor: ask for a child, watch it to its end, and say how it ended."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Protocol

from pytest_cudabatch.cells.attaching import Debugger, fatal_signal
from pytest_cudabatch.cells.files import CellFiles, Channel, Dump
from pytest_cudabatch.cells.launch import RunningZygote
from pytest_cudabatch.cells.outcome import End, Outcome
from pytest_cudabatch.cells.protocol import STACKS_SIGNAL, Json, ProtocolError, fields
from pytest_cudabatch.cells.signals import signal_name
from pytest_cudabatch.cells.stacks import without_runner
from pytest_cudabatch.cells.transcript import Transcript
from pytest_cudabatch.errors import CellError

__all__ = ["CellRefusedError", "ChildProcess", "fork_child", "reap", "run_cell", "watch"]

STACKS_LIMIT = 0.3
"""Seconds for faulthandler to write the stacks of a child that hangs. Measured: some milliseconds."""

_QUIET = 0.05
"""Seconds without another line after which faulthandler has written all it has to say."""

_AGAIN = 0.2
"""Seconds after which a fatal signal is sent again: the first may come before the child waits for it."""

KILL_LIMIT = 10.0
"""Seconds for a killed child to be gone. Longer means that the kernel cannot end it."""


class CellRefusedError(CellError):
    """A healthy zygote would not fork, for a reason that it gives, such as threads."""


class Listener(Protocol):
    """Takes what a child announces."""

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes of the channel; none after the close."""

    def close(self) -> None:
        """Take nothing more."""


@dataclass(frozen=True)
class ChildProcess:
    """A child as its supervisor knows it."""

    pid: int
    process: int
    """Its pidfd: readable when it has ended, whoever still holds its files."""
    channel: Channel
    dump: Dump
    debugger: Debugger | None
    """What takes its native stacks, for which it waits in a fatal signal; None: it does not wait."""
    native: list[str] = field(default_factory=list)
    """The native stacks, once they have been taken."""


def run_cell(zygote: RunningZygote, nodeid: str, deadline: float, payload: Mapping[str, Json]) -> Outcome:
    """Run one item in a child of its own, for ``deadline`` seconds at most.

    Raises CellRefusedError where the zygote would not fork, and CellError where the zygote is lost or the
    child cannot be killed; then the zygote is of no more use.
    """
    started, clock = time.time(), time.monotonic()
    with ExitStack() as resources:
        files = resources.enter_context(CellFiles())
        child = fork_child(
            zygote, "run", {"nodeid": nodeid, "payload": payload}, files, resources, zygote.debugger()
        )
        transcript = Transcript(nodeid)
        timed_out = watch(child, transcript, lambda: clock + deadline)
        seconds = time.monotonic() - clock
        zygote.count_stacks(len(child.native))
        status, survivors = reap(zygote, child, transcript)
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
            stacks=without_runner(files.dump.text),
            native_stacks="\n".join(child.native),
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


def fork_child(
    zygote: RunningZygote,
    kind: str,
    body: Mapping[str, Json],
    files: CellFiles,
    resources: ExitStack,
    debugger: Debugger | None = None,
) -> ChildProcess:
    """Ask for a child. Raises CellRefusedError where the zygote would not fork."""
    answer = zygote.ask(
        kind,
        {**body, "waits": debugger is not None},
        (files.channel.descriptor, files.stdout, files.stderr, files.dump.descriptor),
        {"forked": 1, "refused": 0},
    )
    if answer.kind == "refused":
        asked = body.get("nodeid", "a batch")
        raise CellRefusedError(f"{asked}: {answer.body.get('reason')}")
    (process,) = answer.descriptors
    resources.callback(os.close, process)
    (pid,) = fields(answer.body, pid=int)
    return ChildProcess(pid, process, files.channel, files.dump, debugger)


def watch(child: ChildProcess, transcript: Listener, limit: Callable[[], float]) -> bool:
    """Wait for the child's end. After ``limit`` ask for its stacks, kill it and return True.

    ``limit`` is asked again when it has come, and what was announced until then has been taken, since a child
    that has gone on may have got a later one.
    """
    while (now := limit()) > time.monotonic():
        if _ends_before(now, child):
            return False
        transcript.feed(child.channel.take())
    # The signal may wake the test; what it does from here on is not in time.
    transcript.close()
    _attach(child)
    _send(child, STACKS_SIGNAL)
    if not _ends_before(time.monotonic() + STACKS_LIMIT, child):
        _kill(child)
        if not _ends_before(time.monotonic() + KILL_LIMIT, child):
            raise CellError(f"process {child.pid} did not end within {KILL_LIMIT:g} s of SIGKILL")
    return True


def _ends_before(limit: float, child: ChildProcess) -> bool:
    poll = select.poll()
    poll.register(child.process, select.POLLIN)
    poll.register(child.dump.source, select.POLLIN)
    while (left := limit - time.monotonic()) > 0:
        ready = dict(poll.poll(left * 1000))
        if child.dump.source in ready:
            child.dump.take()
        if child.process in ready:
            return True
        if (number := fatal_signal(child.dump.text)) is not None and child.debugger is not None:
            _end_by(number, child)
            return True
    return False


def _end_by(number: signal.Signals, child: ChildProcess) -> None:
    """Take the native stacks of a child that waits in the handler of ``number``, and let that end it."""
    poll = select.poll()
    poll.register(child.dump.source, select.POLLIN)
    while poll.poll(_QUIET * 1000):
        child.dump.take()
    _attach(child)
    limit = time.monotonic() + KILL_LIMIT
    ended = select.poll()
    ended.register(child.process, select.POLLIN)
    while not ended.poll(0):
        if time.monotonic() > limit:
            _kill(child)
        _send(child, number)
        ended.poll(_AGAIN * 1000)


def _attach(child: ChildProcess) -> None:
    if child.debugger is not None and not child.native:
        child.native.append(child.debugger.stacks(child.pid))


def _kill(child: ChildProcess) -> None:
    # Both: before the child has a session of its own, there is no such group.
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    _send(child, signal.SIGKILL)


def _send(child: ChildProcess, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):  # it has ended, and with its zygote gone it was reaped too
        signal.pidfd_send_signal(child.process, number)


def reap(zygote: RunningZygote, child: ChildProcess, transcript: Listener) -> tuple[int, int]:
    """Take the last announcements; return the wait status and how many processes were left behind."""
    try:
        answer = zygote.ask("reap", {"pid": child.pid}, (), {"reaped": 0})
        status, survivors = fields(answer.body, status=int, survivors=int)
    except ProtocolError as error:
        raise CellError(f"process {child.pid} was not reaped: {error}") from error
    except CellError:
        # The test has killed its zygote. Nobody is left to adopt, but the group can still be reached.
        _kill(child)
        raise
    transcript.feed(child.channel.take())
    transcript.close()
    return status, survivors
