"""One recorded run of a program: what every process of it did, and what could not be seen."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pytest_cudabatch.errors import UsageError
from pytest_cudabatch.interposer import (
    EvidenceFile,
    Injection,
    Notes,
    ProcessEvidence,
    StartedProgram,
    environment,
    read_notes,
)
from pytest_cudabatch.recording.launch import run_program
from pytest_cudabatch.recording.programs import find_program, why_not_audited

__all__ = ["SLOTS", "NotRecorded", "Recording", "Traced", "record"]

SLOTS = 256
"""How many processes can use CUDA in one recording; the file is sparse, 0.2 MB for each that does."""


TRACE_LIMIT = 8 << 30
"""Most bytes of one process's raw trace, 24 a descriptor; it lies in the temporary directory meanwhile."""


@dataclass(frozen=True)
class NotRecorded:
    """A program of which nothing is known, and why."""

    pid: int
    program: str
    reason: str


@dataclass(frozen=True)
class Traced:
    """The trace that was kept: how many batches and descriptors it has, and how many batches it lacks."""

    path: Path
    batches: int
    descriptors: int
    skipped: int


@dataclass(frozen=True)
class Recording:
    """What was recorded of a command. ``status`` is its wait status (os.waitstatus_to_exitcode reads it).

    ``processes`` made watched calls. ``others`` is how many further programs the audit library ran in, which
    made none. ``unserved`` processes found no slot. ``traced`` is None where no trace was asked for, and a
    sentence where it could not be kept.
    """

    command: tuple[str, ...]
    status: int
    processes: tuple[ProcessEvidence, ...]
    others: int
    not_recorded: tuple[NotRecorded, ...]
    unserved: int
    traced: Traced | str | None = None


def record(
    command: Sequence[str],
    injections: Sequence[Injection] = (),
    trace: Path | None = None,
    warn: Callable[[str], object] = str,
) -> Recording:
    """Run a command and return what was seen of it. ``warn`` is told beforehand if that will be nothing.

    Where ``trace`` is given, all batches are kept there (pytest_cudabatch.copies.Trace reads it).
    The injections hold in every process, and each process counts its own calls. Raises StartError where the
    command cannot be started, EvidenceError where nothing can be written.
    """
    directory = Path(tempfile.mkdtemp(prefix="cudabatch-record-"))
    try:
        path = directory / "evidence"
        limit = TRACE_LIMIT if trace is not None else 0
        with EvidenceFile.create(path, SLOTS, self_claimed=True, trace_limit=limit) as evidence_file:
            for slot in range(SLOTS) if injections else ():
                evidence_file.request(slot, injections)
            _warn_of(command[0], warn)
            first: list[int] = []
            variables = {**os.environ, **environment(path)}
            status = run_program(command, variables, first.append)
            recording = _read(tuple(command), status, first[0], evidence_file)
            return recording if trace is None else replace(recording, traced=_keep_trace(recording, trace))
    finally:
        shutil.rmtree(directory, ignore_errors=True)  # a child that goes on keeps what it has mapped


def _keep_trace(recording: Recording, path: Path) -> Traced | str:
    from pytest_cudabatch.recording.raw_traces import read_traces  # noqa: PLC0415 - brings numpy

    trace = read_traces(recording.processes)
    try:
        trace.save(path)
    except UsageError as error:
        return str(error)
    return Traced(path, len(trace), len(trace.sizes), trace.skipped)


def _warn_of(program: str, warn: Callable[[str], object]) -> None:
    file = find_program(program)
    fault = None if file is None else why_not_audited(file)
    if fault is not None:
        warn(f"{fault}: nothing will be recorded of it")


def _read(command: tuple[str, ...], status: int, first: int, evidence_file: EvidenceFile) -> Recording:
    processes, notes = evidence_file.processes(), read_notes(evidence_file.path)
    users = {(process.pid, process.program) for process in processes}
    return Recording(
        command=command,
        status=status,
        processes=processes,
        others=sum((image.pid, image.program) not in users for image in notes.images),
        not_recorded=tuple(_not_recorded(command[0], first, notes)),
        unserved=evidence_file.unserved,
    )


def _not_recorded(name: str, first: int, notes: Notes) -> Iterator[NotRecorded]:
    if all(image.pid != first for image in notes.images):
        yield _judge(StartedProgram(first, name, str(Path.cwd()), "/" not in name, unaudited=False))
    for program in notes.unfollowed:
        yield _judge(program)


def _judge(started: StartedProgram) -> NotRecorded:
    """Find the reason, from the program's file as it is now."""
    file = find_program(started.program, started.directory, searched=started.searched)
    program = started.program if file is None else str(file)
    if started.unaudited:
        reason = "was started with an environment of its own, without LD_AUDIT"
    elif file is None:
        reason = "was started, but is not there any more"
    else:
        reason = why_not_audited(file) or "nothing was heard of it, for no reason that its file shows"
    return NotRecorded(started.pid, program, reason)
