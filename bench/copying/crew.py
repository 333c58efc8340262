"""The processes of the contenders, each behind a watchdog: none can take the bench down with it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Ended", "Host", "Member"]

_BENCH = Path(__file__).parents[1]
_WORKER = Path(__file__).with_name("worker.py")
_EXIT_SECONDS = 10.0


@dataclass(frozen=True)
class Host:
    """What the processes run on; ``driver`` None is the host's own, ``variables`` are added to theirs."""

    runtime: Path
    driver: Path | None
    variables: dict[str, str]


@dataclass(frozen=True)
class Ended:
    """How a process ended that should not have: ``status`` is crashed, hung or failed."""

    status: str
    reason: str
    signal: str | None

    def answer(self) -> dict[str, Any]:
        """Return it in the form of a worker's answer."""
        return {"status": self.status, "reason": self.reason, "signal": self.signal}


class Member:
    """One contender's process, from here until ``close``. It is started anew where it has ended."""

    def __init__(self, name: str, host: Host) -> None:
        self.name = name
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the process
        ours, theirs = socket.socketpair()
        with theirs:
            arguments = ["--socket", str(theirs.fileno()), "--runtime", str(host.runtime)]
            if host.driver is not None:
                arguments += ["--driver", str(host.driver)]
            self._process = subprocess.Popen(
                [sys.executable, str(_WORKER), name, *arguments],
                env=_environment(host),
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=self._output,
            )
        self._socket = ours
        self._unread = b""
        self.alive = True

    def send(self, **command: object) -> None:
        """Send a command; one that the process does not live to read shows in ``receive``."""
        with contextlib.suppress(BrokenPipeError):
            self._socket.sendall(json.dumps(command).encode() + b"\n")

    def receive(self, limit: float) -> dict[str, Any]:
        """Return the answer, or how the process ended; it has ``limit`` seconds."""
        try:
            line = self._read_line(time.monotonic() + limit)
        except TimeoutError:
            self.close()
            return Ended("hung", f"no answer within {limit:g} s", None).answer()
        if line is None:
            return self._ended().answer()
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        """End the process and what belongs to it. Idempotent."""
        self.alive = False
        self._socket.close()
        self._process.kill()
        self._process.wait()
        self._output.close()

    def _read_line(self, deadline: float) -> bytes | None:
        """Return the next line, or None where the process closed its end before it was whole."""
        while b"\n" not in self._unread:
            self._socket.settimeout(max(deadline - time.monotonic(), 0.001))
            try:
                received = self._socket.recv(65536)
            except ConnectionResetError:  # it ended with a command unread
                received = b""
            if not received:
                return None
            self._unread += received
        line, _, self._unread = self._unread.partition(b"\n")
        return line

    def _ended(self) -> Ended:
        try:
            code = self._process.wait(_EXIT_SECONDS)
        except subprocess.TimeoutExpired:  # the socket is closed, but the process stays
            self.close()
            return Ended("hung", "did not exit", None)
        self._output.seek(0)
        last = self._output.read().decode(errors="replace").strip().rpartition("\n")[2]
        self.close()
        if code < 0:
            name = signal.Signals(-code).name
            return Ended("crashed", name, name)
        return Ended("failed", last or f"exit status {code}", None)


def _environment(host: Host) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("CUDABATCH_SIM_")}
    path = os.pathsep.join(filter(None, [str(_BENCH), os.environ.get("PYTHONPATH")]))
    return {**inherited, **host.variables, "PYTHONPATH": path}
