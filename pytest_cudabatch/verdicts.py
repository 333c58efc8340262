"""From a cell's outcome, its test reports and its evidence to a verdict and a finding."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_cudabatch import findings
from pytest_cudabatch.findings import Finding
from pytest_cudabatch.pairings import Pairing

if TYPE_CHECKING:
    from pytest_cudabatch.cells import Outcome
    from pytest_cudabatch.interposer import Evidence

__all__ = ["Announcement", "Cell", "CellIdentity", "Judgement", "Verdict", "judge"]


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
    """What a cell is: its case, kind of failure, implementation and pairing (None without one)."""

    nodeid: str
    case: str
    kind: str | None
    implementation: str | None
    pairing: Pairing | None


@dataclass(frozen=True)
class Announcement:
    """What the child said of itself before it ended.

    ``paths`` are the paths that the implementation announced for its calls (empty where it made none), and
    ``import_failure`` is why the implementation could not be loaded (None where it could).
    """

    paths: tuple[str, ...] = ()
    import_failure: str | None = None


@dataclass(frozen=True)
class Judgement:
    """A verdict with its cause."""

    verdict: Verdict
    finding: Finding | None = None


def judge(
    identity: CellIdentity,
    outcome: Outcome,
    test_result: str,
    evidence: Evidence,
    announcement: Announcement,
) -> Judgement:
    """Give a cell's verdict.

    ``test_result`` is what the test itself reported: ``passed``, ``failed`` or ``skipped``. Evidence
    outranks it: a call with the wrong parameter list fails a cell whose test passed.
    """
    ended = outcome.end.value
    mismatch = findings.wrong_abi(evidence.mismatches[0]) if evidence.mismatches else None
    if ended == "timed-out":
        return Judgement(Verdict.HUNG, mismatch or findings.hang(outcome, evidence))
    if ended == "signalled":
        return Judgement(Verdict.CRASHED, mismatch or findings.crash(outcome, evidence))
    if ended == "exited":
        return Judgement(Verdict.CRASHED, mismatch or findings.silent_exit(outcome))
    if mismatch is not None:
        return Judgement(Verdict.FAILED, mismatch)
    if announcement.import_failure is not None:
        name = identity.implementation or "the implementation"
        return Judgement(Verdict.FAILED, findings.import_error(name, announcement.import_failure))
    if test_result != "passed":
        return Judgement(Verdict(test_result))
    return _judge_path(evidence, announcement)


def _judge_path(evidence: Evidence, announcement: Announcement) -> Judgement:
    """Hold the announced path against the evidence; nothing was announced where nothing was copied."""
    if not announcement.paths:
        return Judgement(Verdict.PASSED)
    if not evidence.recorded:
        return Judgement(Verdict.UNAVAILABLE, findings.no_evidence())
    if evidence.path.value not in announcement.paths:
        announced = " or ".join(announcement.paths)
        return Judgement(Verdict.FAILED, findings.silent_fallback(announced, evidence))
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

    @property
    def verdict(self) -> Verdict:
        """The cell's verdict."""
        return self.judgement.verdict

    @property
    def finding(self) -> Finding | None:
        """The verdict's cause, where there is one."""
        return self.judgement.finding

    @property
    def counts_as_failure(self) -> bool:
        """Whether pytest counts the cell as failed (an expected failure is none)."""
        return self.pytest_result == "failed"

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
            "platform": pairing.platform if pairing else None,
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
            "known_issue": None,
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
        )
