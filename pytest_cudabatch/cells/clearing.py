"""Kills all processes of a run by their environment; as a script, when the run's controller is killed.

The script imports nothing of the package, so that it starts in some milliseconds. It has the entry of the
environment as argument, ``NAME=value``, and the controller's end of its standard input: a byte there says
that all is well, the end of the file without one that the controller is gone.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

__all__ = ["Watchman", "kill_all_with"]

KILL_LIMIT = 5.0
"""Seconds for killed processes to be gone. Longer means one that the kernel cannot end."""


class Watchman:
    """A process that survives this one and kills all that carries ``variable=value``, if this one is killed.

    For what nobody else can end in time: an xdist worker learns of its controller's death, but lives on while
    it imports or runs something.
    """

    def __init__(self, variable: str, value: str) -> None:
        environment = {name: text for name, text in os.environ.items() if name != variable}
        self._process = subprocess.Popen(  # noqa: S603
            [sys.executable, "-I", "-S", __file__, f"{variable}={value}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,  # Ctrl-C is the controller's
        )

    def close(self) -> None:
        """Say that all is well, and let it go."""
        self._process.communicate(b".")


def kill_all_with(variable: str, value: str) -> int:
    """Kill every process that was started with this in its environment; return how many there were.

    A process that it forked meanwhile is found too: the search goes on until there is none.
    """
    entry, killed = f"{variable}={value}".encode(), 0
    limit = time.monotonic() + KILL_LIMIT
    while (found := [process for process in _processes() if _carries(process, entry)]) and (
        time.monotonic() < limit
    ):
        killed += sum(_kill_if(process, entry) for process in found)
    return killed


def _processes() -> Iterator[int]:
    return (int(name) for name in os.listdir("/proc") if name.isdigit())  # noqa: PTH208 - nothing imported


def _carries(process: int, entry: bytes) -> bool:
    try:
        with open(f"/proc/{process}/environ", "rb") as variables:  # noqa: PTH123 - nothing imported
            return entry in variables.read().split(b"\0")
    except OSError:  # it has ended, or belongs to somebody else
        return False


def _kill_if(process: int, entry: bytes) -> bool:
    """Kill a process, unless its number has been given to another one since it was found."""
    try:
        watched = os.pidfd_open(process)
    except ProcessLookupError:
        return False
    try:
        if not _carries(process, entry):
            return False
        signal.pidfd_send_signal(watched, signal.SIGKILL)
        select.select([watched], [], [], KILL_LIMIT)
    except ProcessLookupError:
        return False
    finally:
        os.close(watched)
    return True


if __name__ == "__main__":
    if not os.read(0, 1):
        kill_all_with(*sys.argv[1].split("=", 1))
