"""Findings: a verdict's cause in words that a maintainer can act on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from pytest_cudabatch.abi import BatchAbi
from pytest_cudabatch.finding_codes import Code
from pytest_cudabatch.finding_hints import HINTS
from pytest_cudabatch.places import Place, place_of

if TYPE_CHECKING:
    from pytest_cudabatch.cells import Outcome
    from pytest_cudabatch.interposer import Binding, Call, Evidence, Location, Lookup, VersionQuery

__all__ = [
    "HINTS",
    "Code",
    "Control",
    "Finding",
    "Place",
    "decisions",
    "driver_fault",
    "environment",
    "failed_import",
    "lost_context",
    "no_evidence",
    "silent_fallback",
    "split_owner",
    "unannounced_end",
    "unseen_binding",
    "wrong_abi",
]

MOST_DECISIONS = 12
"""How many sentences of ``decided_by`` a finding has; a program that looks up hundreds of times is cut."""


CONTROL_RUNS = 5
"""How often a matched control runs; with fewer nobody is blamed."""


@dataclass(frozen=True)
class Control:
    """The matched control of a crash or hang: the same cell in fresh processes, its batch calls answered 801.

    In ``right`` of ``runs`` the test passed (where the implementation hands 801 on: of as many in which there
    was no batch function to be had); in ``valid`` the arguments of all of those calls were right.
    """

    runs: int
    right: int
    valid: int

    def __str__(self) -> str:
        cut = "" if self.runs == CONTROL_RUNS else f"; --cuda-budget was spent before all {CONTROL_RUNS}"
        return (
            f"without the batch call the same cell was right in {self.right} of {self.runs} runs, and the "
            f"call's arguments were valid in {self.valid}{cut}"
        )


@dataclass(frozen=True)
class Finding:
    """What went wrong, who called whom, and what to do about it.

    ``given`` and ``taken`` are numbers of parameters: those of the caller's call, those of the callee.
    ``decided_by`` says in a sentence each what the caller's choice was made from, as far as it was seen.
    ``fault`` is the instruction that failed, ``control`` what the matched control came to.
    """

    code: Code
    summary: str
    function: str | None = None
    caller: Place | None = None
    callee: Place | None = None
    given: int | None = None
    taken: int | None = None
    decided_by: tuple[str, ...] = ()
    fault: Place | None = None
    control: Control | None = None

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
            "decided_by": list(self.decided_by),
            "fault": self.fault.to_json() if self.fault else None,
            "control": dict(vars(self.control)) if self.control else None,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any] | None) -> Finding | None:
        """Read the report's form back, also that of a version without the later keys; None stays None.

        Raises ValueError for an unknown code.
        """
        if data is None:
            return None
        control = data.get("control")
        return cls(
            code=Code(data["code"]),
            summary=str(data["summary"]),
            function=data["function"],
            caller=Place.from_json(data["caller"]),
            callee=Place.from_json(data["callee"]),
            given=data["given"],
            taken=data["taken"],
            decided_by=tuple(data.get("decided_by", ())),
            fault=Place.from_json(data.get("fault")),
            control=Control(**control) if control else None,
        )


def wrong_abi(call: Call, evidence: Evidence) -> Finding:
    """Say that ``call`` passed a parameter list that its callee does not have."""
    assert call.given is not None  # both are known: that is what makes the call a mismatch
    assert call.taken is not None
    caller, callee = place_of(call.caller, returned_to=True), place_of(call.callee)
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
        decided_by=decisions(evidence, call),
    )


def split_owner(call: Call, query: VersionQuery, evidence: Evidence) -> Finding:
    """Say that the parameters of ``call`` follow a version that another library than the callee told."""
    assert query.version is not None  # a version was told: that is what decided the call
    wrong = wrong_abi(call, evidence)
    return replace(
        wrong,
        code=Code.SPLIT_OWNER,
        summary=(
            f"the version was asked of {_name(query.owner_file)} ({query.version}), but {call.function} is "
            f"that of {_name(call.callee.file)}: {wrong.summary}"
        ),
    )


def silent_fallback(announced: str, evidence: Evidence) -> Finding:
    """Say that the bytes went another way than the implementation announced."""
    return Finding(
        Code.SILENT_FALLBACK,
        f"path {announced} was announced, but the bytes went by path {evidence.path.value} "
        f"({evidence.batch_count} batch calls, {evidence.per_copy_count} per-copy calls)",
        decided_by=decisions(evidence),
    )


def unannounced_end(code: Code, outcome: Outcome, evidence: Evidence) -> Finding:
    """Say how the cell's process ended without announcing it, and inside which call; ``code`` says why."""
    last, fault = evidence.last_call, evidence.fault
    return Finding(
        code,
        f"{outcome.describe()}{_inside(last)}",
        **_call_places(last),
        decided_by=decisions(evidence, last) if last else (),
        fault=place_of(fault.place) if fault and fault.place else None,
    )


