"""evidence.h is the truth: the numbers that the library was built with are those of the Python mirror."""

from __future__ import annotations

import ctypes
from ctypes import c_char, c_char_p, c_uint32, c_uint64

import pytest

from pytest_cudabatch import native
from pytest_cudabatch.interposer import layout
from pytest_cudabatch.interposer.functions import FUNCTIONS

STRUCTURES = {
    "evidence_entry": layout.EvidenceEntry,
    "evidence_object": layout.EvidenceObject,
    "evidence_binding": layout.EvidenceBinding,
    "evidence_lookup": layout.EvidenceLookup,
    "evidence_version_query": layout.EvidenceVersionQuery,
    "evidence_call": layout.EvidenceCall,
    "evidence_journal": layout.EvidenceJournal,
    "evidence_site": layout.EvidenceSite,
    "evidence_tables": layout.EvidenceTables,
    "evidence_rule": layout.EvidenceRule,
    "evidence_rules": layout.EvidenceRules,
    "evidence_process": layout.EvidenceProcess,
    "evidence_fault": layout.EvidenceFault,
    "evidence_allocation": layout.EvidenceAllocation,
    "evidence_allocations": layout.EvidenceAllocations,
    "evidence_slot": layout.EvidenceSlot,
    "process_note": layout.ProcessNote,
    "trace_record": layout.TraceRecord,
    "evidence_header": layout.EvidenceHeader,
}

NUMBERS = (
    "EVIDENCE_MAGIC",
    "EVIDENCE_VERSION",
    "EVIDENCE_HEADER_SIZE",
    "EVIDENCE_SLOTS_MAX",
    "EVIDENCE_RULES",
    "EVIDENCE_NO_OBJECT",
    "EVIDENCE_DLSYM",
    "EVIDENCE_PUBLISHED",
    "EVIDENCE_VIA_PLT",
    "EVIDENCE_VIA_DLSYM",
    "EVIDENCE_DLSYM_REFUSED",
    "EVIDENCE_VIA_RELOCATION",
    "EVIDENCE_UNSEEN",
    "CAPABILITY_LAZY",
    "CAPABILITY_NOW",
    "CAPABILITY_DLSYM",
    "EVIDENCE_DLSYM_OTHER_ABI",
    "INJECTED_ANSWER",
    "INJECTED_END",
    "CALL_IN_FLIGHT",
    "CALL_RETURNED",
    "CALL_HAS_STREAM",
    "CALL_INJECTED",
    "CALL_ARGUMENTS_RIGHT",
    "CALL_ARGUMENTS_WRONG",
    "EVIDENCE_ALLOCATIONS",
    "EVIDENCE_SELF_CLAIM",
    "EVIDENCE_TRACED",
    "TRACE_MAGIC",
    "TRACE_BATCH",
    "TRACE_RETURNED",
    "TRACE_TAKEN",
    "TRACE_FREED",
    "TRACE_STREAM_GONE",
    "TRACE_CUT",
    "TRACE_SKIPPED",
    "NOTE_STARTED",
    "NOTE_EXEC",
    "NOTE_EXEC_FAILED",
    "NOTE_SPAWNED",
    "NOTE_SEARCHED",
    "NOTE_UNAUDITED",
    "RULE_UNDER_TEST",
    "RULE_BATCH_NAME",
    "RULE_RETURNS_CODE",
    "RULE_FINDS_NULL",
    "RULE_FINDS_OTHER_ABI",
    "RULE_DELAYS",
    "RULE_HANGS",
    "RULE_CRASHES",
)


class LayoutFact(ctypes.Structure):
    _fields_ = (("name", c_char * 56), ("value", c_uint64))


@pytest.fixture(scope="module")
def library() -> ctypes.CDLL:
    return ctypes.CDLL(str(native.library("libcudabatch_interposer.so")))


def facts_of(library: ctypes.CDLL) -> dict[str, int]:
    table = (LayoutFact * 200).in_dll(library, "cudabatch_layout")
    facts: dict[str, int] = {}
    for row in table:
        if not row.name:
            return facts
        facts[row.name.decode()] = row.value
    raise AssertionError("the table of layout facts has no end")


def mirrored() -> dict[str, int]:
    facts: dict[str, int] = {name: getattr(layout, name) for name in NUMBERS}
    for name, structure in STRUCTURES.items():
        facts[name] = ctypes.sizeof(structure)
        for field in structure._fields_:
            facts[f"{name}.{field[0]}"] = getattr(structure, field[0]).offset
    return facts


def test_python_mirrors_every_number_of_the_c_header(library: ctypes.CDLL) -> None:
    assert mirrored() == facts_of(library)


def test_python_names_the_functions_by_the_same_numbers(library: ctypes.CDLL) -> None:
    library.cudabatch_function_name.argtypes = (c_uint32,)
    library.cudabatch_function_name.restype = c_char_p
    count = len(FUNCTIONS)
    names = [library.cudabatch_function_name(number) for number in range(count + 1)]
    assert names == [*(name.encode() for name in FUNCTIONS), None]
