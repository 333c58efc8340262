"""Turns a slot's bytes into Evidence. Reads published entries only, not one that SIGKILL cut short."""

from __future__ import annotations

import ctypes
import signal
from collections.abc import Iterator, Sequence
from typing import TypeVar

from pytest_cudabatch.errors import EvidenceError
from pytest_cudabatch.interposer.evidence import Evidence
from pytest_cudabatch.interposer.functions import FUNCTIONS
from pytest_cudabatch.interposer.injections import AppliedInjection, applied_injection
from pytest_cudabatch.interposer.layout import (
    CALL_ARGUMENTS_RIGHT,
    CALL_ARGUMENTS_WRONG,
    CALL_HAS_STREAM,
    CALL_IN_FLIGHT,
    CALL_INJECTED,
    CALL_RETURNED,
    CAPABILITY_DLSYM,
    CAPABILITY_LAZY,
    CAPABILITY_NOW,
    EVIDENCE_DLSYM_OTHER_ABI,
    EVIDENCE_DLSYM_REFUSED,
    EVIDENCE_NO_OBJECT,
    EVIDENCE_PUBLISHED,
    EVIDENCE_RULES,
    EVIDENCE_UNSEEN,
    EVIDENCE_VIA_PLT,
    EVIDENCE_VIA_RELOCATION,
    INJECTED_END,
    EvidenceBinding,
    EvidenceCall,
    EvidenceFault,
    EvidenceLookup,
    EvidenceObject,
    EvidenceSlot,
    EvidenceVersionQuery,
)
from pytest_cudabatch.interposer.observations import (
    Binding,
    Call,
    Capabilities,
    Fault,
    Location,
    Lookup,
    MappedObject,
    Owner,
    Site,
    VersionQuery,
    owner_of,
    parameters_taken,
)

__all__ = ["decode"]

_Row = TypeVar("_Row", bound=ctypes.Structure)
_Table = TypeVar("_Table", EvidenceBinding, EvidenceLookup, EvidenceVersionQuery)

_SYMBOL_LOOKUPS = ("dlsym", "dlvsym")

_VIA = {EVIDENCE_VIA_PLT: "plt", EVIDENCE_VIA_RELOCATION: "relocation", EVIDENCE_UNSEEN: "unseen"}

_ARGUMENTS = {CALL_ARGUMENTS_RIGHT: True, CALL_ARGUMENTS_WRONG: False}

_UNKNOWN = MappedObject(file="[unknown]", soname="", base=0)
"""Stands for an address outside of all mapped files, or past what the table of objects holds."""


def decode(slot: EvidenceSlot) -> Evidence:
    """Read a whole slot (a copy of it, which nobody writes to)."""
    objects = _Objects(slot)
    return Evidence(
        recorded=slot.attached != 0,
        lost=slot.lost,
        objects=tuple(objects.known.values()),
        bindings=tuple(_binding(entry, objects) for entry in _rows(slot.tables.bindings)),
        lookups=tuple(_lookup(entry, objects) for entry in _rows(slot.tables.lookups)),
        calls=tuple(sorted(_calls(slot, objects), key=lambda call: call.sequence)),
        sites=_sites(slot, objects),
        version_queries=tuple(_version_query(entry, objects) for entry in _rows(slot.tables.version_queries)),
        injections=_injections(slot),
        layers=tuple(sorted(objects[index].file for index in objects.layers)),
        capabilities=Capabilities(
            lazy=_capability(slot, CAPABILITY_LAZY),
            now=_capability(slot, CAPABILITY_NOW),
            dlsym=_capability(slot, CAPABILITY_DLSYM),
        ),
        fault=_fault(slot.fault, objects),
    )


def _capability(slot: EvidenceSlot, kind: int) -> bool | None:
    return True if slot.reported & kind else False if slot.missed & kind else None


def _published(
    row: EvidenceObject | EvidenceBinding | EvidenceLookup | EvidenceVersionQuery | EvidenceFault,
) -> bool:
    return bool(row.entry.state == EVIDENCE_PUBLISHED)


