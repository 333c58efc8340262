"""What the three processes of a cell say to each other: supervisor, zygote and child.

Requests and replies between supervisor and zygote are packets on an AF_UNIX SOCK_SEQPACKET socket, one
JSON object ``{kind: body}`` each, with file descriptors beside it. A child's announcements are JSON lines
``[sequence, kind, body]`` on a pipe. Both are parsed strictly: an unknown kind, a missing or surplus field
or a wrong type raises ProtocolError, and nothing is guessed.
"""

from __future__ import annotations

import array
import json
import os
import signal
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NoReturn, TypeAlias, get_args

from pytest_cudabatch.errors import CellError

__all__ = [
    "PHASES",
    "STACKS_SIGNAL",
    "VERSION",
    "ZYGOTE_FD",
    "ZYGOTE_ID",
    "Json",
    "Packet",
    "Phase",
    "ProtocolError",
    "decode_line",
    "encode_line",
    "fields",
    "receive",
    "send",
]

Json: TypeAlias = bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"] | None

Phase: TypeAlias = Literal["setup", "call", "teardown", "exit"]
"""Where a child was: pytest's three phases, then ``exit``, when its handlers and destructors run."""

PHASES: tuple[Phase, ...] = get_args(Phase)

VERSION = 2
"""Of this protocol. Supervisor and zygote may come from different installations; then they refuse."""

ZYGOTE_FD = "CUDABATCH_ZYGOTE_FD"
"""The environment variable that tells a zygote the number of its end of the socket."""

ZYGOTE_ID = "CUDABATCH_ZYGOTE_ID"
"""The environment variable by which all that a zygote ever started is found when it is lost."""

STACKS_SIGNAL = signal.SIGUSR1
"""Makes a child write the Python stacks of all its threads; the handler is faulthandler's, in C, and needs
no GIL."""

PACKET_LIMIT = 128 << 10
"""Bytes of one packet: below the kernel's default for a socket's buffer (net.core.wmem_default, 208 KiB)."""


class ProtocolError(CellError):
    """Another process of a cell said something that the protocol does not know."""


@dataclass(frozen=True)
class Packet:
    """One request or reply; whoever receives it owns its file descriptors."""

    kind: str
    body: dict[str, Any]
    descriptors: tuple[int, ...] = ()


def send(
    conversation: socket.socket, kind: str, body: Mapping[str, Json], descriptors: Sequence[int] = ()
) -> None:
    """Send one packet. Raises CellError where it is too large, OSError where the other side has gone."""
    data = json.dumps({kind: body}).encode()
    if len(data) > PACKET_LIMIT:
        raise CellError(f"a {kind!r} packet of {len(data)} bytes exceeds the limit of {PACKET_LIMIT} bytes")
    socket.send_fds(conversation, [data], list(descriptors))


def receive(conversation: socket.socket, expected: Mapping[str, int]) -> Packet:
    """Receive one packet of the ``expected`` kinds, each with its number of file descriptors.

    Raises EOFError where the other side has gone, TimeoutError after the socket's time-out and
    ProtocolError for anything that is not such a packet.
    """
    data, descriptors, whole = _receive_message(conversation, max(expected.values()))
    try:
        if not data:
            raise EOFError("the other side has closed the conversation")
        kind, body = _only_entry(data) if whole else _reject("a packet was cut off")
        if kind not in expected or len(descriptors) != expected[kind]:
            _reject(f"packet {kind!r} with {len(descriptors)} descriptors; expected {dict(expected)}")
    except BaseException:
        for descriptor in descriptors:
            os.close(descriptor)
        raise
    return Packet(kind, body, descriptors)


def _receive_message(conversation: socket.socket, descriptors: int) -> tuple[bytes, tuple[int, ...], bool]:
    # socket.recv_fds ignores its flags, and without MSG_CMSG_CLOEXEC subprocesses would inherit what it got.
    numbers = array.array("i")
    room = socket.CMSG_SPACE(max(1, descriptors) * numbers.itemsize)
    data, ancillary, flags, _ = conversation.recvmsg(PACKET_LIMIT, room, socket.MSG_CMSG_CLOEXEC)
    for level, kind, content in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            numbers.frombytes(content[: len(content) - len(content) % numbers.itemsize])
    return data, tuple(numbers), not flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC)


def _only_entry(data: bytes) -> tuple[str, dict[str, Any]]:
    message = _load(data)
    if not isinstance(message, dict) or len(message) != 1:
        _reject(f"a packet is one kind and its body, not {_shown(data)}")
    ((kind, body),) = message.items()
    return kind, body if isinstance(body, dict) else _reject(f"the body of {kind!r} is no object")


def encode_line(sequence: int, kind: str, body: Mapping[str, Json]) -> bytes:
    """Encode one announcement. What JSON cannot carry (a Path in a user property) becomes its text."""
    return json.dumps([sequence, kind, body], default=str).encode() + b"\n"


def decode_line(line: bytes) -> tuple[int, str, dict[str, Any]]:
    """Return sequence, kind and body of one announcement. Raises ProtocolError for anything else."""
    # A lone surrogate can be neither printed nor sent on; what escapes it in JSON is rare.
    match _printable(_load(line)) if b"\\ud" in line else _load(line):
        case [int(sequence), str(kind), dict(body)]:
            return sequence, kind, body
    return _reject(f"not an announcement: {_shown(line)}")


def _printable(value: Any) -> Any:
    """Replace what UTF-8 cannot encode in all texts of ``value``."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, list):
        return [_printable(item) for item in value]
    if isinstance(value, dict):
        return {_printable(name): _printable(item) for name, item in value.items()}
    return value


def fields(body: Mapping[str, Any], /, **types: type | tuple[type, ...]) -> tuple[Any, ...]:
    """Return the values of exactly these fields, in this order. Raises ProtocolError where any differs."""
    if body.keys() != types.keys():
        _reject(f"fields {sorted(body)} instead of {sorted(types)}")
    for name, kinds in types.items():
        # bool is an int to isinstance, but True is no process id
        allowed = kinds if isinstance(kinds, tuple) else (kinds,)
        if type(body[name]) not in allowed:
            _reject(f"field {name!r} is {type(body[name]).__name__} {_shown(body[name])}")
    return tuple(body[name] for name in types)


def _load(data: bytes) -> object:
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"not JSON: {_shown(data)} ({error})") from error


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}... ({len(text)} characters)"


def _reject(reason: str) -> NoReturn:
    raise ProtocolError(reason)
