"""Rules as text: what parses, what does not and where the caret then points, and the room in a slot."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_cudabatch.errors import EvidenceError, UsageError
from pytest_cudabatch.interposer import (
    AppliedInjection,
    Effect,
    EffectKind,
    EvidenceFile,
    Injection,
    parse_injections,
)
from pytest_cudabatch.interposer.functions import FUNCTIONS
from pytest_cudabatch.interposer.layout import EVIDENCE_DLSYM

LOOKUPS = [name for name in FUNCTIONS if name.startswith(("cuGetProc", "cudaGetDriverEntry"))]
TARGETS_OF_RULES = ["batch", "per-copy", "lookup", "driver-version", *(n for n in FUNCTIONS if n[:2] == "cu")]

NULL, OTHER_ABI = Effect(EffectKind.NULL), Effect(EffectKind.OTHER_ABI)
HANG, CRASH = Effect(EffectKind.HANG), Effect(EffectKind.CRASH)


def code(number: int) -> Effect:
    return Effect(EffectKind.CODE, number)


def delay(milliseconds: int) -> Effect:
    return Effect(EffectKind.DELAY, milliseconds)


@pytest.mark.parametrize(
    ("text", "injections"),
    [
        ("batch=801", [Injection("batch", code(801))]),
        ("batch@1+=801", [Injection("batch", code(801))]),
        ("batch@3=801", [Injection("batch", code(801), 3, and_later=False)]),
        ("batch@1=801", [Injection("batch", code(801), 1, and_later=False)]),
        ("per-copy@2+=700", [Injection("per-copy", code(700), 2)]),
        ("lookup=null", [Injection("lookup", NULL)]),
        ("lookup=500", [Injection("lookup", code(500))]),
        ("driver-version=0", [Injection("driver-version", code(0))]),
        ("runtime-version=2147483647", [Injection("runtime-version", code(2**31 - 1))]),
        ("cudaMemcpyBatchAsync=36", [Injection("cudaMemcpyBatchAsync", code(36))]),
        ("cuGetProcAddress_v2@2=null", [Injection("cuGetProcAddress_v2", NULL, 2, and_later=False)]),
        ("lookup=other-abi", [Injection("lookup", OTHER_ABI)]),
        ("cudaGetDriverEntryPoint@1=other-abi", [Injection("cudaGetDriverEntryPoint", OTHER_ABI, 1, False)]),
        ("batch=delay:1", [Injection("batch", delay(1))]),
        ("per-copy@2+ = delay:3600000 ", [Injection("per-copy", delay(3_600_000), 2)]),
        ("driver-version=hang", [Injection("driver-version", HANG)]),
        ("lookup@3=crash", [Injection("lookup", CRASH, 3, and_later=False)]),
        (
            "\tbatch @ 1000000000 + = 801 ;lookup=null ",
            [Injection("batch", code(801), 10**9), Injection("lookup", NULL)],
        ),
    ],
)
def test_rules_parse(text: str, injections: list[Injection]) -> None:
    assert parse_injections(text) == tuple(injections)


GROUPS = "batch, per-copy, lookup, driver-version, runtime-version"
TARGETS = f"{GROUPS}, or a watched function such as cudaMemcpyBatchAsync"
NUMBER = "the number of a call belongs here, from 1 to 1000000000"
CODE = "a return code such as 801 belongs here, or delay:MS, hang, crash, and for a look-up null, other-abi"
NO_NULL = "only a look-up can be answered with null"
NO_OTHER_ABI = "only a look-up can be answered with the other ABI"
DELAY = "delay:MS takes milliseconds from 1 to 3600000"
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
        ("batch=wait", 6, CODE),
        ("batch=code", 6, CODE),
        ("batch=hang:5", 6, CODE),
        ("batch=Crash", 6, CODE),
        ("batch=delay", 11, DELAY),
        ("batch=delay:", 12, DELAY),
        ("batch=delay:0", 12, DELAY),
        ("batch=delay:-1", 12, DELAY),
        ("batch=delay: 5", 12, DELAY),
        ("batch=delay:5s", 12, DELAY),
        ("batch=delay:3600001", 12, DELAY),
        ("batch=٨٠١", 6, CODE),
        ("batch=null", 6, NO_NULL),
        ("lookup=null; per-copy=null", 22, NO_NULL),
        ("cudaMemcpyBatchAsync=null", 21, NO_NULL),
        ("driver-version=null", 15, NO_NULL),
        ("batch=other-abi", 6, NO_OTHER_ABI),
        ("per-copy@2=other-abi", 11, NO_OTHER_ABI),
        ("runtime-version=other-abi", 16, NO_OTHER_ABI),
        ("cuStreamCreate=other-abi", 15, NO_OTHER_ABI),
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
@pytest.mark.parametrize("target", TARGETS_OF_RULES)
def test_every_rule_comes_back_from_a_slot_as_it_was_spelled(tmp_path: Path, target: str, which: str) -> None:
    if target == "cudaRuntimeGetVersion":
        target = "runtime-version"  # the same rule by its shorter name
    effects = ["36", "delay:20", "hang", "crash"]
    if target in {"lookup", *LOOKUPS}:
        effects += ["null", "other-abi"]
    spelled = [f"{target}{which}={effect}" for effect in effects]
    with EvidenceFile.create(tmp_path / "evidence", slots=1) as evidence_file:
        for rule in spelled:
            evidence_file.request(0, parse_injections(rule))
        assert evidence_file.read(0).injections == tuple(AppliedInjection(rule, 0, 0) for rule in spelled)


def effects(target: str) -> st.SearchStrategy[Effect]:
    kinds = [HANG, CRASH, *([NULL, OTHER_ABI] if target in {"lookup", *LOOKUPS} else [])]
    return st.one_of(
        st.sampled_from(kinds),
        st.builds(code, st.integers(0, 2**31 - 1)),
        st.builds(delay, st.integers(1, 3_600_000)),
    )


injections = st.sampled_from(TARGETS_OF_RULES).flatmap(
    lambda target: st.builds(
        Injection, st.just(target), effects(target), st.integers(1, 10**9), st.booleans()
    )
)


@given(st.lists(injections, min_size=1, max_size=4), st.sampled_from([";", "; ", " ;\t"]))
def test_what_is_spelled_parses_to_the_same(rules: list[Injection], between: str) -> None:
    assert parse_injections(between.join(map(str, rules))) == tuple(rules)


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
    "injection",
    [
        Injection("batch", code(-1)),
        Injection("batch", NULL),
        Injection("batch", OTHER_ABI),
        Injection("batch", delay(0)),
        Injection("batch", code(1), number=0),
        Injection("lookup", Effect(EffectKind.NULL, 500)),
    ],
)
def test_rule_that_cannot_be_spelled_is_refused(tmp_path: Path, injection: Injection) -> None:
    with EvidenceFile.create(tmp_path / "evidence", slots=1) as evidence_file:
        with pytest.raises(UsageError):
            evidence_file.request(0, [injection])
        assert evidence_file.read(0).injections == ()


def test_process_injects_into_its_own_slot_only(tmp_path: Path) -> None:
    with EvidenceFile.create(tmp_path / "evidence", slots=2) as evidence_file:
        evidence_file.claim(1, os.getpid())
        assert evidence_file.inject("batch@2=801") == (Injection("batch", code(801), 2, and_later=False),)
        assert evidence_file.read(1).injections == (AppliedInjection("batch@2=801", 0, 0),)
        assert evidence_file.read(0).injections == ()
        evidence_file.claim(1, os.getpid() + 1)
        with pytest.raises(EvidenceError) as caught:
            evidence_file.inject("batch=801")
    message = f"this process has no slot in {tmp_path / 'evidence'}, so nothing can be injected"
    assert str(caught.value) == message
