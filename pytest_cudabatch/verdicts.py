"""From a cell's outcome, its test reports and its evidence to a verdict and a finding."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_cudabatch import findings
from pytest_cudabatch.finding_codes import Code
from pytest_cudabatch.findings import Finding
from pytest_cudabatch.pairings import Pairing

if TYPE_CHECKING:
    from pytest_cudabatch.cells import Outcome
    from pytest_cudabatch.interposer import Evidence

__all__ = ["Account", "Cell", "CellIdentity", "Judgement", "Verdict", "judge", "judge_end"]


class Verdict(enum.Enum):
    """How a cell came out; ``unavailable`` and ``skipped`` are never passes."""

    PASSED = "passed"
    FAILED = "failed"
    CRASHED = "crashed"
    HUNG = "hung"
    UNAVAILABLE = "unavailable"
    SKIPPED = "skipped"


@dataclass(frozen=True)
class CellIdentity:
    """What a cell is: its case, kind of failure, implementation and pairing (None without one).

    ``declared`` is the finding that a failure of this case stands for, where the case says so.
    """

    nodeid: str
    case: str
    kind: str | None
    implementation: str | None
    pairing: Pairing | None
    declared: Code | None = None


@dataclass(frozen=True)
class Account:
    """What the child said of itself before it ended, and what its test came to.

    ``result`` is ``passed``, ``failed`` or ``skipped``, and ``message`` the failure's. ``paths`` are the
    paths that the implementation announced for its calls (empty where it made none), ``codes`` what the
    calls returned. ``import_failure`` is why the implementation could not be loaded, ``blamed`` the finding
    that a failed assertion stands for, ``environment`` what the runtime's refusal to work stands for, and
    ``lost_context`` the sticky error after which every call fails.
    """

    result: str
    message: str = ""
    paths: tuple[str, ...] = ()
    codes: tuple[int, ...] = ()
    import_failure: str | None = None
    blamed: Code | None = None
    environment: Code | None = None
    lost_context: str | None = None


@dataclass(frozen=True)
class Judgement:
    """A verdict with its cause."""

    verdict: Verdict
    finding: Finding | None = None


def judge_end(outcome: Outcome, evidence: Evidence, declared: Code | None = None) -> Judgement:
    """Give the verdict of a cell whose process ended without announcing it.

    ``declared`` is what a failure of the case stands for: a case with arrays before a hole means crashes.
    """
    verdict, code = _ENDS[outcome.end.value]
    if (wrong := _wrong_call(evidence)) is not None:
        return Judgement(verdict, wrong)
    if code is Code.CRASH and _called_nothing(evidence):
        code = Code.LOOKUP_UNCHECKED
    elif code is Code.CRASH and declared is Code.OVERREAD:
        code = declared
    return Judgement(verdict, findings.unannounced_end(code, outcome, evidence))


def _wrong_call(evidence: Evidence) -> Finding | None:
    """Say what is wrong with the first call that passed a parameter list which its callee does not have.

    Where the caller had asked another library than the callee for its version, and passed what that version
    takes, the split is the cause and the wrong parameter list its effect: the cause is told. A function that
    a rule handed out was not chosen by any version.
    """
    if not evidence.mismatches:
        return None
    call = evidence.mismatches[0]
    handed_out = {answer.found for answer in evidence.lookups if answer.injected}
    handed_out |= {binding.callee for binding in evidence.bindings if binding.injected}
    for query in evidence.version_queries if call.callee not in handed_out else ():
        elsewhere = query.caller.file == call.caller.file and query.owner_file != call.callee.file
        if elsewhere and query.parameters == call.given:
            return findings.split_owner(call, query, evidence)
    return findings.wrong_abi(call, evidence)


def _called_nothing(evidence: Evidence) -> bool:
    """Whether a crash is the call of a function that a look-up did not give.

    The look-up was refused, nothing was copied another way, and the crash is inside no recorded call.
    """
    return bool(evidence.refused_lookups()) and not evidence.per_copy_count and not evidence.last_call


_ENDS = {
    "timed-out": (Verdict.HUNG, Code.HANG),
    "signalled": (Verdict.CRASHED, Code.CRASH),
    "exited": (Verdict.CRASHED, Code.SILENT_EXIT),
}


def judge(identity: CellIdentity, evidence: Evidence, said: Account) -> Judgement:
    """Give the verdict of a cell that finished.

    Evidence outranks what the test reported: a call with the wrong parameter list fails a cell whose test
    passed, and so does a path that nobody announced.
    """
    if (wrong := _wrong_call(evidence)) is not None:
        return Judgement(Verdict.FAILED, wrong)
    if said.environment is not None:
        verdict = Verdict.FAILED if said.environment is Code.LEAKED_STATE else Verdict.UNAVAILABLE
        return Judgement(verdict, findings.environment(said.environment, said.message))
    if said.import_failure is not None:
        name = identity.implementation or "the implementation"
        return Judgement(Verdict.FAILED, findings.failed_import(name, said.import_failure))
    if said.lost_context is not None:
        return Judgement(Verdict.CRASHED, findings.lost_context(said.lost_context))
    if said.result == "failed":
        code = said.blamed or _code_of_returns(identity, said) or identity.declared
        return Judgement(Verdict.FAILED, Finding(code, said.message) if code else None)
    if said.result == "skipped":
        return Judgement(Verdict.SKIPPED)
    return _judge_path(evidence, said)


def _code_of_returns(identity: CellIdentity, said: Account) -> Code | None:
    """Recognise a driver older than the call by the codes that only it gives (facts of cudaError_t)."""
    pairing = identity.pairing
    if pairing is not None and not pairing.driver_route and {35, 36} & set(said.codes):
        return Code.NO_DRIVER_GUARD
    return None


def _judge_path(evidence: Evidence, said: Account) -> Judgement:
    """Hold the announced paths against the evidence; nothing was announced where nothing was copied."""
    if not said.paths:
        return Judgement(Verdict.PASSED)
    if evidence.recorded and evidence.unseen:
        return Judgement(Verdict.UNAVAILABLE, findings.unseen_binding(evidence.unseen))
    if not evidence.recorded or evidence.path.value == "unknown":
        return Judgement(Verdict.UNAVAILABLE, findings.no_evidence())
    if evidence.path.value not in said.paths:
        return Judgement(Verdict.FAILED, findings.silent_fallback(" or ".join(said.paths), evidence))
    return Judgement(Verdict.PASSED)


@dataclass(frozen=True)
class Cell:
    """One finished cell, with everything that reports need; crosses processes as JSON.

    ``seconds`` is the wall time of the cell's process, ``pytest_result`` what pytest counted it as
    (passed, failed, skipped, xfailed, xpassed).
    """

    identity: CellIdentity
    judgement: Judgement
    phase: str
    pytest_result: str
    path: str
    abi_called: str | None
    batch_calls: int
    per_copy_calls: int
    signal: str | None
    exit_code: int | None
    seconds: float
    known_issue: str | None = None

    @property
    def verdict(self) -> Verdict:
        """The cell's verdict."""
        return self.judgement.verdict

    @property
    def finding(self) -> Finding | None:
        """The verdict's cause, where there is one."""
        return self.judgement.finding

    @property
    def platform(self) -> str | None:
        """The platform that the cell ran on; None for a cell without a pairing."""
        return self.identity.pairing.platform if self.identity.pairing else None

    def to_json(self) -> dict[str, Any]:
        """Return the cell as the report's schema has it."""
        identity, pairing = self.identity, self.identity.pairing
        return {
            "nodeid": identity.nodeid,
            "case": identity.case,
            "kind": identity.kind,
            "implementation": identity.implementation,
            "pairing": pairing.id if pairing else None,
            "runtime": pairing.runtime.describe() if pairing else None,
            "driver": pairing.driver.describe() if pairing else None,
            "platform": self.platform,
            "basis": pairing.basis if pairing else None,
            "verdict": self.verdict.value,
            "phase": self.phase,
            "pytest": self.pytest_result,
            "path": self.path,
            "abi_called": self.abi_called,
            "calls": {"batch": self.batch_calls, "per_copy": self.per_copy_calls},
            "signal": self.signal,
            "exit_code": self.exit_code,
            "rate": None,
            "finding": self.finding.to_json() if self.finding else None,
            "known_issue": self.known_issue,
            "seconds": round(self.seconds, 6),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any], pairing: Pairing | None) -> Cell:
        """Read ``to_json``'s form back, with the run's own pairing object."""
        return cls(
            identity=CellIdentity(
                nodeid=data["nodeid"],
                case=data["case"],
                kind=data["kind"],
                implementation=data["implementation"],
                pairing=pairing,
            ),
            judgement=Judgement(Verdict(data["verdict"]), Finding.from_json(data["finding"])),
            phase=data["phase"],
            pytest_result=data["pytest"],
            path=data["path"],
            abi_called=data["abi_called"],
            batch_calls=data["calls"]["batch"],
            per_copy_calls=data["calls"]["per_copy"],
            signal=data["signal"],
            exit_code=data["exit_code"],
            seconds=data["seconds"],
            known_issue=data["known_issue"],
        )
