"""Native stacks of a child that crashes or hangs, by a debugger that attaches while it still lives.

A core file would have to be found: most hosts send it to a program, and elsewhere it lands in the directory
of the test. So a child with a debugger at hand waits in the handler of a fatal signal, for as many seconds as
the signal's number, until the supervisor has attached one and sends the signal again.
"""

from __future__ import annotations

import ctypes
import faulthandler
import importlib.util
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pytest_cudabatch.cells.files import KEPT
from pytest_cudabatch.cells.stacks import without_runner_between

__all__ = ["ATTACH_LIMIT", "MOST", "Debugger", "fatal_signal", "find_debugger", "wait_in_fatal_signals"]

ATTACH_LIMIT = 10.0
"""Seconds for a debugger to write the stacks. Measured: 0.2 s (py-spy) to 2 s (gdb)."""

MOST = 8
"""Stacks that are taken with one zygote: each costs a second, and cells with the same cause have the same."""

_FATAL = {
    "Segmentation fault": signal.SIGSEGV,
    "Aborted": signal.SIGABRT,
    "Bus error": signal.SIGBUS,
    "Floating-point exception": signal.SIGFPE,
    "Floating point exception": signal.SIGFPE,  # up to Python 3.13
    "Illegal instruction": signal.SIGILL,
}
"""What faulthandler calls the signals that it knows."""

_PREFIX = "Fatal Python error: "

# <signal.h> and <linux/prctl.h>
_SA_ONSTACK, _SA_NODEFER, _SA_RESETHAND = 0x08000000, 0x40000000, 0x80000000
_PR_SET_PTRACER, _PR_SET_PTRACER_ANY = 0x59616D61, ctypes.c_ulong(-1)


@dataclass(frozen=True)
class Debugger:
    """A program that writes the stacks of a process, native ones and Python's, to its standard output."""

    name: str
    command: Callable[[int], Sequence[str]]

    def stacks(self, process: int) -> str:
        """Return the stacks of all threads of ``process``, or one line that says why there are none."""
        try:
            done = subprocess.run(  # noqa: S603
                self.command(process),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=ATTACH_LIMIT,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"{self.name} gave no stacks: {error}"
        text = done.stdout.decode(errors="replace").strip()
        if done.returncode != 0 or not text:
            said = done.stderr.decode(errors="replace").strip().splitlines() or ["it said nothing"]
            return f"{self.name} gave no stacks: {said[-1]}"
        text = without_runner_between(text)
        return text if len(text) <= 2 * KEPT else f"{text[:KEPT]}\n[...]\n{text[-KEPT:]}"


def find_debugger() -> Debugger | None:
    """Return the best debugger that is installed; None where there is none."""
    if importlib.util.find_spec("pystack") is not None:
        return Debugger(
            "pystack",
            lambda process: [sys.executable, "-m", "pystack", "remote", "--native-all", str(process)],
        )
    if (py_spy := shutil.which("py-spy")) is not None:
        return Debugger("py-spy", lambda process: [py_spy, "dump", "--native", "--pid", str(process)])
    if (gdb := shutil.which("gdb")) is not None:
        return Debugger(
            "gdb",
            lambda process: [
                *(gdb, "-p", str(process), "-batch", "-nx", "-ex", "set debuginfod enabled off"),
                *("-ex", "thread apply all backtrace 50"),
            ],
        )
    return None


def fatal_signal(dump: str) -> signal.Signals | None:
    """Return the signal at which faulthandler wrote ``dump``; None for stacks that were asked for."""
    first = dump.partition("\n")[0]
    return _FATAL.get(first.removeprefix(_PREFIX)) if first.startswith(_PREFIX) else None


class _Action(ctypes.Structure):
    """struct sigaction of glibc and musl."""

    _fields_ = (
        ("handler", ctypes.c_void_p),
        ("mask", ctypes.c_ubyte * 128),
        ("flags", ctypes.c_uint),
        ("restorer", ctypes.c_void_p),
    )


_libc = ctypes.CDLL(None, use_errno=True)


def wait_in_fatal_signals(stacks: int) -> None:
    """Have this process write its stacks to ``stacks`` at a fatal signal, then wait for a debugger.

    The last handler is libc's sleep, which gets the signal's number. It runs once: the signal then has its
    default effect again.
    """
    action = _Action(
        handler=ctypes.cast(_libc.sleep, ctypes.c_void_p).value,
        flags=_SA_ONSTACK | _SA_NODEFER | _SA_RESETHAND,
    )
    faulthandler.disable()  # so that it takes the new handlers for those that were there before it
    for number in set(_FATAL.values()):
        _libc.sigaction(int(number), ctypes.byref(action), None)
    faulthandler.enable(stacks, all_threads=True)
    # Where Yama restricts debuggers to ancestors; elsewhere the kernel does not know the request.
    _libc.prctl(_PR_SET_PTRACER, _PR_SET_PTRACER_ANY, 0, 0, 0)
