"""The evidence file's layout: ctypes mirrors of the structures in native/interposer/evidence.h.

The C header is the original; the library exports its numbers and a test compares them with these classes.
"""

from __future__ import annotations

import ctypes
from ctypes import c_char, c_int32, c_uint8, c_uint16, c_uint32, c_uint64

__all__ = [
    "CALL_ARGUMENTS_RIGHT",
    "CALL_ARGUMENTS_WRONG",
    "CALL_HAS_STREAM",
    "CALL_INJECTED",
    "CALL_IN_FLIGHT",
    "CALL_RETURNED",
    "CAPABILITY_DLSYM",
    "CAPABILITY_LAZY",
    "CAPABILITY_NOW",
    "EVIDENCE_ALLOCATIONS",
    "EVIDENCE_DLSYM",
    "EVIDENCE_DLSYM_OTHER_ABI",
    "EVIDENCE_DLSYM_REFUSED",
    "EVIDENCE_HEADER_SIZE",
    "EVIDENCE_MAGIC",
    "EVIDENCE_NO_OBJECT",
    "EVIDENCE_PUBLISHED",
    "EVIDENCE_RULES",
    "EVIDENCE_SELF_CLAIM",
    "EVIDENCE_SLOTS_MAX",
    "EVIDENCE_TRACED",
    "EVIDENCE_UNSEEN",
    "EVIDENCE_VERSION",
    "EVIDENCE_VIA_DLSYM",
    "EVIDENCE_VIA_PLT",
    "EVIDENCE_VIA_RELOCATION",
    "INJECTED_ANSWER",
    "INJECTED_END",
    "NOTE_EXEC",
    "NOTE_EXEC_FAILED",
    "NOTE_SEARCHED",
    "NOTE_SPAWNED",
    "NOTE_STARTED",
    "NOTE_UNAUDITED",
    "RULE_BATCH_NAME",
    "RULE_CRASHES",
    "RULE_DELAYS",
    "RULE_FINDS_NULL",
    "RULE_FINDS_OTHER_ABI",
    "RULE_HANGS",
    "RULE_RETURNS_CODE",
    "RULE_UNDER_TEST",
    "TRACE_BATCH",
    "TRACE_CUT",
    "TRACE_FREED",
    "TRACE_MAGIC",
    "TRACE_RETURNED",
    "TRACE_SKIPPED",
    "TRACE_STREAM_GONE",
    "TRACE_TAKEN",
    "EvidenceAllocation",
    "EvidenceAllocations",
    "EvidenceBinding",
    "EvidenceCall",
    "EvidenceEntry",
    "EvidenceFault",
    "EvidenceHeader",
    "EvidenceJournal",
    "EvidenceLookup",
    "EvidenceObject",
    "EvidenceProcess",
    "EvidenceRule",
    "EvidenceRules",
    "EvidenceSite",
    "EvidenceSlot",
    "EvidenceTables",
    "EvidenceVersionQuery",
    "ProcessNote",
    "TraceRecord",
]

