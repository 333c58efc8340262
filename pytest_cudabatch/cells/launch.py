"""One running zygote, seen from its supervisor: start, greeting, questions and end, every wait bounded."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import uuid
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_cudabatch.cells.attaching import MOST, Debugger, find_debugger
from pytest_cudabatch.cells.clearing import kill_all_with
from pytest_cudabatch.cells.files import clip, unlinked_file
from pytest_cudabatch.cells.outcome import CollectedItem, CollectedMarker, CollectionError
from pytest_cudabatch.cells.protocol import (
    VERSION,
    ZYGOTE_FD,
    ZYGOTE_ID,
    Json,
    Packet,
    ProtocolError,
    fields,
    receive,
    send,
)
from pytest_cudabatch.errors import CellError

__all__ = ["Environment", "RunningZygote"]

_ONE_THREAD = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
"""An import of numpy starts OpenBLAS's threads, and a process with threads cannot be forked safely."""

_START = Path(__file__).with_name("start.py")

_ANSWER_LIMIT = 30.0
"""Seconds for an answer of a zygote that has started: a fork, or reaping what a test left behind."""

_END_LIMIT = 10.0
"""Seconds for a zygote to end by itself once it is alone. After that it is killed."""


@dataclass(frozen=True)
class Environment:
    """What a zygote is started with: everything that must be set before exec.

    ``arguments`` are pytest's, ``variables`` are added to the caller's environment. ``directory`` is where
    it starts; its modules can be imported, as under ``python -m pytest``, only if ``imports_directory``.
    With ``native_stacks`` a debugger that is installed attaches to the first tests that crash or hang.
    """

    name: str
    arguments: tuple[str, ...]
    variables: Mapping[str, str]
    directory: Path
    imports_directory: bool = False
    native_stacks: bool = False


class RunningZygote:
    """A zygote's process, its socket, its log and what it collected. Close it, whatever happened."""

    def __init__(self, environment: Environment, start_limit: float) -> None:
        self._environment = environment
        self._id = uuid.uuid4().hex
        self._debugger = find_debugger() if environment.native_stacks else None
        self._attached = 0
        with ExitStack() as resources:
            self._log = unlinked_file(resources)
            self._conversation = self._launch(resources)
            self.items, self.errors = self._greet(start_limit)
            self._resources = resources.pop_all()

    def ask(
        self, kind: str, body: Mapping[str, Json], descriptors: Sequence[int], answers: Mapping[str, int]
    ) -> Packet:
        """Send a request and return its answer. Raises CellError, with the zygote's log, where none comes."""
        return self._exchange(kind, body, descriptors, answers, f"gave no answer to {kind!r}")

    def debugger(self) -> Debugger | None:
        """Return what takes native stacks; None where nothing is installed, or enough have been taken."""
        return self._debugger if self._attached < MOST else None

    def count_stacks(self, taken: int) -> None:
        """Remember that so many native stacks have been taken."""
        self._attached += taken

    def close(self) -> None:
        """End the zygote and everything below it."""
        self._resources.close()

    def _launch(self, resources: ExitStack) -> socket.socket:
        own, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603
                _command(self._environment),
                cwd=self._environment.directory,
                env=_variables(self._environment, theirs.fileno(), self._id),
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=self._log,
                stderr=self._log,
                start_new_session=True,  # Ctrl-C reaches the supervisor alone, which then ends its zygotes
            )
        resources.callback(self._end)
        return resources.enter_context(own)

    def _end(self) -> None:
        # The socket is closed by now, which is how a zygote is told to end.
        try:
            self._process.wait(_END_LIMIT)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(_END_LIMIT)
        if self._process.returncode != 0:
            # It could not clear up. Its child has died with it, but whatever that one started has not.
            kill_all_with(ZYGOTE_ID, self._id)

    def _greet(self, limit: float) -> tuple[dict[str, CollectedItem], tuple[CollectionError, ...]]:
        given = os.environ | dict(self._environment.variables)
        restored: dict[str, Json] = {name: given.get(name) for name in _ONE_THREAD}
        self._conversation.settimeout(limit)
        greeting: dict[str, Json] = {"version": VERSION, "variables": restored}
        ready = self._exchange("serve", greeting, (), {"ready": 1}, "did not start")
        self._conversation.settimeout(_ANSWER_LIMIT)
        with os.fdopen(ready.descriptors[0], "rb") as collection:
            collection.seek(0)
            try:
                _check_version(ready)
                return _parse_collection(collection.read())
            except ProtocolError as error:
                raise self._failure("did not start", error) from error

    def _exchange(
        self,
        kind: str,
        body: Mapping[str, Json],
        descriptors: Sequence[int],
        answers: Mapping[str, int],
        failure: str,
    ) -> Packet:
        try:
            send(self._conversation, kind, body, descriptors)
            return receive(self._conversation, answers)
        except (EOFError, OSError, ProtocolError) as error:
            raise self._failure(failure, error) from error

    def _failure(self, what: str, error: Exception) -> CellError:
        if isinstance(error, (EOFError, ConnectionError)):
            reason = self._how_it_ended()
        else:
            self._process.kill()
            limit = self._conversation.gettimeout()
            reason = f"no answer within {limit:g} s" if isinstance(error, TimeoutError) else str(error)
        name, log = self._environment.name, clip(self._log)
        return CellError(f"the zygote of {name!r} {what}: {reason}\n{log}".rstrip())

    def _how_it_ended(self) -> str:
        try:
            status = self._process.wait(_END_LIMIT)
        except subprocess.TimeoutExpired:
            return "it closed its socket but runs on"
        if status < 0:
            return f"it was killed by {signal.Signals(-status).name}"
        return f"it exited with status {status}"


