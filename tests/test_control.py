"""When a crash or a hang gets a matched control, and what the control's runs decide."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_cudabatch.control import ControlRun, has_no_fallback, judge_control, wants_control
from pytest_cudabatch.finding_codes import Code
from pytest_cudabatch.findings import Control, Finding
from pytest_cudabatch.interposer import Call, Evidence, Fault, Location, Owner
from pytest_cudabatch.verdicts import Judgement, Verdict

DRIVER, RUNTIME, MINE = "/usr/lib/libcuda.so.1", "/cuda/libcudart.so.13", "/site/libmine.so"
NOTHING = Evidence(True, 0, (), (), (), (), ())
THREAD = 7

IN_DRIVER = Call(
    sequence=2,
    function="cuMemcpyBatchAsync_v2",
    caller=Location(RUNTIME, 0x10),
    callee=Location(DRIVER, 0x5000),
    given=8,
    taken=8,
    stream=0x7000,
    count=51828,
    returned=None,
    owner=Owner.DRIVER,
    under_test=False,
    thread=THREAD,
)
IN_RUNTIME = replace(
    IN_DRIVER,
    sequence=1,
    function="cudaMemcpyBatchAsync",
    caller=Location(MINE, 0x20),
    callee=Location(RUNTIME, 0x6000),
    owner=Owner.RUNTIME,
    under_test=True,
)
FAULT = Fault("SIGSEGV", 0, Location(DRIVER, 0x5123), THREAD)
CRASHED = replace(NOTHING, calls=(IN_RUNTIME, IN_DRIVER), fault=FAULT)
CRASH = Judgement(Verdict.CRASHED, Finding(Code.CRASH, "killed by SIGSEGV"))
HANG = Judgement(Verdict.HUNG, Finding(Code.HANG, "still running"))


def ending_in(**change: object) -> Evidence:
    return replace(CRASHED, calls=(IN_RUNTIME, replace(IN_DRIVER, **change)))


@pytest.mark.parametrize(
    ("judgement", "evidence", "wanted"),
    [
        (CRASH, CRASHED, True),
        (HANG, replace(CRASHED, fault=None), True),
        (CRASH, replace(CRASHED, fault=None), False),
        (CRASH, replace(CRASHED, fault=replace(FAULT, place=Location(MINE, 1))), False),
        (CRASH, replace(CRASHED, fault=replace(FAULT, place=None)), False),
        (CRASH, replace(CRASHED, fault=replace(FAULT, thread=8)), False),
        (CRASH, replace(CRASHED, calls=(IN_RUNTIME,)), False),
        (CRASH, ending_in(returned=0), False),
        (CRASH, ending_in(injected=True), False),
        (CRASH, ending_in(given=9), False),
        (CRASH, ending_in(given=None), False),
        (CRASH, ending_in(function="cuMemcpyAsync"), False),
        (CRASH, replace(CRASHED, lost=1), False),
        (Judgement(Verdict.CRASHED, Finding(Code.WRONG_ABI, "")), CRASHED, False),
        (Judgement(Verdict.PASSED), CRASHED, False),
    ],
    ids=[
        "crash inside the driver",
        "hang inside the driver",
        "fault not known",
        "fault in the caller",
        "fault nowhere",
        "fault in another thread",
        "inside the runtime only",
        "after the call",
        "in an injected call",
        "in a wrong call",
        "parameters not known",
        "in a single copy",
        "incomplete evidence",
        "another finding",
        "no finding",
    ],
)
def test_who_gets_a_control(judgement: Judgement, evidence: Evidence, wanted: bool) -> None:
    assert wants_control(judgement, evidence) is wanted


ANSWERED = replace(IN_DRIVER, returned=801, injected=True, arguments_right=True)


def controlled(passed: bool = True, *calls: Call, codes: tuple[int, ...] = (0,)) -> ControlRun:
    return ControlRun(passed, codes, replace(NOTHING, calls=calls or (ANSWERED,)))


RIGHT = controlled()


@pytest.mark.parametrize(
    ("run", "right", "valid"),
    [
        (RIGHT, 5, 5),
        (controlled(False), 4, 5),
        (controlled(True, replace(ANSWERED, arguments_right=False)), 5, 4),
        (controlled(True, replace(ANSWERED, arguments_right=None)), 5, 4),
        (controlled(True, ANSWERED, replace(ANSWERED, arguments_right=False)), 5, 4),
        (controlled(True, replace(ANSWERED, given=9)), 5, 4),
        # Nothing was answered in the driver's place: the cell went another way, and says nothing.
        (controlled(True, replace(ANSWERED, injected=False)), 4, 4),
    ],
    ids=["right", "failed", "wrong", "not known", "one of two wrong", "wrong list", "another way"],
)
def test_all_of_the_runs_must_be_right(run: ControlRun, right: int, valid: int) -> None:
    finding = judge_control(CRASH, [RIGHT, RIGHT, run, RIGHT, RIGHT]).finding
    assert finding is not None
    assert finding.control == Control(5, right, valid)
    assert finding.code is (Code.DRIVER_FAULT if right == valid == 5 else Code.CRASH)


def test_who_hands_the_answer_on_is_judged_without_the_function() -> None:
    """Its arguments are those of the answered calls, its bytes those of runs that found no batch function."""
    handed_on = [controlled(False, codes=(801,))] * 5
    assert has_no_fallback(handed_on)
    assert not has_no_fallback([*handed_on, RIGHT])
    finding = judge_control(CRASH, handed_on, [RIGHT] * 5).finding
    assert finding is not None
    assert (finding.code, finding.control) == (Code.DRIVER_FAULT, Control(5, 5, 5))
    finding = judge_control(CRASH, handed_on).finding
    assert finding is not None
    assert (finding.code, finding.control) == (Code.CRASH, Control(5, 0, 5))


def test_the_verdict_stays() -> None:
    judgement = judge_control(HANG, [RIGHT] * 5)
    assert judgement.verdict is Verdict.HUNG
    assert judgement.finding is not None
    assert judgement.finding.summary == (
        "the driver failed on a valid batch: still running; with single copies in its place the same cell "
        "was right in 5 of 5 runs"
    )


@pytest.mark.parametrize("runs", [0, 4])
def test_a_control_that_was_cut_short_blames_nobody(runs: int) -> None:
    assert not has_no_fallback([])
    finding = judge_control(CRASH, [RIGHT] * runs).finding
    assert finding is not None
    assert (finding.code, finding.control) == (Code.CRASH, Control(runs, runs, runs))
    assert str(finding.control).endswith("; --cuda-budget was spent before all 5")