def _used(table: ctypes.Array[_Row]) -> Sequence[_Row]:
    """Return the rows of ``table`` without the empty ones at its end, which are most of them, unread."""
    size = len(bytes(table).rstrip(b"\0"))
    return table[: -(-size // ctypes.sizeof(table._type_))]


def _rows(table: ctypes.Array[_Table]) -> Iterator[_Table]:
    """Yield the published rows of ``table``."""
    return (row for row in _used(table) if _published(row))


class _Objects:
    """The slot's table of objects, by index."""

    def __init__(self, slot: EvidenceSlot) -> None:
        self.known = {
            index: MappedObject(_text(row.path), _text(row.soname), row.base)
            for index, row in enumerate(_used(slot.tables.objects))
            if _published(row)
        }
        self.layers = {index for index in _called(slot) if owner_of(self[index]) is Owner.SHIM}

    def __getitem__(self, index: int) -> MappedObject:
        return self.known.get(index, _UNKNOWN)

    def location(self, index: int, offset: int, symbol: str | None = None) -> Location:
        return Location(self[index].file, offset, symbol)

    def is_under_test(self, index: int) -> bool:
        """Whether calls from the object are an implementation's own: it is no runtime, driver or shim."""
        return index not in self.layers and owner_of(self[index]) is Owner.SHIM


def _called(slot: EvidenceSlot) -> Iterator[int]:
    """Indexes of the objects whose functions are called by others, or whose dlsym is bound by them."""
    for site in _used(slot.sites):
        caller, callee = site.key >> 32 & 0xFFFF, site.key >> 16 & 0xFFFF
        if site.key and caller != callee:
            yield callee
    for binding in _rows(slot.tables.bindings):
        if _function(binding.function) in _SYMBOL_LOOKUPS:
            yield binding.callee


def _text(value: bytes) -> str:
    return value.decode("utf-8", "surrogateescape")


def _function(number: int) -> str:
    if number >= len(FUNCTIONS):
        raise EvidenceError(f"the evidence is damaged: it names a function {number} of {len(FUNCTIONS)}")
    return FUNCTIONS[number]


def _binding(row: EvidenceBinding, objects: _Objects) -> Binding:
    function = _function(row.function)
    return Binding(
        function=function,
        caller=objects[row.caller].file,
        callee=objects.location(row.callee, row.callee_offset, function),
        via=_VIA.get(row.via, "dlsym"),
        injected=row.via in {EVIDENCE_DLSYM_REFUSED, EVIDENCE_DLSYM_OTHER_ABI},
    )


def _lookup(row: EvidenceLookup, objects: _Objects) -> Lookup:
    found = objects.location(row.found, row.found_offset, _function(row.target)) if row.found_offset else None
    return Lookup(
        function=_function(row.function),
        name=_text(row.name),
        version=row.version,
        flags=row.flags,
        code=None if row.injected == INJECTED_END else row.code,
        caller=objects.location(row.caller, row.caller_offset),
        found=found,
        injected=bool(row.injected),
    )


def _version_query(row: EvidenceVersionQuery, objects: _Objects) -> VersionQuery:
    injected = bool(row.injected)
    return VersionQuery(
        function=_function(row.function),
        caller=objects.location(row.caller, row.caller_offset),
        owner_file=objects[row.callee].file,
        code=None if row.injected == INJECTED_END else row.code,
        version=row.version if row.code == 0 and not injected else None,
        under_test=objects.is_under_test(row.caller),
        injected=injected,
    )


_SENT_BY_KERNEL = 0x80
"""si_code SI_KERNEL: a fault without an address, such as a non-canonical one on x86-64."""


def _fault(row: EvidenceFault, objects: _Objects) -> Fault | None:
    if not _published(row):
        return None
    if row.signal not in set(signal.Signals):
        raise EvidenceError(f"the evidence is damaged: it has a fault by a signal {row.signal}")
    number = signal.Signals(row.signal)
    concerns_data = number in {signal.SIGSEGV, signal.SIGBUS} and 0 < row.code < _SENT_BY_KERNEL
    return Fault(
        signal=number.name,
        address=row.address if concerns_data else None,
        place=objects.location(row.object, row.offset) if row.object != EVIDENCE_NO_OBJECT else None,
        thread=row.thread,
    )


def _injections(slot: EvidenceSlot) -> tuple[AppliedInjection, ...]:
    count = min(slot.injections.count, EVIDENCE_RULES)
    return tuple(applied_injection(rule) for rule in slot.injections.rules[:count])


def _calls(slot: EvidenceSlot, objects: _Objects) -> Iterator[Call]:
    for journal in (slot.batch, slot.per_copy):
        for rows in (journal.first, journal.last):
            for row in _used(rows):
                if row.outcome >> 32 in {CALL_IN_FLIGHT, CALL_RETURNED}:
                    yield _call(row, objects)


def _call(row: EvidenceCall, objects: _Objects) -> Call:
    function = _function(row.function)
    code = row.outcome & 0xFFFFFFFF
    return Call(
        sequence=row.sequence,
        function=function,
        caller=objects.location(row.caller, row.caller_offset),
        callee=objects.location(row.callee, row.callee_offset, function),
        given=row.given or None,
        taken=parameters_taken(function, objects[row.callee]),
        stream=row.stream if row.flags & CALL_HAS_STREAM else None,
        count=row.count,
        returned=code if row.outcome >> 32 == CALL_RETURNED else None,
        owner=owner_of(objects[row.callee]),
        under_test=objects.is_under_test(row.caller),
        thread=row.thread,
        injected=bool(row.flags & CALL_INJECTED),
        arguments_right=_ARGUMENTS.get(row.flags & (CALL_ARGUMENTS_RIGHT | CALL_ARGUMENTS_WRONG)),
    )


def _sites(slot: EvidenceSlot, objects: _Objects) -> tuple[Site, ...]:
    sites = []
    for row in _used(slot.sites):
        if not row.key:
            continue
        caller, callee = row.key >> 32 & 0xFFFF, row.key >> 16 & 0xFFFF
        sites.append(
            Site(
                function=_function(row.key >> 48),
                caller=objects[caller].file,
                callee=objects[callee].file,
                given=(row.key >> 8 & 0xFF) or None,
                under_test=objects.is_under_test(caller),
                calls=row.calls,
                returned=row.returned,
                errors=row.errors,
                descriptors=row.descriptors,
                largest=row.largest,
                last_error=row.last_error or None,
            )
        )
    return tuple(sorted(sites, key=lambda site: (site.function, site.caller, site.callee, site.given or 0)))
