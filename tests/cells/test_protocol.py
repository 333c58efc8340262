"""The protocol is parsed strictly on both sides."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_cudabatch.cells.protocol import ProtocolError, decode_line, encode_line, fields, receive, send
from pytest_cudabatch.cells.transcript import LINE_LIMIT, Mark, Transcript
from pytest_cudabatch.errors import CellError

PHASE = {"stdout": 0, "stderr": 0, "expected_failure": None}
WARNING = {
    "category_module": "builtins",
    "category_name": "UserWarning",
    "text": "t",
    "filename": "f",
    "lineno": 1,
    "when": "runtest",
    "nodeid": "n",
    "location": None,
}


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    left, right = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with left, right:
        yield left, right


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_a_packet_arrives_with_its_descriptors_and_they_are_not_inherited(pair):
    left, right = pair
    send(left, "run", {"nodeid": "n"}, [0, 1])
    packet = receive(right, {"run": 2})
    assert (packet.kind, packet.body, len(packet.descriptors)) == ("run", {"nodeid": "n"}, 2)
    assert [os.get_inheritable(descriptor) for descriptor in packet.descriptors] == [False, False]
    for descriptor in packet.descriptors:
        os.close(descriptor)


@pytest.mark.parametrize(
    ("data", "descriptors"),
    [
        (b"garbage", 0),
        (b"[]", 0),
        (b"{}", 0),
        (b'{"run": {}, "reap": {}}', 0),
        (b'{"run": []}', 0),
        (b'{"other": {}}', 0),
        (b'{"run": {}}', 1),
        (b'{"run": {}}', 3),
        (b"x" * (160 << 10), 0),
        (b"[" * 100_000, 0),
    ],
)
def test_any_other_packet_is_refused_and_its_descriptors_are_closed(pair, data, descriptors):
    left, right = pair
    before = open_descriptors()
    socket.send_fds(left, [data], [0] * descriptors)
    with pytest.raises(ProtocolError):
        receive(right, {"run": 0, "none": 2})
    assert open_descriptors() == before


def test_the_other_sides_end_is_told_apart(pair):
    left, right = pair
    left.close()
    with pytest.raises(EOFError):
        receive(right, {"run": 0})
    with pytest.raises(BrokenPipeError):
        send(right, "run", {})


def test_a_packet_that_is_too_large_is_not_sent(pair):
    with pytest.raises(CellError, match="'run' packet of 200018 bytes exceeds the limit of 131072 bytes"):
        send(pair[0], "run", {"a": "x" * 200_000})


def test_lines_keep_what_json_can_carry_and_the_text_of_the_rest():
    line = encode_line(3, "report", {"a": [1, None, "\U0001f600ä\n"], "b": b"bytes"})
    assert line.count(b"\n") == 1
    assert decode_line(line) == (3, "report", {"a": [1, None, "\U0001f600ä\n"], "b": "b'bytes'"})


def test_lone_surrogates_are_shown_since_nothing_can_carry_them():
    line = encode_line(0, "report", {"a": ["\udce4\n"]})
    assert decode_line(line) == (0, "report", {"a": ["\\udce4\n"]})


@pytest.mark.parametrize(
    "line", [b"", b"{}", b"[1]", b'[1, "a", []]', b'["1", "a", {}]', b"[1, 2, {}]", b"\xff"]
)
def test_any_other_line_is_refused(line):
    with pytest.raises(ProtocolError):
        decode_line(line)


def test_fields_are_exactly_those_and_of_these_types():
    assert fields({"a": 1, "b": None}, b=(str, type(None)), a=int) == (None, 1)
    for body in ({}, {"a": 1, "b": 2}, {"b": 1}, {"a": "1"}, {"a": True}, {"a": None}):
        with pytest.raises(ProtocolError):
            fields(body, a=int)


def lines(*announcements: tuple[str, dict[str, object]]) -> bytes:
    return b"".join(encode_line(number, kind, body) for number, (kind, body) in enumerate(announcements))


def report(when: str, **changed: object) -> tuple[str, dict[str, object]]:
    return "report", {"data": {"when": when, "nodeid": "n", **changed}}


BEGIN = ("begin", {"nodeid": "n", "at": 1.5})
SETUP = ("phase", {"phase": "setup", **PHASE})
DONE = ("done", {"stdout": 4, "stderr": 5})
END = ("end", {})
WHOLE = (BEGIN, SETUP, report("setup"), report("teardown"), DONE, END)


@pytest.mark.parametrize("size", [1, 7, 1 << 20])
def test_a_transcript_is_the_same_however_it_is_cut(size):
    data = lines(*WHOLE)
    transcript = Transcript("n")
    for start in range(0, len(data), size):
        assert not transcript.complete
        transcript.feed(data[start : start + size])
    transcript.close()
    assert (transcript.complete, transcript.violation, transcript.phase) == (True, None, "exit")
    assert transcript.marks == [Mark("setup", 0, 0), Mark("exit", 4, 5)]
    assert [data["when"] for data in transcript.reports] == ["setup", "teardown"]


@pytest.mark.parametrize("count", range(len(WHOLE)))
def test_a_transcript_that_breaks_off_is_not_complete(count):
    transcript = Transcript("n")
    transcript.feed(lines(*WHOLE[:count]))
    transcript.close()
    assert (transcript.complete, transcript.violation) == (False, None)


@pytest.mark.parametrize(
    "announcements",
    [
        (SETUP,),
        (END,),
        (BEGIN, BEGIN),
        (("begin", {"nodeid": "other", "at": 1.5}),),
        (BEGIN, END),
        (BEGIN, DONE),
        (BEGIN, SETUP, report("setup"), DONE),
        (*WHOLE[:-1], SETUP),
        (*WHOLE[:-1], report("call")),
        (*WHOLE, END),
        (BEGIN, ("phase", {"phase": "exit", **PHASE})),
        (BEGIN, ("phase", {"phase": "lunch", **PHASE})),
        (BEGIN, ("phase", {"phase": "setup"})),
        (BEGIN, ("phase", {"phase": "setup", **PHASE, "stdout": -1})),
        (BEGIN, report("collect")),
        (BEGIN, report("call", nodeid="other")),
        (BEGIN, report("call", nodeid=None)),
        (BEGIN, ("report", {"data": []})),
        (BEGIN, ("warning", {})),
        (BEGIN, ("warning", {**WARNING, "location": ["f", "1", "n"]})),
        (BEGIN, ("song", {})),
    ],
)
def test_a_violation_is_kept_and_nothing_after_it_counts(announcements):
    transcript = Transcript("n")
    transcript.feed(lines(*announcements))
    assert transcript.violation is not None
    assert not transcript.complete
    before = transcript.violation
    transcript.feed(lines(*WHOLE))
    transcript.close()
    assert (transcript.violation, transcript.complete) == (before, False)


def test_half_a_line_at_the_end_is_a_violation_even_after_the_end():
    transcript = Transcript("n")
    transcript.feed(lines(*WHOLE) + b"[")
    assert transcript.complete
    transcript.close()
    assert (transcript.violation, transcript.complete) == ("half an announcement of 1 bytes", False)


def test_an_endless_line_is_a_violation_and_its_memory_is_freed():
    transcript = Transcript("n")
    chunk = b"x" * (1 << 20)
    for _ in range(LINE_LIMIT // len(chunk) + 1):
        assert transcript.violation is None
        transcript.feed(chunk)
    assert transcript.violation == f"an announcement of more than {LINE_LIMIT} bytes"


def test_a_warning_of_an_unknown_category_keeps_its_name():
    transcript = Transcript("n")
    category = {"category_module": "nowhere", "category_name": "StrangeWarning", "location": ["f", 1, "n"]}
    transcript.feed(lines(BEGIN, ("warning", {**WARNING, **category})))
    (recorded,) = transcript.warnings
    message = recorded.warning_message()
    assert recorded.location == ("f", 1, "n")
    assert (message.category.__module__, message.category.__name__) == ("nowhere", "StrangeWarning")
    assert issubclass(message.category, Warning)
    json.dumps(vars(recorded))
