"""Whether a crash or a hang inside a batch call is the driver's: the criterion, and the matched control.

A driver's fault needs all of these: the call has the callee's parameters, its stream is live, each range
lies inside a known allocation, the attributes are valid; the fault lies in libcuda, or the call did not
return; and the same cell, run several times in fresh processes with the batch call answered 801 by the
interposer, is right each time. What the arguments were is judged in these runs, where the same call is made
and not carried out.

Some implementations hand that answer on to their caller, and copy one by one only where there is no function
to be had (vLLM). Whether the cell is right without its batch call is then seen in as many runs in which
look-ups find none.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from pytest_cudabatch import findings
from pytest_cudabatch.finding_codes import Code
from pytest_cudabatch.findings import CONTROL_RUNS, Control
from pytest_cudabatch.interposer import Call, CopyPath, Evidence, Owner
from pytest_cudabatch.verdicts import Judgement

__all__ = [
    "CONTROL_INJECTION",
    "NO_FUNCTION",
    "ControlRun",
    "has_no_fallback",
    "judge_control",
    "wants_control",
]

CONTROL_INJECTION = "batch=801"
"""Not supported: what lets an implementation copy one by one, whoever it asks for the batch call."""

NO_FUNCTION = "lookup=null"
"""No batch function to be had: the other way to single copies, where the first one is handed on."""

NOT_SUPPORTED = 801


@dataclass(frozen=True)
class ControlRun:
    """One run of the control: whether the cell's test passed, what its copies returned, and what was seen."""

    passed: bool
    codes: tuple[int, ...]
    evidence: Evidence

    @property
    def is_right(self) -> bool:
        """Whether the test passed, by another way than the batch call."""
        return self.passed and (bool(self._answered()) or self.evidence.path is CopyPath.FALLBACK)

    @property
    def was_handed_on(self) -> bool:
        """Whether the answer in the driver's place reached the caller."""
        return not self.passed and NOT_SUPPORTED in self.codes

    @property
    def has_valid_arguments(self) -> bool:
        """Whether every batch call that was answered in the driver's place had right arguments."""
        calls = self._answered()
        return bool(calls) and all(
            call.given == call.taken and call.arguments_right is True for call in calls
        )

    def _answered(self) -> list[Call]:
        return [call for call in self.evidence.calls if call.is_batch and call.injected]


def wants_control(judgement: Judgement, evidence: Evidence) -> bool:
    """Whether a cell ended inside a batch call of a libcuda that looks right so far as it was seen."""
    finding = judgement.finding
    if finding is None or finding.code not in (Code.CRASH, Code.HANG) or evidence.lost:
        return False
    call = _innermost(evidence)
    if call is None or call.owner is not Owner.DRIVER or call.injected:
        return False
    if call.given is None or call.given != call.taken:
        return False
    return finding.code is Code.HANG or _fails_in(call, evidence)


def _innermost(evidence: Evidence) -> Call | None:
    """Return the batch call in flight that was entered last; a libcudart's own call of its driver counts."""
    return next((call for call in reversed(evidence.in_flight) if call.is_batch), None)


def _fails_in(call: Call, evidence: Evidence) -> bool:
    """Whether the instruction that failed is the called library's own, in the thread of the call."""
    fault = evidence.fault
    if fault is None or fault.place is None:
        return False
    return fault.thread == call.thread and fault.place.file == call.callee.file


def has_no_fallback(runs: Iterable[ControlRun]) -> bool:
    """Whether in every run the implementation handed the answer on instead of copying one by one."""
    seen = list(runs)
    return bool(seen) and all(run.was_handed_on for run in seen)


def judge_control(
    judgement: Judgement, runs: Iterable[ControlRun], without_function: Iterable[ControlRun] = ()
) -> Judgement:
    """Say that the driver failed where the control leaves nothing else; else only add the figures.

    Where ``has_no_fallback`` of ``runs``, those of ``without_function`` say whether the cell was right.
    """
    seen = list(runs)
    control = Control(
        runs=len(seen),
        right=sum(run.is_right for run in (list(without_function) or seen)),
        valid=sum(run.has_valid_arguments for run in seen),
    )
    assert judgement.finding is not None  # only what ended in a finding is controlled
    if control.right == control.valid == CONTROL_RUNS:
        return replace(judgement, finding=findings.driver_fault(judgement.finding, control))
    return replace(judgement, finding=replace(judgement.finding, control=control))
