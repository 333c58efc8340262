"""Asks a runtime on a driver, in processes with time limits. What crashes or hangs costs one process.

Questions that are known to crash get a process each. The others share one for speed: a context costs a third
of a second on a GPU. When a shared process ends early, the question that it was at is asked again by itself,
so that no crash is put down to what was asked before it, and the rest goes on in a fresh process.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from pytest_cudabatch.abi import BatchAbi, CudaVersion
from pytest_cudabatch.contract.answers import Answer
from pytest_cudabatch.contract.questions import Question

__all__ = ["Answers", "Target", "ask"]

Answers = dict[Question, Answer]

_CHILD = Path(__file__).with_name("child.py")
_START_LIMIT = 60.0
"""Seconds until the first question: imports, libraries, context, buffers, with others starting beside it."""
_END_LIMIT = 30.0
"""Seconds from the last word to the end: a crash waits for the driver to take the context down."""
_REAP_SECONDS = 5.0
_TRIES = 2
"""How often a process is started that does not get ready, before its questions count as lost."""


@dataclass(frozen=True)
class Target:
    """A runtime to ask: its ``release`` (``"12.9.79"``), ABI and file, and the driver under it.

    ``driver`` is the CUDA version that the driver reports, ``driver_path`` its file, None for the host's own.
    ``variables`` are added to the environment of the processes, such as the simulated versions.
    """

    release: str
    abi: BatchAbi
    path: Path
    driver: CudaVersion
    driver_path: Path | None = None
    variables: Mapping[str, str] = field(default_factory=dict, hash=False)


def ask(
    targets: Sequence[Target], questions: Mapping[Target, Sequence[Question]], *, limit: float, jobs: int
) -> dict[Target, Answers]:
    """Ask each target its questions, each for at most ``limit`` seconds, with ``jobs`` processes at once.

    Every question gets an answer, in the order in which it was given. Raises nothing for what libraries do.
    """
    work = [(target, group) for target in targets for group in _groups(questions[target])]
    with ThreadPoolExecutor(jobs) as pool:
        answered = list(pool.map(lambda item: _ask_group(item[0], item[1], limit), work))
    found: dict[Target, Answers] = {target: {} for target in targets}
    for (target, _), answers in zip(work, answered, strict=True):
        found[target].update(answers)
    return {
        target: {question: found[target][question] for question in questions[target]} for target in targets
    }


def _groups(questions: Sequence[Question]) -> Iterator[list[Question]]:
    """Yield those that share a process first, since they take longest, then each of the others."""
    shared = [question for question in questions if not question.alone]
    if shared:
        yield shared
    yield from ([question] for question in questions if question.alone)


def _ask_group(target: Target, questions: Sequence[Question], limit: float) -> Answers:
    """Ask in one process, and in further ones what that one did not come to."""
    found: Answers = {}
    waiting, never_ready = list(questions), 0
    while waiting:
        process = _Process(target, waiting, limit).run()
        answers = process.sound_answers()
        found.update(zip(waiting, answers, strict=False))
        waiting = waiting[len(answers) :]
        if waiting and process.asking is None:
            never_ready += 1
            if never_ready == _TRIES:
                return {**found, **dict.fromkeys(waiting, Answer(lost=process.failure()))}
        elif waiting:
            unanswered = waiting.pop(0)
            alone = len(questions) == 1
            answer = process.last_words() if alone else _ask_group(target, [unanswered], limit)[unanswered]
            found[unanswered] = answer
    return found


class _Process:
    """One process over some questions: runs it to its end, and keeps what it said."""

    def __init__(self, target: Target, questions: Sequence[Question], limit: float) -> None:
        self._target, self._questions, self._limit = target, questions, limit
        self.answers: list[Answer] = []
        self.asking: int | None = None
        self._unready = ""
        self._status: int | None = None
        self._noise = ""

    def run(self) -> _Process:
        """Run it, and return itself."""
        read_end, write_end = os.pipe()
        with open(read_end, "rb", buffering=0) as told, tempfile.TemporaryFile() as noise:  # noqa: PTH123 - a descriptor
            try:
                process = self._start(write_end, noise)
            finally:
                os.close(write_end)
            try:
                if self._listen(told):
                    self._status = _status(process)
            finally:
                _kill(process)
            noise.seek(0)
            self._noise = noise.read().decode(errors="replace").strip()
        return self

    def sound_answers(self) -> list[Answer]:
        """Return the answers up to the first that could not be had."""
        return list(itertools.takewhile(lambda answer: answer.lost is None, self.answers))

    def last_words(self) -> Answer:
        """Return the answer to the question that the process did not outlive, or could not put."""
        if self.answers:
            return self.answers[-1]
        if self._status is None:
            return Answer(hung=True)
        if self._status < 0:
            return Answer(signal=signal.Signals(-self._status).name)
        return Answer(lost=self.failure())

    def failure(self) -> str:
        """Say why there is no answer."""
        if self._unready:
            return self._unready
        if self._status is None:
            return f"the process was not ready within {_START_LIMIT:g} s"
        last_line = self._noise.rpartition("\n")[2]
        return f"the process ended with status {self._status}" + (f": {last_line}" if last_line else "")

    def _start(self, write_end: int, noise: IO[bytes]) -> subprocess.Popen[bytes]:
        request = {
            "fd": write_end,
            "runtime": str(self._target.path),
            "driver": str(self._target.driver_path) if self._target.driver_path else None,
            "questions": [(question.row, question.entry) for question in self._questions],
        }
        return subprocess.Popen(  # noqa: S603 - this interpreter and a script of this package
            [sys.executable, str(_CHILD), json.dumps(request)],
            stdin=subprocess.DEVNULL,
            stdout=noise,
            stderr=noise,
            env={**os.environ, **self._target.variables},
            pass_fds=[write_end],
            start_new_session=True,
        )

    def _listen(self, told: IO[bytes]) -> bool:
        """Read what the process tells until it closes its end; False where it takes too long for one step."""
        unread = b""
        deadline = time.monotonic() + _START_LIMIT
        while True:
            ready, _, _ = select.select([told], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                return False
            content = told.read(1 << 16)
            if not content:
                return True
            *lines, unread = (unread + content).split(b"\n")
            for line in lines:
                self._hear(json.loads(line))
            if lines:
                deadline = time.monotonic() + self._limit

    def _hear(self, facts: dict[str, Any]) -> None:
        self._unready = facts.get("unready", self._unready)
        self.asking = facts.get("asking", self.asking)
        if "answer" in facts:
            self.answers.append(Answer.from_json(facts["answer"]))


def _status(process: subprocess.Popen[bytes]) -> int | None:
    """Return the exit status, negative for a signal; None where it does not end by itself."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        return process.wait(_END_LIMIT)
    return None


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill what still runs of it; one that sits in the kernel is left to init."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_REAP_SECONDS)