EVIDENCE_MAGIC = int.from_bytes(b"evident1", "little")
EVIDENCE_VERSION = 3
EVIDENCE_HEADER_SIZE = 4096
EVIDENCE_SLOTS_MAX = 256
EVIDENCE_RULES = 32
EVIDENCE_ALLOCATIONS = 64
EVIDENCE_NO_OBJECT = 0xFFFF
EVIDENCE_DLSYM = 63
EVIDENCE_PUBLISHED = 2
EVIDENCE_VIA_PLT = 1
EVIDENCE_VIA_DLSYM = 2
EVIDENCE_DLSYM_REFUSED = 3
EVIDENCE_DLSYM_OTHER_ABI = 4
EVIDENCE_VIA_RELOCATION = 5
EVIDENCE_UNSEEN = 6
CAPABILITY_LAZY = 1
CAPABILITY_NOW = 2
CAPABILITY_DLSYM = 4
INJECTED_ANSWER = 1
INJECTED_END = 2
EVIDENCE_SELF_CLAIM = 1
EVIDENCE_TRACED = 2
TRACE_MAGIC = int.from_bytes(b"cbtrace1", "little")
TRACE_BATCH = 1
TRACE_RETURNED = 2
TRACE_TAKEN = 3
TRACE_FREED = 4
TRACE_STREAM_GONE = 5
TRACE_CUT = 6
TRACE_SKIPPED = 7
CALL_IN_FLIGHT = 2
CALL_RETURNED = 3
CALL_HAS_STREAM = 1
CALL_INJECTED = 2
CALL_ARGUMENTS_RIGHT = 4
CALL_ARGUMENTS_WRONG = 8
RULE_UNDER_TEST = 1
RULE_BATCH_NAME = 2
RULE_RETURNS_CODE = 1
RULE_FINDS_NULL = 2
RULE_FINDS_OTHER_ABI = 3
RULE_DELAYS = 4
RULE_HANGS = 5
RULE_CRASHES = 6
NOTE_STARTED = 1
NOTE_EXEC = 2
NOTE_EXEC_FAILED = 3
NOTE_SPAWNED = 4
NOTE_SEARCHED = 1
NOTE_UNAUDITED = 2


class EvidenceEntry(ctypes.Structure):
    """The first word of a table's entry: whether it is published."""

    _fields_ = (("state", c_uint32), ("reserved", c_uint32))


class EvidenceObject(ctypes.Structure):
    """A mapped ELF object."""

    _fields_ = (
        ("entry", EvidenceEntry),
        ("base", c_uint64),
        ("path", c_char * 512),
        ("soname", c_char * 64),
    )


class EvidenceBinding(ctypes.Structure):
    """The dynamic linker gave an object the address of a watched function."""

    _fields_ = (
        ("entry", EvidenceEntry),
        ("function", c_uint16),
        ("caller", c_uint16),
        ("callee", c_uint16),
        ("via", c_uint16),
        ("callee_offset", c_uint64),
    )


class EvidenceLookup(ctypes.Structure):
    """One answer of a look-up function about a watched name."""

    _fields_ = (
        ("entry", EvidenceEntry),
        ("function", c_uint16),
        ("caller", c_uint16),
        ("found", c_uint16),
        ("target", c_uint16),
        ("version", c_uint32),
        ("code", c_int32),
        ("flags", c_uint64),
        ("caller_offset", c_uint64),
        ("found_offset", c_uint64),
        ("injected", c_uint64),
        ("name", c_char * 64),
    )


class EvidenceVersionQuery(ctypes.Structure):
    """One answer of a function that says which CUDA a driver or a runtime is."""

    _fields_ = (
        ("entry", EvidenceEntry),
        ("function", c_uint16),
        ("caller", c_uint16),
        ("callee", c_uint16),
        ("injected", c_uint16),
        ("code", c_int32),
        ("version", c_int32),
        ("caller_offset", c_uint64),
    )


class EvidenceCall(ctypes.Structure):
    """One copy call; ``outcome`` holds how far it came and, in the low half, its return code."""

    _fields_ = (
        ("outcome", c_uint64),
        ("sequence", c_uint64),
        ("function", c_uint16),
        ("caller", c_uint16),
        ("callee", c_uint16),
        ("given", c_uint8),
        ("flags", c_uint8),
        ("caller_offset", c_uint64),
        ("callee_offset", c_uint64),
        ("stream", c_uint64),
        ("count", c_uint64),
        ("thread", c_uint64),
    )


class EvidenceJournal(ctypes.Structure):
    """The first calls of one kind, and a ring of the last ones."""

    _fields_ = (("begun", c_uint64), ("first", EvidenceCall * 64), ("last", EvidenceCall * 64))


class EvidenceSite(ctypes.Structure):
    """Counters of all calls with the same function, caller, callee and arity."""

    _fields_ = (
        ("key", c_uint64),
        ("calls", c_uint64),
        ("returned", c_uint64),
        ("errors", c_uint64),
        ("descriptors", c_uint64),
        ("largest", c_uint64),
        ("last_error", c_uint64),
        ("reserved", c_uint64),
    )