def driver_fault(crashed: Finding, control: Control) -> Finding:
    """Say that the driver failed on a batch that was right, by what its matched control came to."""
    return replace(
        crashed,
        code=Code.DRIVER_FAULT,
        summary=(
            f"the driver failed on a valid batch: {crashed.summary}; with single copies in its place the "
            f"same cell was right in {control.right} of {control.runs} runs"
        ),
        control=control,
    )


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
        Code.NO_GPU: "there is a driver, but no device that can be used",
    }[code]
    return Finding(code, f"{what} ({message})")


def no_evidence() -> Finding:
    """Say that the interposer recorded nothing, so that the path is unknown."""
    return Finding(
        Code.NO_EVIDENCE,
        "the interposer recorded nothing in this cell, so the path that the bytes took is unknown",
    )


def unseen_binding(bindings: Sequence[Binding]) -> Finding:
    """Say which function the code under test may call unseen: that of the first of ``bindings``."""
    binding = bindings[0]
    more = f", and {len(bindings) - 1} more like it" if len(bindings) > 1 else ""
    return Finding(
        Code.UNSEEN_BINDING,
        f"{_name(binding.caller)} has a pointer to {binding.function} that the interposer could not take "
        f"over{more}, so the path that the bytes took is unknown",
        function=binding.function,
        caller=place_of(replace(binding.callee, file=binding.caller, offset=0, symbol=None)),
    )


def _name(file: str) -> str:
    return PurePath(file).name


def decisions(evidence: Evidence, call: Call | None = None) -> tuple[str, ...]:
    """Say what the caller of ``call``, or all of the code under test, chose its batch function from.

    One sentence for each version query, look-up and binding that was seen; what was asked twice is told
    once.
    """
    caller = call.caller.file if call else None
    queries = [
        _told(query)
        for query in evidence.version_queries
        if query.under_test and _by(caller, query.caller.file)
    ]
    lookups = [_found(each) for each in evidence.batch_lookups() if _by(caller, each.caller.file)]
    bindings = [_bound(each) for each in evidence.batch_bindings() if _by(caller, each.caller)]
    told = list(dict.fromkeys((*queries, *lookups, *bindings)))
    if call and call.given != call.taken and not queries:
        told.append(
            f"no version query by {_name(call.caller.file)} was seen: its parameter list is fixed, or "
            "follows from a runtime that is linked into it"
        )
    return tuple(told[:MOST_DECISIONS])


def _by(wanted: str | None, caller: str) -> bool:
    return wanted is None or wanted == caller


def _told(query: VersionQuery) -> str:
    answer = f"code {query.code}" if query.version is None else str(query.version)
    injected = " (injected)" if query.injected else ""
    return (
        f"{query.function} of {_name(query.owner_file)} answered {answer}{injected} to {_spot(query.caller)}"
    )


def _found(lookup: Lookup) -> str:
    version = f" at {lookup.version}" if lookup.version else ""
    injected = " (injected)" if lookup.injected else ""
    found = lookup.found
    if lookup.code is None:
        return f"{lookup.function} of {lookup.name}{version} did not return to {_spot(lookup.caller)}"
    answer = f"nothing (code {lookup.code})" if found is None else f"{found.symbol} of {_name(found.file)}"
    return f"{lookup.function} of {lookup.name}{version} gave {answer}{injected} to {_spot(lookup.caller)}"


def _bound(binding: Binding) -> str:
    if binding.injected:
        return f"dlsym of {binding.function} gave nothing (injected) to {_name(binding.caller)}"
    by = "dlsym" if binding.via == "dlsym" else f"the dynamic linker ({binding.via})"
    return f"{by} gave {binding.function} of {_name(binding.callee.file)} to {_name(binding.caller)}"


def _spot(location: Location) -> str:
    return f"{_name(location.file)}+{location.offset:#x}"


def _inside(call: Call | None) -> str:
    if call is None:
        return ""
    return f", inside {call.function} of {_name(call.callee.file)} called by {_spot(call.caller)}"


def _call_places(call: Call | None) -> dict[str, Any]:
    if call is None:
        return {}
    return {
        "function": call.function,
        "caller": place_of(call.caller, returned_to=True),
        "callee": place_of(call.callee),
        "given": call.given,
        "taken": call.taken,
    }
