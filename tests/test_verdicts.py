"""Verdicts from outcome, account and evidence: who outranks whom."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_cudabatch.abi import CudaVersion
from pytest_cudabatch.cells import End, Outcome
from pytest_cudabatch.finding_codes import Code
from pytest_cudabatch.findings import HINTS, Place
from pytest_cudabatch.interposer import Binding, Call, Capabilities, Evidence, Location, Lookup, Owner, Site
from pytest_cudabatch.pairings import DriverEntry, Pairing, RuntimeEntry
from pytest_cudabatch.verdicts import Account, Cell, CellIdentity, Judgement, Verdict, judge, judge_end

LIBRARY, RUNTIME = "/site/libmine.so", "/cuda/libcudart.so.12"
NOTHING = Evidence(True, 0, (), (), (), (), ())


def call(given: int = 8, taken: int = 9, returned: int | None = None) -> Call:
    return Call(
        sequence=1,
        function="cudaMemcpyBatchAsync",
        caller=Location(LIBRARY, 0x12E4),
        callee=Location(RUNTIME, 0x5000),
        given=given,
        taken=taken,
        stream=0x7000,
        count=8,
        returned=returned,
        owner=Owner.RUNTIME,
        under_test=True,
        thread=1,
    )


def site(function: str, calls: int = 1, errors: int = 0) -> Site:
    return Site(function, LIBRARY, RUNTIME, 9, True, calls, calls, errors)


BATCH = replace(NOTHING, calls=(call(9, 9, 0),), sites=(site("cudaMemcpyBatchAsync"),))
FALLBACK = replace(NOTHING, sites=(site("cudaMemcpyAsync", calls=8),))
MISMATCH = replace(NOTHING, calls=(call(returned=36),), sites=(site("cudaMemcpyBatchAsync", errors=1),))
REFUSED = replace(
    NOTHING,
    lookups=(Lookup("cuGetProcAddress_v2", "cuMemcpyBatchAsync", 12080, 0, 500, Location(LIBRARY, 1), None),),
)


def pairing(driver: str = "13.0") -> Pairing:
    version = CudaVersion(12, 9)
    return Pairing(
        RuntimeEntry(version, "12.9", version.abi, True, Path(RUNTIME), "simulated"),
        DriverEntry(CudaVersion.parse(driver)),
        "simulated",
        "header",
    )


def identity(driver: str = "13.0", declared: Code | None = None) -> CellIdentity:
    return CellIdentity("a.py::t[x]", "a.py::t", "F1", "mine", pairing(driver), declared)


def ended(end: End, signal: str | None = None, exit_code: int | None = None) -> Outcome:
    return Outcome(
        nodeid="a.py::t[x]",
        end=end,
        phase="call",
        signal=signal,
        exit_code=exit_code,
        violation=None,
        reports=(),
        warnings=(),
        expected_failure=None,
        captured=(),
        stacks="",
        started=0.0,
        seconds=1.5,
        survivors=0,
        pid=1,
    )


SEGFAULT = ended(End.SIGNALLED, "SIGSEGV")


UNSEEN = Binding("cudaMemcpyBatchAsync", LIBRARY, Location(RUNTIME, 0x5000), "unseen")
UNREPORTED = replace(BATCH, capabilities=Capabilities(dlsym=False))


@pytest.mark.parametrize(
    ("outcome", "evidence", "verdict", "code"),
    [
        (SEGFAULT, NOTHING, Verdict.CRASHED, Code.CRASH),
        (SEGFAULT, replace(NOTHING, calls=(call(),)), Verdict.CRASHED, Code.WRONG_ABI),
        (SEGFAULT, replace(NOTHING, calls=(call(9, 9),)), Verdict.CRASHED, Code.CRASH),
        (SEGFAULT, REFUSED, Verdict.CRASHED, Code.LOOKUP_UNCHECKED),
        (SEGFAULT, replace(REFUSED, sites=FALLBACK.sites), Verdict.CRASHED, Code.CRASH),
        (SEGFAULT, replace(REFUSED, calls=(call(9, 9),)), Verdict.CRASHED, Code.CRASH),
        (ended(End.TIMED_OUT), NOTHING, Verdict.HUNG, Code.HANG),
        (ended(End.EXITED, exit_code=0), NOTHING, Verdict.CRASHED, Code.SILENT_EXIT),
    ],
    ids=[
        "a crash",
        "inside a wrong call",
        "inside a right call",
        "after a refused look-up",
        "after a fallback",
        "in a call after a refused look-up",
        "a hang",
        "exit 0",
    ],
)
def test_ends_that_were_not_announced(
    outcome: Outcome, evidence: Evidence, verdict: Verdict, code: Code
) -> None:
    judgement = judge_end(outcome, evidence)
    assert judgement.finding is not None
    assert (judgement.verdict, judgement.finding.code) == (verdict, code)


PASSED = Account("passed", paths=("batch",))
FAILED = Account("failed", message="AssertionError: no")


@pytest.mark.parametrize(
    ("who", "evidence", "said", "verdict", "code"),
    [
        (identity(), BATCH, PASSED, Verdict.PASSED, None),
        (identity(), MISMATCH, PASSED, Verdict.FAILED, Code.WRONG_ABI),
        (identity(), FALLBACK, PASSED, Verdict.FAILED, Code.SILENT_FALLBACK),
        (identity(), BATCH, replace(PASSED, paths=("fallback",)), Verdict.FAILED, Code.SILENT_FALLBACK),
        (identity(), FALLBACK, replace(PASSED, paths=("batch", "fallback")), Verdict.PASSED, None),
        (identity(), NOTHING, replace(PASSED, paths=()), Verdict.PASSED, None),
        (identity(), replace(BATCH, recorded=False), PASSED, Verdict.UNAVAILABLE, Code.NO_EVIDENCE),
        (identity(), replace(BATCH, lost=3), PASSED, Verdict.UNAVAILABLE, Code.NO_EVIDENCE),
        (identity(), replace(BATCH, bindings=(UNSEEN,)), PASSED, Verdict.UNAVAILABLE, Code.UNSEEN_BINDING),
        (identity(), UNREPORTED, PASSED, Verdict.UNAVAILABLE, Code.NO_EVIDENCE),
        (identity(), BATCH, FAILED, Verdict.FAILED, None),
        (identity(declared=Code.ZERO_SIZE), BATCH, FAILED, Verdict.FAILED, Code.ZERO_SIZE),
        (
            identity(declared=Code.ZERO_SIZE),
            BATCH,
            replace(FAILED, blamed=Code.WRONG_BYTES),
            Verdict.FAILED,
            Code.WRONG_BYTES,
        ),
        (identity("12.4"), NOTHING, replace(FAILED, codes=(36,)), Verdict.FAILED, Code.NO_DRIVER_GUARD),
        (identity("12.8"), NOTHING, replace(FAILED, codes=(36,)), Verdict.FAILED, None),
        (identity(), NOTHING, Account("skipped"), Verdict.SKIPPED, None),
        (
            identity(),
            NOTHING,
            replace(FAILED, environment=Code.DRIVER_TOO_OLD),
            Verdict.UNAVAILABLE,
            Code.DRIVER_TOO_OLD,
        ),
        (identity(), BATCH, replace(FAILED, lost_context="f returned 719"), Verdict.CRASHED, Code.CRASH),
        (
            identity(),
            NOTHING,
            replace(FAILED, environment=Code.LEAKED_STATE),
            Verdict.FAILED,
            Code.LEAKED_STATE,
        ),
        (identity(), NOTHING, replace(FAILED, import_failure="no module"), Verdict.FAILED, Code.IMPORT_ERROR),
        (
            identity(),
            NOTHING,
            replace(FAILED, import_failure="libmine.so: undefined symbol: cudaMemcpyBatchAsync"),
            Verdict.FAILED,
            Code.MISSING_SYMBOL,
        ),
    ],
)
def test_cells_that_finished(
    who: CellIdentity, evidence: Evidence, said: Account, verdict: Verdict, code: Code | None
) -> None:
    judgement = judge(who, evidence, said)
    assert judgement.verdict is verdict
    assert (judgement.finding.code if judgement.finding else None) is code


def test_a_wrong_call_is_told_in_one_sentence() -> None:
    finding = judge(identity(), MISMATCH, PASSED).finding
    assert finding is not None
    assert finding.summary == (
        "cudaMemcpyBatchAsync was called with 8 parameters by libmine.so+0x12e4, but libcudart.so.12 takes 9 "
        "(v12080); the call returned 36"
    )


def test_every_code_has_a_hint() -> None:
    assert HINTS.keys() == set(Code)


def test_a_cell_crosses_processes() -> None:
    judgement = judge(identity(), MISMATCH, PASSED)
    assert isinstance(judgement, Judgement)
    cell = Cell(
        identity=identity(),
        judgement=judgement,
        phase="call",
        pytest_result="failed",
        path="none",
        abi_called="v13000",
        batch_calls=1,
        per_copy_calls=0,
        signal=None,
        exit_code=0,
        seconds=0.25,
        known_issue=None,
    )
    assert Cell.from_json(cell.to_json(), pairing()) == cell


def test_unseen_binding_names_object_and_function() -> None:
    evidence = replace(NOTHING, bindings=(UNSEEN, replace(UNSEEN, function="cudaMemcpyAsync")))
    judgement = judge(identity(), evidence, PASSED)
    assert judgement.finding is not None
    assert judgement.finding.summary == (
        "libmine.so has a pointer to cudaMemcpyBatchAsync that the interposer could not take over, and 1 "
        "more like it, so the path that the bytes took is unknown"
    )
    assert (judgement.finding.function, judgement.finding.caller) == (
        "cudaMemcpyBatchAsync",
        Place("site/libmine.so", 0),
    )