def _command(environment: Environment) -> list[str]:
    return [
        sys.executable,
        "-u",  # what a test printed is in its file when it crashes
        str(_START),
        str(environment.directory) if environment.imports_directory else "",
        *("-p", "pytest_cudabatch.cells.zygote"),
        *environment.arguments,
        "--capture=no",  # the child's descriptors 1 and 2 are files of the supervisor
        "--maxfail=0",  # one import error is no reason to collect nothing else
    ]


def _variables(environment: Environment, zygote_end: int, zygote_id: str) -> dict[str, str]:
    return {
        **os.environ,
        **environment.variables,
        **dict.fromkeys(_ONE_THREAD, "1"),
        ZYGOTE_FD: str(zygote_end),
        ZYGOTE_ID: zygote_id,
    }


def _check_version(ready: Packet) -> None:
    (version,) = fields(ready.body, version=int)
    if version != VERSION:
        raise ProtocolError(f"it speaks version {version} of the protocol, this supervisor {VERSION}")


def _parse_collection(data: bytes) -> tuple[dict[str, CollectedItem], tuple[CollectionError, ...]]:
    try:
        collection = json.loads(data)
    except ValueError as error:
        raise ProtocolError(f"its collection is not JSON: {error}") from error
    items, errors = fields(collection, items=list, errors=list)
    parsed = [_parse_item(item) for item in items]
    return (
        {item.nodeid: item for item in parsed},
        tuple(CollectionError(*fields(error, nodeid=str, text=str)) for error in errors),
    )


def _parse_item(item: Mapping[str, Any]) -> CollectedItem:
    nodeid, location, keywords, markers = fields(item, nodeid=str, location=list, keywords=list, markers=list)
    file, line, name = location
    return CollectedItem(nodeid, (file, line, name), tuple(keywords), tuple(map(_parse_marker, markers)))


def _parse_marker(marker: Mapping[str, Any]) -> CollectedMarker:
    name, args, kwargs, exact = fields(marker, name=str, args=list, kwargs=dict, exact=bool)
    return CollectedMarker(name, tuple(args), kwargs, exact)
