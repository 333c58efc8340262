"""Asks a library something in a process of its own with a time limit, since it may crash or hang.

The process runs one of this room's ``*_child.py`` scripts, which import nothing of this package. A
script writes one JSON object a line into a file of its own (a library may print on stdout and stderr):
``{"step": "cuInit"}`` before each step, facts as it learns them, and ``{"end": true}`` when it is done.
What arrived before a crash or a hang is kept.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Answers", "ask"]

_REAP_SECONDS = 2.0
"""How long a killed process may take to go; one stuck in the kernel's driver never does."""


@dataclass(frozen=True)
class Answers:
    """What the process wrote: ``facts`` merged in order, and how it ended.

    ``fault`` is None after an orderly end; otherwise it says in which step what happened, such as
    ``"cuInit did not return within 10 s"``.
    """

    facts: dict[str, Any]
    fault: str | None


def ask(script: Path, arguments: Sequence[str], *, limit: float) -> Answers:
    """Run ``script`` for at most ``limit`` seconds and return what it found out."""
    with tempfile.TemporaryFile() as answers, tempfile.TemporaryFile() as noise:
        status = _run(script, arguments, answers.fileno(), noise.fileno(), limit)
        answers.seek(0)
        noise.seek(0)
        return _read(answers.read(), status, limit, noise.read().decode(errors="replace"))


def _run(script: Path, arguments: Sequence[str], answers: int, noise: int, limit: float) -> int | None:
    """Return the exit status, negative for a signal; None where the time was up."""
    process = subprocess.Popen(  # noqa: S603 - this interpreter and a script of this package
        [sys.executable, "-I", str(script), str(answers), *arguments],
        stdin=subprocess.DEVNULL,
        stdout=noise,
        stderr=noise,
        pass_fds=[answers],
        start_new_session=True,
    )
    try:
        return process.wait(limit)
    except subprocess.TimeoutExpired:
        return None
    finally:
        if process.poll() is None:
            _kill(process)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill the process and whatever it started; one that sits in the kernel is left to init."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_REAP_SECONDS)


def _read(content: bytes, status: int | None, limit: float, noise: str) -> Answers:
    facts: dict[str, Any] = {}
    for line in content.splitlines():
        with contextlib.suppress(ValueError):  # a line cut short by the crash says nothing
            facts.update(json.loads(line))
    step = str(facts.pop("step", "starting Python"))
    if facts.pop("end", False) is True and status == 0:
        return Answers(facts, None)
    return Answers(facts, _fault(step, status, limit, noise))


def _fault(step: str, status: int | None, limit: float, noise: str) -> str:
    if status is None:
        return f"{step} did not return within {limit:g} s"
    if status < 0:
        return f"{step} crashed with {_signal_name(-status)}"
    last_words = noise.strip().rpartition("\n")[2]
    return f"{step} ended the process with status {status}" + (f": {last_words}" if last_words else "")


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # real-time signals have no name
        return f"signal {number}"
