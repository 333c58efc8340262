"""The supervisor's record of what one child announced, checked line by line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from pytest_cudabatch.cells.outcome import RecordedWarning, Stop
from pytest_cudabatch.cells.protocol import PHASES, Phase, ProtocolError, decode_line, fields

__all__ = ["LINE_LIMIT", "Mark", "Transcript"]

LINE_LIMIT = 64 << 20
"""Bytes of one announcement. A report with a long traceback is some 100 KB; more than this is a flood."""


class Mark(NamedTuple):
    """A phase began when the output files had these sizes in bytes."""

    phase: Phase
    stdout: int
    stderr: int


class Transcript:
    """Takes the bytes of a child's channel as they come. After the first violation it takes nothing more.

    The order is: begin; phases, reports, warnings and one stop; done; end. ``complete`` needs all of it.
    """

    def __init__(self, nodeid: str) -> None:
        self.marks: list[Mark] = []
        self.reports: list[dict[str, Any]] = []
        self.warnings: list[RecordedWarning] = []
        self.stop: Stop | None = None
        self.expected_failure: str | None = None
        self.violation: str | None = None
        self._nodeid = nodeid
        self._said: set[str] = set()
        self._lines = 0
        self._closed = False
        self._rest = bytearray()

    @property
    def phase(self) -> Phase:
        """The last phase that began; before any has, a child is on its way into setup."""
        return self.marks[-1].phase if self.marks else "setup"

    @property
    def complete(self) -> bool:
        """Whether the child announced its end, and everything before it, without a fault."""
        return "end" in self._said and self.violation is None

    @property
    def done(self) -> bool:
        """Whether the item's own announcements are complete; the process may have more to say."""
        return "done" in self._said and self.violation is None

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes of the channel; after the close they are not looked at."""
        if self._closed or self.violation is not None:
            return
        *lines, rest = chunk.split(b"\n")
        try:
            for line in lines:
                self._take(bytes(self._rest) + line)
                self._rest.clear()
            self._rest += rest
            if len(self._rest) > LINE_LIMIT:
                raise ProtocolError(f"an announcement of more than {LINE_LIMIT} bytes")
        except ProtocolError as error:
            self._break_off(str(error))

    def close(self) -> None:
        """Take nothing more. What is left of a line then is a violation."""
        self._closed = True
        if self.violation is None and self._rest:
            self._break_off(f"half an announcement of {len(self._rest)} bytes")

    def _break_off(self, violation: str) -> None:
        self.violation = violation
        self._rest.clear()

    def _take(self, line: bytes) -> None:
        sequence, kind, body = decode_line(line)
        if sequence != self._lines:
            raise ProtocolError(f"announcement {sequence} where {self._lines} was due")
        if not self._in_order(kind):
            raise ProtocolError(f"{kind!r} after {', '.join(sorted(self._said)) or 'nothing'}")
        _TAKERS[kind](self, body)
        self._lines += 1
        self._said.add(kind)

    def _in_order(self, kind: str) -> bool:
        if kind not in _TAKERS or kind in self._said & {"begin", "stop", "done", "end"}:
            return False
        if kind == "begin":
            return not self._said
        return "begin" in self._said and (kind == "end") == ("done" in self._said)

    def _check_nodeid(self, nodeid: str) -> None:
        if nodeid != self._nodeid:
            raise ProtocolError(f"it speaks of {nodeid!r} instead of {self._nodeid!r}")

    def _take_begin(self, body: dict[str, Any]) -> None:
        nodeid, _ = fields(body, nodeid=str, at=float)
        self._check_nodeid(nodeid)

    def _take_phase(self, body: dict[str, Any]) -> None:
        phase, stdout, stderr, self.expected_failure = fields(
            body, phase=str, stdout=int, stderr=int, expected_failure=(str, type(None))
        )
        if phase not in PHASES or phase == "exit":
            raise ProtocolError(f"there is no phase {phase!r}")
        self._mark(phase, stdout, stderr)

    def _take_report(self, body: dict[str, Any]) -> None:
        (data,) = fields(body, data=dict)
        if data.get("when") not in ("setup", "call", "teardown"):
            raise ProtocolError(f"a report of phase {data.get('when')!r}")
        self._check_nodeid(data.get("nodeid"))
        self.reports.append(data)

    def _take_warning(self, body: dict[str, Any]) -> None:
        fields(body, **_WARNING_FIELDS)
        location = body["location"]
        if location is not None and [type(part) for part in location] != [str, int, str]:
            raise ProtocolError(f"a warning's location {location!r}")
        self.warnings.append(RecordedWarning(**{**body, "location": location and tuple(location)}))

    def _take_stop(self, body: dict[str, Any]) -> None:
        reason, returncode = fields(body, reason=str, returncode=(int, type(None)))
        self.stop = Stop(reason, returncode)

    def _take_done(self, body: dict[str, Any]) -> None:
        stdout, stderr = fields(body, stdout=int, stderr=int)
        missing = {"setup", "teardown"} - {report["when"] for report in self.reports}
        if missing:  # whatever a test does, pytest reports these two
            raise ProtocolError(f"done without a report of {' and '.join(sorted(missing))}")
        self._mark("exit", stdout, stderr)

    def _mark(self, phase: Phase, stdout: int, stderr: int) -> None:
        if stdout < 0 or stderr < 0:
            raise ProtocolError(f"{phase} began at offsets {stdout} and {stderr}")
        self.marks.append(Mark(phase, stdout, stderr))

    def _take_end(self, body: dict[str, Any]) -> None:
        fields(body)


_TAKERS: dict[str, Callable[[Transcript, dict[str, Any]], None]] = {
    "begin": Transcript._take_begin,
    "phase": Transcript._take_phase,
    "report": Transcript._take_report,
    "warning": Transcript._take_warning,
    "stop": Transcript._take_stop,
    "done": Transcript._take_done,
    "end": Transcript._take_end,
}

_WARNING_FIELDS: dict[str, type | tuple[type, ...]] = {
    "category_module": str,
    "category_name": str,
    "text": str,
    "filename": str,
    "lineno": int,
    "when": str,
    "nodeid": str,
    "location": (list, type(None)),
}
