"""Findings, by value: what a maintainer reads of a wrong call, a split, a fallback and a crash."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_cudabatch.finding_codes import Code
from pytest_cudabatch.findings import Control, Finding, Place, decisions, silent_fallback
from pytest_cudabatch.interposer import Binding, Call, Evidence, Location, Lookup, Owner, VersionQuery
from pytest_cudabatch.verdicts import Account, CellIdentity, judge

MINE, OTHER = "/site/libmine.so", "/site/libother.so"
CUDA_12, CUDA_13, DRIVER = "/cuda/libcudart.so.12", "/cuda/libcudart.so.13", "/usr/lib/libcuda.so.1"
BATCH = "cudaMemcpyBatchAsync"
WHO = CellIdentity("a.py::t", "a.py::t", "F3", "mine", None)


def call(given: int, callee: str, taken: int) -> Call:
    return Call(
        sequence=1,
        function=BATCH,
        caller=Location(MINE, 0x12E4),
        callee=Location(callee, 0x5000, BATCH),
        given=given,
        taken=taken,
        stream=2,
        count=8,
        returned=35,
        owner=Owner.RUNTIME,
        under_test=True,
        thread=1,
    )


def query(
    owner: str, version: int, caller: str = MINE, function: str = "cudaRuntimeGetVersion"
) -> VersionQuery:
    return VersionQuery(function, Location(caller, 0x1234), owner, 0, version, under_test=True)


def evidence(*calls: Call, queries: tuple[VersionQuery, ...] = ()) -> Evidence:
    bindings = tuple(Binding(BATCH, MINE, each.callee, "dlsym") for each in calls)
    return Evidence(True, 0, (), bindings, (), calls, (), version_queries=queries)


SPLIT = evidence(call(9, CUDA_13, 8), queries=(query(CUDA_12, 12090),))


def test_a_split_is_told_with_both_libraries() -> None:
    assert judge(WHO, SPLIT, Account("passed")).finding == Finding(
        code=Code.SPLIT_OWNER,
        summary=(
            "the version was asked of libcudart.so.12 (12090), but cudaMemcpyBatchAsync is that of "
            "libcudart.so.13: cudaMemcpyBatchAsync was called with 9 parameters by libmine.so+0x12e4, but "
            "libcudart.so.13 takes 8 (v13000); the call returned 35"
        ),
        function=BATCH,
        caller=Place("site/libmine.so", 0x12E4),
        callee=Place("cuda/libcudart.so.13", 0x5000, symbol=BATCH),
        given=9,
        taken=8,
        decided_by=(
            "cudaRuntimeGetVersion of libcudart.so.12 answered 12090 to libmine.so+0x1234",
            "dlsym gave cudaMemcpyBatchAsync of libcudart.so.13 to libmine.so",
        ),
    )


@pytest.mark.parametrize(
    ("seen", "code"),
    [
        (SPLIT, Code.SPLIT_OWNER),
        # The version is the callee's own: whatever decided, it was not another library's version.
        (evidence(call(9, CUDA_13, 8), queries=(query(CUDA_13, 13000),)), Code.WRONG_ABI),
        # Another library of the process asked.
        (evidence(call(9, CUDA_13, 8), queries=(query(CUDA_12, 12090, OTHER),)), Code.WRONG_ABI),
        # The version does not explain the parameters.
        (evidence(call(9, CUDA_13, 8), queries=(query(CUDA_12, 13000),)), Code.WRONG_ABI),
        # A driver's version is no runtime's.
        (
            evidence(call(9, CUDA_13, 8), queries=(query(DRIVER, 12090, MINE, "cudaDriverGetVersion"),)),
            Code.WRONG_ABI,
        ),
        (evidence(call(9, CUDA_13, 8)), Code.WRONG_ABI),
        # Two libraries of the same ABI: nothing is wrong with the call.
        (evidence(call(9, CUDA_12, 9), queries=(query(MINE, 12080),)), None),
        (evidence(call(8, CUDA_13, 8), queries=(query(CUDA_12, 12090),)), None),
    ],
    ids=[
        "of another runtime",
        "of the callee",
        "asked by another library",
        "that does not explain it",
        "of the driver",
        "not asked for",
        "of another library with the same ABI",
        "that was not heeded",
    ],
)
def test_the_cause_is_a_version(seen: Evidence, code: Code | None) -> None:
    finding = judge(WHO, seen, Account("passed")).finding
    assert (finding.code if finding else None) is code


def test_a_choice_that_nobody_was_asked_about_is_told_so() -> None:
    finding = judge(WHO, evidence(call(9, CUDA_13, 8)), Account("passed")).finding
    assert finding is not None
    assert finding.decided_by == (
        "dlsym gave cudaMemcpyBatchAsync of libcudart.so.13 to libmine.so",
        "no version query by libmine.so was seen: its parameter list is fixed, or follows from a runtime "
        "that is linked into it",
    )


def test_what_a_choice_was_made_from() -> None:
    place = Location(MINE, 0x1234)
    found = Location(DRIVER, 0x90, "cuMemcpyBatchAsync_v2")
    lookup = Lookup("cuGetProcAddress_v2", "cuMemcpyBatchAsync", 13000, 0, 0, place, found)
    seen = Evidence(
        recorded=True,
        lost=0,
        objects=(),
        bindings=(
            Binding(BATCH, MINE, Location(CUDA_12, 0x5000), "plt"),
            Binding(BATCH, MINE, Location(CUDA_12, 0x5000), "dlsym", injected=True),
            Binding("cudaStreamCreate", MINE, Location(CUDA_12, 0x6000), "plt"),
        ),
        lookups=(
            lookup,
            lookup,
            replace(lookup, version=12080, code=500, found=None, injected=True),
            replace(lookup, caller=Location(CUDA_13, 0x10)),
            replace(lookup, name="cuMemcpyAsync"),
        ),
        calls=(),
        sites=(),
        version_queries=(
            replace(
                query(DRIVER, 13000, function="cuDriverGetVersion"), code=35, version=None, injected=True
            ),
            replace(query(CUDA_12, 12090, CUDA_12), under_test=False),
        ),
    )
    told = (
        "cuDriverGetVersion of libcuda.so.1 answered code 35 (injected) to libmine.so+0x1234",
        "cuGetProcAddress_v2 of cuMemcpyBatchAsync at 13000 gave cuMemcpyBatchAsync_v2 of libcuda.so.1 to "
        "libmine.so+0x1234",
        "cuGetProcAddress_v2 of cuMemcpyBatchAsync at 12080 gave nothing (code 500) (injected) to "
        "libmine.so+0x1234",
        "the dynamic linker (plt) gave cudaMemcpyBatchAsync of libcudart.so.12 to libmine.so",
        "dlsym of cudaMemcpyBatchAsync gave nothing (injected) to libmine.so",
    )
    assert decisions(seen) == told
    assert silent_fallback("batch", seen).decided_by == told


def test_a_finding_crosses_processes() -> None:
    finding = judge(WHO, SPLIT, Account("passed")).finding
    assert finding is not None
    whole = replace(finding, fault=Place("lib/libcuda.so.1", 3, "ab", "f", "f.c:1"), control=Control(5, 4, 5))
    assert Finding.from_json(whole.to_json()) == whole
    assert whole.to_json()["control"] == {"runs": 5, "right": 4, "valid": 5}


def test_a_finding_of_a_version_without_the_later_keys_is_read() -> None:
    data = {
        "code": "wrong-abi",
        "summary": "s",
        "hint": "h",
        "function": BATCH,
        "caller": {"file": "site/libmine.so", "offset": 3},
        "callee": None,
        "given": 8,
        "taken": 9,
    }
    assert Finding.from_json(data) == Finding(
        Code.WRONG_ABI, "s", BATCH, Place("site/libmine.so", 3), None, 8, 9
    )
