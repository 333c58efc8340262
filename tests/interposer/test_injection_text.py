"""Rules as text: what parses, what does not and where the caret then points, and the room in a slot."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pytest_cudabatch.errors import EvidenceError, UsageError
from pytest_cudabatch.interposer import AppliedInjection, EvidenceFile, Injection, parse_injections
from pytest_cudabatch.interposer.layout import EVIDENCE_DLSYM, FUNCTIONS

LOOKUPS = [name for name in FUNCTIONS if name.startswith(("cuGetProc", "cudaGetDriverEntry"))]


@pytest.mark.parametrize(
    ("text", "injections"),
    [
        ("batch=801", [Injection("batch", 801)]),
        ("batch@1+=801", [Injection("batch", 801)]),
        ("batch@3=801", [Injection("batch", 801, 3, and_later=False)]),
        ("batch@1=801", [Injection("batch", 801, 1, and_later=False)]),
        ("per-copy@2+=700", [Injection("per-copy", 700, 2)]),
        ("lookup=null", [Injection("lookup", None)]),
        ("lookup=500", [Injection("lookup", 500)]),
        ("driver-version=0", [Injection("driver-version", 0)]),
        ("runtime-version=2147483647", [Injection("runtime-version", 2**31 - 1)]),
        ("cudaMemcpyBatchAsync=36", [Injection("cudaMemcpyBatchAsync", 36)]),
        ("cuGetProcAddress_v2@2=null", [Injection("cuGetProcAddress_v2", None, 2, and_later=False)]),
        (
            "\tbatch @ 1000000000 + = 801 ;lookup=null ",
            [Injection("batch", 801, 10**9), Injection("lookup", None)],
        ),
    ],
)
def test_rules_parse(text: str, injections: list[Injection]) -> None:
    assert parse_injections(text) == tuple(injections)


GROUPS = "batch, per-copy, lookup, driver-version, runtime-version"
TARGETS = f"{GROUPS}, or a watched function such as cudaMemcpyBatchAsync"
NUMBER = "the number of a call belongs here, from 1 to 1000000000"
CODE = "a return code such as 801 belongs here, or null for a look-up"
NULL = "only a look-up can be answered with null"
EQUALS = "'=' and an effect belong here"


@pytest.mark.parametrize(
    ("text", "caret", "problem"),
    [
        ("", 0, f"a target belongs here: {TARGETS}"),
        ("  ", 2, f"a target belongs here: {TARGETS}"),
        ("=801", 0, f"a target belongs here: {TARGETS}"),
        ("batches=801", 0, f"a target belongs here, not 'batches': {TARGETS}"),
        ("cudaMemcpy=801", 0, f"a target belongs here, not 'cudaMemcpy': {TARGETS}"),
        ("Batch=801", 0, f"a target belongs here, not 'Batch': {TARGETS}"),
        ("batch=801;", 10, f"a target belongs here: {TARGETS}"),
        ("batch=801;;batch=1", 10, f"a target belongs here: {TARGETS}"),
        ("batch", 5, EQUALS),
        ("batch 801", 6, EQUALS),
        ("batch@2", 7, EQUALS),
        ("batch@2++=801", 8, EQUALS),
        ("batch@=801", 6, NUMBER),
        ("batch@0=801", 6, NUMBER),
        ("batch@-1=801", 6, NUMBER),
        ("batch@two=801", 6, NUMBER),
        ("batch@1000000001=801", 6, NUMBER),
        ("batch@+=801", 6, NUMBER),
        ("batch=", 6, CODE),
        ("batch=-1", 6, CODE),
        ("batch=801x", 6, CODE),
        ("batch=0x321", 6, CODE),
        ("batch=2147483648", 6, CODE),
        ("batch=hang", 6, CODE),
        ("batch=٨٠١", 6, CODE),
        ("batch=null", 6, NULL),
        ("lookup=null; per-copy=null", 22, NULL),
        ("cudaMemcpyBatchAsync=null", 21, NULL),
        ("driver-version=null", 15, NULL),
        ("batch=801 lookup=null", 10, "';' belongs between two rules"),
        ("batch=801, lookup=null", 6, CODE),
    ],
)
def test_caret_points_at_what_is_wrong(text: str, caret: int, problem: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_injections(text)
    assert str(caught.value).split("\n") == [
        f"the injection does not parse: {problem} (write it like 'batch@2=801; lookup=null')",
        f"  {text}",
        f"  {' ' * caret}^",
    ]


@pytest.mark.parametrize("which", ["", "@1", "@2", "@7+"])
@pytest.mark.parametrize("target", ["batch", "per-copy", "lookup", "driver-version", *FUNCTIONS])
def test_every_rule_comes_back_from_a_slot_as_it_was_spelled(tmp_path: Path, target: str, which: str) -> None:
    if target == "cudaRuntimeGetVersion":
        target = "runtime-version"  # the same rule by its shorter name
    spelled = [f"{target}{which}=36"]
    if target in {"lookup", *LOOKUPS}:
        spelled.append(f"{target}{which}=null")
    with EvidenceFile.create(tmp_path / "evidence", slots=1) as evidence_file:
        for rule in spelled:
            evidence_file.request(0, parse_injections(rule))
        assert evidence_file.read(0).injections == tuple(AppliedInjection(rule, 0, 0) for rule in spelled)


def test_functions_and_dlsym_are_told_apart_by_bits() -> None:
    assert len(FUNCTIONS) <= EVIDENCE_DLSYM


def test_slot_has_room_for_32_rules_and_takes_all_or_none(tmp_path: Path) -> None:
    with EvidenceFile.create(tmp_path / "evidence", slots=2) as evidence_file:
        evidence_file.request(1, parse_injections("batch=1;" * 29 + "batch=2"))
        with pytest.raises(UsageError) as caught:
            evidence_file.request(1, parse_injections("batch=3;batch=4;batch=5"))
        assert str(caught.value) == "a process can have 32 injections, not 33"
        evidence_file.request(1, parse_injections("batch=6;batch=7"))
        rules = [applied.rule for applied in evidence_file.read(1).injections]
        assert rules == [*["batch=1"] * 29, "batch=2", "batch=6", "batch=7"]
        assert evidence_file.read(0).injections == ()
        evidence_file.clear(1)
        assert evidence_file.read(1).injections == ()


@pytest.mark.parametrize(
    "injection", [Injection("batch", -1), Injection("batch", None), Injection("batch", 1, number=0)]
)
def test_rule_that_cannot_be_spelled_is_refused(tmp_path: Path, injection: Injection) -> None:
    with EvidenceFile.create(tmp_path / "evidence", slots=1) as evidence_file:
        with pytest.raises(UsageError):
            evidence_file.request(0, [injection])
        assert evidence_file.read(0).injections == ()


def test_process_injects_into_its_own_slot_only(tmp_path: Path) -> None:
    with EvidenceFile.create(tmp_path / "evidence", slots=2) as evidence_file:
        evidence_file.claim(1, os.getpid())
        assert evidence_file.inject("batch@2=801") == (Injection("batch", 801, 2, and_later=False),)
        assert evidence_file.read(1).injections == (AppliedInjection("batch@2=801", 0, 0),)
        assert evidence_file.read(0).injections == ()
        evidence_file.claim(1, os.getpid() + 1)
        with pytest.raises(EvidenceError) as caught:
            evidence_file.inject("batch=801")
    message = f"this process has no slot in {tmp_path / 'evidence'}, so nothing can be injected"
    assert str(caught.value) == message
