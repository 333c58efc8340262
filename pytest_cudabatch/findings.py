"""Findings: a verdict's cause in words that a maintainer can act on."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from pytest_cudabatch.abi import BatchAbi

if TYPE_CHECKING:
    from pytest_cudabatch.cells import Outcome
    from pytest_cudabatch.interposer import Call, Evidence

__all__ = [
    "Code",
    "Finding",
    "crash",
    "hang",
    "import_error",
    "no_evidence",
    "silent_exit",
    "silent_fallback",
    "wrong_abi",
]


class Code(enum.Enum):
    """The finding codes that this version gives; the value is the name used in reports."""

    WRONG_ABI = "wrong-abi"
    SILENT_FALLBACK = "silent-fallback"
    CRASH = "crash"
    HANG = "hang"
    SILENT_EXIT = "silent-exit"
    IMPORT_ERROR = "import-error"
    NO_EVIDENCE = "no-evidence"


@dataclass(frozen=True)
class Place:
    """A spot in a loaded object: the file as the loader named it, and the offset in bytes from its base."""

    file: str
    offset: int

    @property
    def name(self) -> str:
        """The file's base name, the same on every host."""
        return PurePath(self.file).name

    def __str__(self) -> str:
        return f"{self.name}+{self.offset:#x}"

    def to_json(self) -> dict[str, Any]:
        """Return the report's form."""
        return {"file": self.file, "offset": self.offset}

    @classmethod
    def from_json(cls, data: Mapping[str, Any] | None) -> Place | None:
        """Read the report's form back; None stays None."""
        return None if data is None else cls(str(data["file"]), int(data["offset"]))


@dataclass(frozen=True)
class Finding:
    """What went wrong, who called whom, and what to do about it.

    ``given`` and ``taken`` are numbers of parameters: those of the caller's call, those of the callee.
    """

    code: Code
    summary: str
    hint: str
    function: str | None = None
    caller: Place | None = None
    callee: Place | None = None
    given: int | None = None
    taken: int | None = None

    @property
    def cause(self) -> tuple[object, ...]:
        """What two cells must share to have the same cause; offsets and pairings are left out."""
        caller = self.caller.name if self.caller else None
        callee = self.callee.name if self.callee else None
        return (self.code, self.function, caller, callee, self.given, self.taken, self.hint)

    def to_json(self) -> dict[str, Any]:
        """Return the report's form."""
        return {
            "code": self.code.value,
            "summary": self.summary,
            "hint": self.hint,
            "function": self.function,
            "caller": self.caller.to_json() if self.caller else None,
            "callee": self.callee.to_json() if self.callee else None,
            "given": self.given,
            "taken": self.taken,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any] | None) -> Finding | None:
        """Read the report's form back; None stays None. Raises ValueError for an unknown code."""
        if data is None:
            return None
        return cls(
            code=Code(data["code"]),
            summary=str(data["summary"]),
            hint=str(data["hint"]),
            function=data["function"],
            caller=Place.from_json(data["caller"]),
            callee=Place.from_json(data["callee"]),
            given=data["given"],
            taken=data["taken"],
        )


def wrong_abi(call: Call) -> Finding:
    """Say that ``call`` passed a parameter list that its callee does not have."""
    assert call.given is not None  # both are known: that is what makes the call a mismatch
    assert call.taken is not None
    caller, callee = _place(call.caller), _place(call.callee)
    returned = "did not return" if call.returned is None else f"returned {call.returned}"
    return Finding(
        code=Code.WRONG_ABI,
        summary=(
            f"{call.function} was called with {call.given} parameters by {caller}, but {callee.name} takes "
            f"{call.taken} ({BatchAbi.of_parameters(call.taken).value}); the call {returned}"
        ),
        hint=(
            "choose the parameter list by the library that owns the function, not by the driver's or the "
            "build's version: ask cuGetProcAddress for cuMemcpyBatchAsync at 12080 and call it with 9 "
            "parameters, or take function and cudaRuntimeGetVersion from one and the same libcudart "
            "(cudabatch_dispatch.h does both)"
        ),
        function=call.function,
        caller=caller,
        callee=callee,
        given=call.given,
        taken=call.taken,
    )


def silent_fallback(announced: str, evidence: Evidence) -> Finding:
    """Say that the bytes went another way than the implementation announced."""
    return Finding(
        code=Code.SILENT_FALLBACK,
        summary=(
            f"path {announced} was announced, but the bytes went by path {evidence.path.value} "
            f"({evidence.batch_count} batch calls, {evidence.per_copy_count} per-copy calls)"
        ),
        hint=(
            "find out why the function was not used (the look-up, its result, the call's return code), "
            "or let expected_path announce the fallback on this pairing"
        ),
    )


def crash(outcome: Outcome, evidence: Evidence) -> Finding:
    """Say that the cell's process was ended by a signal."""
    last = evidence.last_call
    return Finding(
        code=Code.CRASH,
        summary=f"{outcome.describe()}{_inside(last)}",
        hint="rerun the cell under a debugger, or look at the output's stack",
        **_call_places(last),
    )


def hang(outcome: Outcome, evidence: Evidence) -> Finding:
    """Say that the cell's process had not ended at its deadline."""
    last = evidence.last_call
    return Finding(
        code=Code.HANG,
        summary=f"{outcome.describe()}{_inside(last)}",
        hint="the stacks of all threads are in the output; --cuda-timeout sets the deadline",
        **_call_places(last),
    )


def silent_exit(outcome: Outcome) -> Finding:
    """Say that the process left, with whatever status, without announcing its end."""
    return Finding(
        code=Code.SILENT_EXIT,
        summary=outcome.describe(),
        hint="look for an exit() or _exit() in the code under test or in a library that it loads",
    )


def import_error(implementation: str, reason: str) -> Finding:
    """Say that the implementation could not be loaded in the cell."""
    return Finding(
        code=Code.IMPORT_ERROR,
        summary=f"implementation {implementation!r} cannot be loaded: {reason}",
        hint=(
            "load it by hand in the same environment; a missing symbol means a runtime older than the one "
            "that it was built for"
        ),
    )


def no_evidence() -> Finding:
    """Say that the interposer recorded nothing, so that the path is unknown."""
    return Finding(
        code=Code.NO_EVIDENCE,
        summary="the interposer recorded nothing in this cell, so the path that the bytes took is unknown",
        hint=("the dynamic loader must honour LD_AUDIT: x86-64, and no static, musl or setuid interpreter"),
    )


def _place(location: Any) -> Place:
    return Place(location.file, location.offset)


def _inside(call: Call | None) -> str:
    if call is None:
        return ""
    return f", inside {call.function} of {_place(call.callee).name} called by {_place(call.caller)}"


def _call_places(call: Call | None) -> dict[str, Any]:
    if call is None:
        return {}
    return {
        "function": call.function,
        "caller": _place(call.caller),
        "callee": _place(call.callee),
        "given": call.given,
        "taken": call.taken,
    }
