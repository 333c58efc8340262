"""The processes of a recorded program: those with evidence, and what the notes say of all the others.

The audit library appends the notes (native/interposer/processes.h): one when it starts in a process, one
before each start of a program that it sees. A program that was started and in which the library did not
follow could not be audited.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from pathlib import Path

from pytest_cudabatch.errors import EvidenceError
from pytest_cudabatch.interposer.evidence import Evidence
from pytest_cudabatch.interposer.layout import (
    NOTE_EXEC,
    NOTE_EXEC_FAILED,
    NOTE_SEARCHED,
    NOTE_SPAWNED,
    NOTE_STARTED,
    NOTE_UNAUDITED,
    ProcessNote,
)

__all__ = ["Image", "Notes", "ProcessEvidence", "StartedProgram", "notes_path", "read_notes"]


@dataclass(frozen=True)
class ProcessEvidence:
    """One process of a recorded program that made a watched call. ``name`` is its argv[0].

    A process that becomes another program by exec, and goes on, is there twice, with the same pid.
    """

    pid: int
    parent: int
    program: str
    name: str
    evidence: Evidence
    raw_trace: Path
    """Where its raw trace lies, if there is one."""
    untraced: int
    """How many batches the raw trace lacks, because it was as large as it may be."""


@dataclass(frozen=True)
class Image:
    """A program in which the library was at work, whatever it called."""

    pid: int
    parent: int
    program: str
    name: str


@dataclass(frozen=True)
class StartedProgram:
    """A program that ``pid`` was to run and in which the library was not at work.

    ``program`` is as it was asked for: relative to ``directory``, or (``searched``) a name for PATH.
    ``unaudited``: the environment given to it lacked what loads the library.
    """

    pid: int
    program: str
    directory: str
    searched: bool
    unaudited: bool


@dataclass(frozen=True)
class Notes:
    """All processes with the library, and all starts of a program that it did not follow."""

    images: tuple[Image, ...]
    unfollowed: tuple[StartedProgram, ...]


def notes_path(evidence: Path) -> Path:
    """Return where the notes of an evidence file lie."""
    return evidence.with_name(evidence.name + ".processes")


def read_notes(evidence: Path) -> Notes:
    """Read the notes beside an evidence file. Raises EvidenceError where they are missing or no notes."""
    path = notes_path(evidence)
    try:
        content = path.read_bytes()
    except OSError as problem:
        raise EvidenceError(f"cannot read {path}: {problem.strerror}") from problem
    size = ctypes.sizeof(ProcessNote)
    images: list[Image] = []
    starting: dict[int, StartedProgram] = {}
    spawned: list[StartedProgram] = []
    for start in range(0, len(content) - size + 1, size):  # a last one may be cut by a full disk
        note = ProcessNote.from_buffer_copy(content, start)
        if note.kind == NOTE_STARTED:
            starting.pop(note.pid, None)
            images.append(Image(note.pid, note.parent, _text(note.program), _text(note.detail)))
        elif note.kind == NOTE_EXEC:
            starting[note.pid] = _started(note)
        elif note.kind == NOTE_EXEC_FAILED:
            starting.pop(note.pid, None)
        elif note.kind == NOTE_SPAWNED:
            spawned.append(_started(note))
        else:
            raise EvidenceError(f"{path} is damaged: it has a note of kind {note.kind}")
    followed = {image.pid for image in images}
    return Notes(
        tuple(images),
        (*starting.values(), *(program for program in spawned if program.pid not in followed)),
    )


def _started(note: ProcessNote) -> StartedProgram:
    return StartedProgram(
        pid=note.pid,
        program=_text(note.program),
        directory=_text(note.detail),
        searched=bool(note.flags & NOTE_SEARCHED),
        unaudited=bool(note.flags & NOTE_UNAUDITED),
    )


def _text(value: bytes) -> str:
    return value.decode("utf-8", "surrogateescape")
