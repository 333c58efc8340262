"""A zygote's answers to its supervisor: one child at a time, reaped with everything that it left behind."""

from __future__ import annotations

import atexit
import os
import select
import signal
import socket
import traceback
from collections.abc import Mapping
from typing import TYPE_CHECKING, NoReturn

from pytest_cudabatch.cells import child, processes
from pytest_cudabatch.cells.protocol import VERSION, Packet, ProtocolError, fields, receive, send

if TYPE_CHECKING:
    import pytest

__all__ = ["Service"]

_REQUESTS = {"run": 4, "batch": 4, "reap": 0}  # kind -> file descriptors beside it

_EXIT_LIMIT = 1
"""Seconds for the exit handlers of a zygote."""


class Service:
    """Answers requests on ``conversation`` until the supervisor closes it or dies."""

    def __init__(
        self, conversation: socket.socket, items: Mapping[str, pytest.Item], announcer: child.Announcer
    ) -> None:
        self._conversation = conversation
        self._items = items
        self._announcer = announcer
        self._variables: dict[str, str | None] = {}
        self._spared: frozenset[int] = frozenset()
        self._child: int | None = None

    def open(self, collection: int) -> None:
        """Take the supervisor's greeting and send the file that describes what was collected."""
        greeting = receive(self._conversation, {"serve": 0})
        version, self._variables = fields(greeting.body, version=int, variables=dict)
        if version != VERSION:
            raise ProtocolError(f"the supervisor speaks version {version}, this zygote {VERSION}")
        # A server that a conftest started at import is the zygote's own, not what a test left behind.
        self._spared = processes.children()
        send(self._conversation, "ready", {"version": VERSION}, [collection])

    def serve(self) -> NoReturn:
        """Answer until the supervisor has gone; then end the child that still runs, and this process."""
        poll = select.poll()
        poll.register(self._conversation, select.POLLIN)
        supervisor = os.getppid()
        if supervisor:  # 0: in another process namespace; then the closed socket alone tells
            # A forked copy of the supervisor may keep the socket open after its death.
            poll.register(os.pidfd_open(supervisor), select.POLLIN)
        processes.outlive_parent()
        try:
            while [self._conversation.fileno()] == [ready for ready, _ in poll.poll()]:
                self._answer(receive(self._conversation, _REQUESTS))
        except (EOFError, ConnectionError):
            pass
        self._leave()

    def _answer(self, request: Packet) -> None:
        if request.kind == "reap":
            self._reap(*fields(request.body, pid=int))
            return
        try:
            self._run(request)
        finally:
            for descriptor in request.descriptors:
                os.close(descriptor)

    def _run(self, request: Packet) -> None:
        (waits,) = fields({"waits": request.body.pop("waits", None)}, waits=bool)
        asked = [request.body] if request.kind == "run" else fields(request.body, cells=list)[0]
        cells = [fields(cell, nodeid=str, payload=dict) for cell in asked]
        missing = [nodeid for nodeid, _ in cells if nodeid not in self._items]
        threads = processes.other_threads()
        if threads:
            self._refuse(f"it cannot be forked safely while it has other threads: {', '.join(threads)}")
        elif missing or not cells:
            self._refuse(f"there is no item {' or '.join(missing)}")
        else:
            items = tuple(child.Cell(self._items[nodeid], payload) for nodeid, payload in cells)
            self._fork(child.Request(items, waits, *request.descriptors))

    def _refuse(self, reason: str) -> None:
        send(self._conversation, "refused", {"reason": reason})

    def _fork(self, request: child.Request) -> None:
        own = os.getpid()
        try:
            self._child = os.fork()
        except OSError as error:
            self._refuse(f"fork: {error}")
            return
        if self._child == 0:
            self._become_child(request, own)
        watched = os.pidfd_open(self._child)
        try:
            send(self._conversation, "forked", {"pid": self._child}, [watched])
        finally:
            os.close(watched)

    def _become_child(self, request: child.Request, zygote: int) -> NoReturn:
        try:
            processes.die_with_parent(zygote)
            self._conversation.close()
            child.run(request, self._variables, self._announcer)
        except BaseException:
            # pytest.exit and KeyboardInterrupt come here too: the end stays unannounced, which is a failure.
            traceback.print_exc()
            raise
        finally:
            os._exit(os.EX_SOFTWARE)

    def _reap(self, pid: int) -> None:
        if pid != self._child:
            raise ProtocolError(f"{pid} is to be reaped, but {self._child} is the child")
        _, status = os.waitpid(pid, 0)
        self._child = None
        survivors = processes.kill_children_except(self._spared)
        send(self._conversation, "reaped", {"status": status, "survivors": survivors})

    def _leave(self) -> NoReturn:
        processes.kill_children_except(self._spared)
        # What modules registered while they were imported is for this process to do, but it may not hang.
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(_EXIT_LIMIT)
        atexit._run_exitfuncs()
        signal.alarm(0)
        processes.kill_children_except(frozenset())
        os._exit(0)
