"""Findings: a verdict's cause in words that a maintainer can act on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from pytest_cudabatch.abi import BatchAbi
from pytest_cudabatch.finding_codes import Code

if TYPE_CHECKING:
    from pytest_cudabatch.cells import Outcome
    from pytest_cudabatch.interposer import Call, Evidence, VersionQuery

__all__ = [
    "HINTS",
    "Code",
    "Finding",
    "Place",
    "environment",
    "failed_import",
    "lost_context",
    "no_evidence",
    "silent_fallback",
    "split_owner",
    "unannounced_end",
    "wrong_abi",
]

HINTS = {
    Code.WRONG_ABI: (
        "choose the parameter list by the library that owns the function, not by the version of the driver "
        "or the build: ask cuGetProcAddress for cuMemcpyBatchAsync at 12080 and call it with 9 parameters, "
        "or take function and cudaRuntimeGetVersion from one and the same libcudart "
        "(cudabatch_dispatch.h does both)"
    ),
    Code.SPLIT_OWNER: (
        "take the version and the function from one and the same library: dlopen(RTLD_NOLOAD) of a libcudart "
        "and dlsym with that handle for both, or cuGetProcAddress with an explicit version; dlsym with "
        "RTLD_DEFAULT finds whichever runtime came first (cudabatch_dispatch.h does both)"
    ),
    Code.LOOKUP_UNCHECKED: (
        "check the look-up's code and that the pointer is not NULL, and copy one by one where either fails"
    ),
    Code.NO_DRIVER_GUARD: (
        "copy one by one where the driver is older than 12.8 or does not tell its version; the batch call "
        "then returns 36 or 35"
    ),
    Code.SILENT_FALLBACK: (
        "find out why the function was not used (the look-up, its result, the call's return code), or let "
        "expected_path announce the fallback on this pairing"
    ),
    Code.UNCHECKED_RETURN: "check every single copy's return code, and return the first that is not 0",
    Code.MASKED_ERROR: (
        "fall back only where the batch call is not available (36, 801); an invalid value (1) is the "
        "caller's mistake and must reach it"
    ),
    Code.ERROR_LEFT_BEHIND: (
        "read cudaGetLastError after an error that was handled; else the next launch check finds it"
    ),
    Code.LEGACY_STREAM: "the batch call rejects streams 0 and 0x1: copy one by one on them",
    Code.BAD_ADDRESS: "check the descriptor's addresses and sizes against the allocations",
    Code.ZERO_SIZE: "leave entries of no bytes out; the batch call rejects the whole batch for one of them",
    Code.ATTRIBUTES: (
        "attrs and attrsIdxs have numAttrs entries; the first index is 0, they rise, the last is below count"
    ),
    Code.GUARD_OVERRUN: "bytes were written that belong to no descriptor: check offsets and sizes",
    Code.WRONG_BYTES: "compare the order of sources and destinations, and that the source lives long enough",
    Code.CRASH: "rerun the cell under a debugger, or look at the output's stack",
    Code.HANG: "the stacks of all threads are in the output; --cuda-timeout sets the deadline",
    Code.SILENT_EXIT: "look for an exit() or _exit() in the code under test or in a library that it loads",
    Code.IMPORT_ERROR: "load it by hand in the same environment",
    Code.MISSING_SYMBOL: "a runtime or driver older than the one that it was built for lacks the symbol",
    Code.LEAKED_STATE: (
        "initialise CUDA in tests and fixtures only: no test module, conftest or plugin may touch it when it "
        "is imported"
    ),
    Code.NO_GPU: "give the process a device: CUDA_VISIBLE_DEVICES, the container's GPU flag, the driver",
    Code.DRIVER_TOO_OLD: "a 13.x runtime needs a driver that reports 13.0 or newer (release 580)",
    Code.NO_EVIDENCE: (
        "the dynamic loader must honour LD_AUDIT: x86-64, and no static, musl or setuid interpreter"
    ),
}
"""What to do about each finding; one sentence for all cells that share a cause."""


@dataclass(frozen=True)
class Place:
    """A spot in a loaded object: the file and its directory, and the offset in bytes from its base.

    The directories above are the host's own and say nothing; reports leave them out.
    """

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
    function: str | None = None
    caller: Place | None = None
    callee: Place | None = None
    given: int | None = None
    taken: int | None = None

    @property
    def hint(self) -> str:
        """What to do about it."""
        return HINTS[self.code]

    @property
    def cause(self) -> tuple[object, ...]:
        """What two cells must share to have the same cause; offsets and pairings are left out."""
        caller = self.caller.name if self.caller else None
        callee = self.callee.name if self.callee else None
        return (self.code, self.function, caller, callee, self.given, self.taken)

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
        function=call.function,
        caller=caller,
        callee=callee,
        given=call.given,
        taken=call.taken,
    )


def split_owner(call: Call, query: VersionQuery) -> Finding:
    """Say that the parameters of ``call`` follow a version that another library than the callee told."""
    assert query.version is not None  # a version was told: that is what decided the call
    wrong = wrong_abi(call)
    callee = _place(call.callee)
    return replace(
        wrong,
        code=Code.SPLIT_OWNER,
        summary=(
            f"the version was asked of {_name(query.owner_file)} ({query.version}), but {call.function} is "
            f"that of {callee.name}: {wrong.summary}"
        ),
    )


def silent_fallback(announced: str, evidence: Evidence) -> Finding:
    """Say that the bytes went another way than the implementation announced."""
    return Finding(
        Code.SILENT_FALLBACK,
        f"path {announced} was announced, but the bytes went by path {evidence.path.value} "
        f"({evidence.batch_count} batch calls, {evidence.per_copy_count} per-copy calls)",
    )


def unannounced_end(code: Code, outcome: Outcome, evidence: Evidence) -> Finding:
    """Say how the cell's process ended without announcing it, and inside which call; ``code`` says why."""
    last = evidence.last_call
    return Finding(code, f"{outcome.describe()}{_inside(last)}", **_call_places(last))


def failed_import(implementation: str, reason: str) -> Finding:
    """Say that the implementation could not be loaded in the cell, perhaps for want of a symbol."""
    missing = "undefined symbol" in reason
    return Finding(
        Code.MISSING_SYMBOL if missing else Code.IMPORT_ERROR,
        f"implementation {implementation!r} cannot be loaded: {reason}",
    )


def lost_context(error: str) -> Finding:
    """Say that the driver gave the context up; the process lives on, but every call of it fails."""
    return Finding(Code.CRASH, f"the context was lost: {error}")


def environment(code: Code, message: str) -> Finding:
    """Say that the runtime does not work here, which is not the fault of the code under test."""
    what = {
        Code.LEAKED_STATE: "CUDA was initialised before this cell's process was made",
        Code.DRIVER_TOO_OLD: "the runtime needs a newer driver than this one",
        Code.NO_GPU: "there is a driver, but no device",
    }[code]
    return Finding(code, f"{what} ({message})")


def no_evidence() -> Finding:
    """Say that the interposer recorded nothing, so that the path is unknown."""
    return Finding(
        Code.NO_EVIDENCE,
        "the interposer recorded nothing in this cell, so the path that the bytes took is unknown",
    )


def _place(location: Any) -> Place:
    return Place("/".join(PurePath(location.file).parts[-2:]), location.offset)


def _name(file: str) -> str:
    return PurePath(file).name


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
