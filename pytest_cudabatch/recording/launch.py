"""Running a program in our place: its streams and its terminal are its own, and our signals reach it."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from types import TracebackType

from pytest_cudabatch.errors import CudaBatchError

__all__ = ["CANNOT_RUN", "NOT_FOUND", "StartError", "run_program"]

NOT_FOUND, CANNOT_RUN = 127, 126
"""Exit statuses of a shell for a program that there is not, and for one that cannot be run."""

_FORWARDED = (
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGUSR1,
    signal.SIGUSR2,
)
_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)
_BY_A_PROCESS = 0
"""Largest si_code of a signal that a process sent (SI_USER, SI_QUEUE, SI_TKILL). A terminal's has another
one: it goes to the whole foreground process group, and so to the program already."""


class StartError(CudaBatchError):
    """The program could not be started. ``status`` is what a shell would exit with."""

    def __init__(self, message: str, status: int) -> None:
        self.status = status
        super().__init__(message)


def run_program(
    command: Sequence[str], environment: Mapping[str, str], started: Callable[[int], None]
) -> int:
    """Run ``command`` to its end and return its wait status; ``started`` is told its pid.

    Signals that another process sends to this one are passed on to the program. Raises StartError.
    """
    with _Blocked() as blocked:
        pid = _start(command, environment, blocked.before)
        started(pid)
        while True:
            arrived = signal.sigwaitinfo({*_FORWARDED, signal.SIGCHLD})
            if arrived.si_signo != signal.SIGCHLD:
                if arrived.si_code <= _BY_A_PROCESS:
                    os.kill(pid, arrived.si_signo)  # it is there, or a zombie: we have not waited for it
                continue
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended == pid:
                return status


class _Blocked(AbstractContextManager["_Blocked"]):
    """Blocks what is waited for; what came in the meantime and nobody took is dropped at the end."""

    def __enter__(self) -> _Blocked:
        if signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # else the kernel would keep no status for us
        self.before = signal.pthread_sigmask(signal.SIG_BLOCK, {*_FORWARDED, signal.SIGCHLD})
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        while signal.sigtimedwait({*_FORWARDED, signal.SIGCHLD} - self.before, 0) is not None:
            pass
        signal.pthread_sigmask(signal.SIG_SETMASK, self.before)


def _start(command: Sequence[str], environment: Mapping[str, str], mask: set[int]) -> int:
    try:
        return os.posix_spawnp(
            command[0], list(command), environment, setsigmask=mask, setsigdef=_IGNORED_BY_PYTHON
        )
    except OSError as problem:
        status = NOT_FOUND if isinstance(problem, FileNotFoundError) else CANNOT_RUN
        raise StartError(f"cannot run {command[0]}: {problem.strerror}", status) from problem