class EvidenceTables(ctypes.Structure):
    """What is known before a slot is claimed."""

    _fields_ = (
        ("objects", EvidenceObject * 128),
        ("bindings", EvidenceBinding * 512),
        ("lookups", EvidenceLookup * 512),
        ("version_queries", EvidenceVersionQuery * 128),
    )


class EvidenceRule(ctypes.Structure):
    """One rule of injection, with its counters; ``functions`` are bits of function numbers."""

    _fields_ = (
        ("functions", c_uint64),
        ("first", c_uint64),
        ("last", c_uint64),
        ("conditions", c_uint32),
        ("effect", c_uint32),
        ("code", c_int32),
        ("delay", c_uint32),
        ("seen", c_uint64),
        ("fired", c_uint64),
    )


class EvidenceRules(ctypes.Structure):
    """The rules of a slot; those below ``count`` hold."""

    _fields_ = (("count", c_uint64), ("rules", EvidenceRule * EVIDENCE_RULES))


class EvidenceProcess(ctypes.Structure):
    """The process that took a slot by itself."""

    _fields_ = (("pid", c_uint32), ("parent", c_uint32), ("program", c_char * 512), ("name", c_char * 64))


class EvidenceFault(ctypes.Structure):
    """The first fatal signal, with its ``si_code`` and ``si_addr``, and the instruction that it hit."""

    _fields_ = (
        ("entry", EvidenceEntry),
        ("signal", c_int32),
        ("code", c_int32),
        ("address", c_uint64),
        ("offset", c_uint64),
        ("thread", c_uint64),
        ("object", c_uint16),
        ("reserved", c_uint16 * 3),
    )


class EvidenceAllocation(ctypes.Structure):
    """Memory that batch calls are about; ``size`` in bytes."""

    _fields_ = (("start", c_uint64), ("size", c_uint64))


class EvidenceAllocations(ctypes.Structure):
    """What the process says its next batch calls are about; ``count`` is 0 while rows are written."""

    _fields_ = (("count", c_uint64), ("rows", EvidenceAllocation * EVIDENCE_ALLOCATIONS))


class EvidenceSlot(ctypes.Structure):
    """One process's evidence."""

    _fields_ = (
        ("attached", c_uint32),
        ("lost", c_uint32),
        ("reported", c_uint32),
        ("missed", c_uint32),
        ("sequence", c_uint64),
        ("untraced", c_uint64),
        ("process", EvidenceProcess),
        ("injections", EvidenceRules),
        ("tables", EvidenceTables),
        ("sites", EvidenceSite * 256),
        ("batch", EvidenceJournal),
        ("per_copy", EvidenceJournal),
        ("fault", EvidenceFault),
        ("allocations", EvidenceAllocations),
    )


class EvidenceHeader(ctypes.Structure):
    """The file's first page; a claim is pid | slot << 32 | generation << 48, or 0."""

    _fields_ = (
        ("magic", c_uint64),
        ("version", c_uint32),
        ("header_size", c_uint32),
        ("slot_count", c_uint32),
        ("slot_size", c_uint32),
        ("flags", c_uint32),
        ("unserved", c_uint32),
        ("claims", c_uint64 * EVIDENCE_SLOTS_MAX),
        ("trace_limit", c_uint64),
    )


class ProcessNote(ctypes.Structure):
    """One record of the notes beside an evidence file (native/interposer/processes.h)."""

    _fields_ = (
        ("kind", c_uint32),
        ("pid", c_uint32),
        ("parent", c_uint32),
        ("flags", c_uint32),
        ("program", c_char * 512),
        ("detail", c_char * 512),
    )


class TraceRecord(ctypes.Structure):
    """The head of a record in a process's raw trace (native/interposer/trace.h)."""

    _fields_ = (
        ("magic", c_uint64),
        ("kind", c_uint32),
        ("function", c_uint32),
        ("sequence", c_uint64),
        ("value", c_uint64),
        ("count", c_uint64),
        ("attributes", c_uint64),
        ("thread", c_uint64),
        ("given", c_uint32),
        ("flags", c_uint32),
    )
