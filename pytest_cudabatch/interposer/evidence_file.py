"""The mapped file through which processes hand over evidence, and the environment that makes them do it."""

from __future__ import annotations

import ctypes
import mmap
import os
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType

from pytest_cudabatch import native
from pytest_cudabatch.errors import EvidenceError, InstallationError, UsageError
from pytest_cudabatch.interposer.decoding import decode
from pytest_cudabatch.interposer.evidence import Evidence
from pytest_cudabatch.interposer.injections import Injection, parse_injections, rule_of
from pytest_cudabatch.interposer.layout import (
    EVIDENCE_ALLOCATIONS,
    EVIDENCE_HEADER_SIZE,
    EVIDENCE_MAGIC,
    EVIDENCE_RULES,
    EVIDENCE_SELF_CLAIM,
    EVIDENCE_SLOTS_MAX,
    EVIDENCE_TRACED,
    EVIDENCE_VERSION,
    EvidenceAllocation,
    EvidenceAllocations,
    EvidenceHeader,
    EvidenceProcess,
    EvidenceRule,
    EvidenceRules,
    EvidenceSlot,
)
from pytest_cudabatch.interposer.processes import ProcessEvidence, notes_path

__all__ = ["EVIDENCE_VARIABLE", "EvidenceFile", "environment"]

EVIDENCE_VARIABLE = "CUDABATCH_EVIDENCE"
"""Tells a process the path of its evidence file."""

_LIBRARY = "libcudabatch_interposer.so"
_STATIC_TLS = "glibc.rtld.optional_static_tls"
_STATIC_TLS_BYTES = 16384
"""With an audit library, glibc leaves 1.7 KB for preloaded libraries' initial-exec TLS: few for jemalloc."""

_SLOT_SIZE = -(-ctypes.sizeof(EvidenceSlot) // mmap.PAGESIZE) * mmap.PAGESIZE
_GENERATIONS = 1 << 16
_WORD = struct.Struct("@Q")  # native, so that it is written by one store
_RULES_OFFSET = int(EvidenceSlot.injections.offset)
_ALLOCATIONS_OFFSET = int(EvidenceSlot.allocations.offset)


class EvidenceFile:
    """An open evidence file. Close it, or use it as a context manager.

    The supervisor creates it and clears slots; a process that is to be recorded claims one, and either of
    them requests injections. All methods raise EvidenceError for a slot that the file does not have.
    """

    def __init__(self, path: Path, mapping: mmap.mmap) -> None:
        """Take over ``mapping``; use ``create`` or ``open``."""
        self.path = path
        self.slots = int(EvidenceHeader.from_buffer_copy(mapping).slot_count)
        """How many slots the file has."""
        self._mapping = mapping

    @classmethod
    def create(
        cls, path: Path, slots: int = 16, *, self_claimed: bool = False, trace_limit: int = 0
    ) -> EvidenceFile:
        """Make a new file with empty slots. Raises EvidenceError where ``path`` exists or is not writable.

        With ``self_claimed`` nobody needs to claim: each process takes a free slot with its first watched
        call, also a forked child, and keeps it. Read them by ``processes``. What processes there were besides
        is in notes beside the file (``read_notes``). ``trace_limit``, in bytes, asks such processes to append
        every batch's descriptors to files of their own (``raw_trace``), each until it is that large.
        """
        if not 1 <= slots <= EVIDENCE_SLOTS_MAX:
            raise EvidenceError(f"an evidence file has 1 to {EVIDENCE_SLOTS_MAX} slots, not {slots}")
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            try:
                os.truncate(descriptor, EVIDENCE_HEADER_SIZE + slots * _SLOT_SIZE)
                mapping = mmap.mmap(descriptor, 0)
            finally:
                os.close(descriptor)
        except OSError as problem:
            raise EvidenceError(f"cannot create the evidence file {path}: {problem.strerror}") from problem
        header = EvidenceHeader(
            magic=EVIDENCE_MAGIC,
            version=EVIDENCE_VERSION,
            header_size=EVIDENCE_HEADER_SIZE,
            slot_count=slots,
            slot_size=_SLOT_SIZE,
            flags=(EVIDENCE_SELF_CLAIM if self_claimed else 0) | (EVIDENCE_TRACED if trace_limit else 0),
            trace_limit=trace_limit,
        )
        if self_claimed:
            notes_path(path).touch(0o600)
        mapping[: ctypes.sizeof(header)] = bytes(header)
        return cls(path, mapping)

    @classmethod
    def open(cls, path: Path) -> EvidenceFile:
        """Open a file that ``create`` made. Raises EvidenceError where it is none or has another layout."""
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
            try:
                size = os.fstat(descriptor).st_size
                if size < EVIDENCE_HEADER_SIZE:
                    raise EvidenceError(f"{path} is no evidence file: it has only {size} bytes")
                mapping = mmap.mmap(descriptor, 0)
            finally:
                os.close(descriptor)
        except OSError as problem:
            raise EvidenceError(f"cannot open the evidence file {path}: {problem.strerror}") from problem
        fault = _layout_fault(EvidenceHeader.from_buffer_copy(mapping), size)
        if fault:
            mapping.close()
            raise EvidenceError(f"{path} {fault}")
        return cls(path, mapping)

    def clear(self, slot: int) -> None:
        """Empty a slot and take it from its process, which records nothing from then on.

        The process should have ended, or be the caller: a call of its other threads may still be writing.
        """
        start = self._start(slot)
        self._set_claim(slot, 0)
        self._mapping[start : start + _SLOT_SIZE] = bytes(_SLOT_SIZE)

    def claim(self, slot: int, pid: int | None = None) -> None:
        """Give a cleared slot to a process (the calling one by default), which gives up any other slot.

        Recording begins with that process's next binding, look-up or watched call; for the calling process
        it has begun when this returns. Bindings made before are in the slot too.
        """
        self._start(slot)
        owner = os.getpid() if pid is None else pid
        for other in range(self.slots):
            if other != slot and self.owner(other) == owner:
                self._set_claim(other, 0)
        self._set_claim(slot, owner)
        if owner == os.getpid():
            _look_up_a_symbol()

    def request(self, slot: int, injections: Iterable[Injection]) -> None:
        """Add rules to a cleared slot, also while its process runs; they hold from its next call on.

        Each rule counts from then on and for this slot alone: a forked child has no rules until it claims a
        slot that has some. One process at a time may add rules. Raises UsageError, and adds none, for a rule
        that parse_injections would not return and where there is no room for all of them.
        """
        start = self._start(slot) + _RULES_OFFSET
        added = b"".join(bytes(rule_of(injection)) for injection in injections)
        count = int(_WORD.unpack_from(self._mapping, start)[0])
        total = count + len(added) // ctypes.sizeof(EvidenceRule)
        if total > EVIDENCE_RULES:
            raise UsageError(f"a process can have {EVIDENCE_RULES} injections, not {total}")
        first = start + int(EvidenceRules.rules.offset) + count * ctypes.sizeof(EvidenceRule)
        self._mapping[first : first + len(added)] = added
        _WORD.pack_into(self._mapping, start, total)

    def declare_allocations(self, slot: int, allocations: Iterable[tuple[int, int]]) -> None:
        """Say which memory, as (address, bytes), the next batch calls of the slot's process are about.

        Where a rule answers such a call, the evidence then says whether its arguments were right. What was
        said before no longer holds. Raises EvidenceError for more than EVIDENCE_ALLOCATIONS.
        """
        start = self._start(slot) + _ALLOCATIONS_OFFSET
        rows = b"".join(bytes(EvidenceAllocation(address, size)) for address, size in allocations)
        count = len(rows) // ctypes.sizeof(EvidenceAllocation)
        if count > EVIDENCE_ALLOCATIONS:
            raise EvidenceError(f"a slot has room for {EVIDENCE_ALLOCATIONS} allocations, not {count}")
        first = start + int(EvidenceAllocations.rows.offset)
        _WORD.pack_into(self._mapping, start, 0)
        self._mapping[first : first + len(rows)] = rows
        _WORD.pack_into(self._mapping, start, count)

    def inject(self, text: str) -> tuple[Injection, ...]:
        """Add the rules that ``text`` spells, for the calling process, and return them.

        Raises UsageError as parse_injections and request do, EvidenceError where the process has no slot.
        """
        injections = parse_injections(text)
        own = [slot for slot in range(self.slots) if self.owner(slot) == os.getpid()]
        if not own:
            raise EvidenceError(f"this process has no slot in {self.path}, so nothing can be injected")
        self.request(own[0], injections)
        return injections

    def owner(self, slot: int) -> int | None:
        """Return the pid of the process that has the slot, or None."""
        self._start(slot)
        return self._claim_word(slot) & 0xFFFFFFFF or None

    def read(self, slot: int) -> Evidence:
        """Return a slot's evidence so far. The process may be running, gone, or killed at any point."""
        return decode(self._slot(slot))

    def _slot(self, slot: int) -> EvidenceSlot:
        start = self._start(slot)
        return EvidenceSlot.from_buffer_copy(self._mapping[start : start + _SLOT_SIZE])

    def processes(self) -> tuple[ProcessEvidence, ...]:
        """Return the evidence so far of each process that took a slot by itself, in the order of slots."""
        claimed = (slot for slot in range(self.slots) if self.owner(slot) is not None)
        return tuple(self._process(slot) for slot in claimed)

    @property
    def unserved(self) -> int:
        """How many processes wanted a slot by themselves when all were taken: nothing is known of them."""
        return int(EvidenceHeader.from_buffer_copy(self._mapping).unserved)

    def _process(self, slot: int) -> ProcessEvidence:
        start = self._start(slot) + int(EvidenceSlot.process.offset)
        process = EvidenceProcess.from_buffer_copy(
            self._mapping[start : start + ctypes.sizeof(EvidenceProcess)]
        )
        return ProcessEvidence(
            pid=self.owner(slot) or 0,
            parent=process.parent,
            program=process.program.decode("utf-8", "surrogateescape"),
            name=process.name.decode("utf-8", "surrogateescape"),
            evidence=self.read(slot),
            raw_trace=self.path.with_name(f"{self.path.name}.trace.{slot}"),
            untraced=self._slot(slot).untraced,
        )

    def close(self) -> None:
        """Unmap the file, which stays. A process that records into it goes on doing so."""
        self._mapping.close()

    def __enter__(self) -> EvidenceFile:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _start(self, slot: int) -> int:
        if not 0 <= slot < self.slots:
            raise EvidenceError(f"{self.path} has the slots 0 to {self.slots - 1}, not {slot}")
        return EVIDENCE_HEADER_SIZE + slot * _SLOT_SIZE

    def _claim_word(self, slot: int) -> int:
        return int(_WORD.unpack_from(self._mapping, _claim_offset(slot))[0])

    def _set_claim(self, slot: int, pid: int) -> None:
        """Write a claim of a new generation (without an owner for pid 0) as one aligned 64-bit word."""
        generation = ((self._claim_word(slot) >> 48) + 1) % _GENERATIONS
        _WORD.pack_into(self._mapping, _claim_offset(slot), pid | slot << 32 | generation << 48)


def _claim_offset(slot: int) -> int:
    return int(EvidenceHeader.claims.offset) + slot * _WORD.size


def _layout_fault(header: EvidenceHeader, size: int) -> str:
    """Say why a file of ``size`` bytes with this header is not an evidence file of ours; "" if it is."""
    if header.magic != EVIDENCE_MAGIC:
        return "is no evidence file"
    found = (header.version, header.header_size, header.slot_size)
    if found != (EVIDENCE_VERSION, EVIDENCE_HEADER_SIZE, _SLOT_SIZE):
        return f"was made by another version of pytest-cudabatch (layout {found})"
    if size != EVIDENCE_HEADER_SIZE + header.slot_count * _SLOT_SIZE:
        return f"has {size} bytes, which does not fit {header.slot_count} slots"
    return ""


def _look_up_a_symbol() -> None:
    """Make the dynamic linker bind something, at which the interposer notices the claim."""
    ctypes.CDLL(None)["getpid"]


def environment(path: Path, base: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the variables that make a new process record into the evidence file at ``path``.

    ``LD_AUDIT`` and ``GLIBC_TUNABLES`` of ``base`` are kept and extended. Raises InstallationError where the
    library is missing, or lies at a path that LD_AUDIT cannot express.
    """
    library = str(native.library(_LIBRARY))
    if ":" in library:
        raise InstallationError(f"LD_AUDIT separates paths by ':', so the library cannot lie at {library}")
    return {
        "LD_AUDIT": _with_library(base.get("LD_AUDIT", ""), library),
        EVIDENCE_VARIABLE: str(path.absolute()),
        "GLIBC_TUNABLES": _with_static_tls(base.get("GLIBC_TUNABLES", "")),
    }


def _with_library(audit: str, library: str) -> str:
    """Put ours first: behind a library without la_symbind64, glibc (2.36) does not tell ours of a dlsym."""
    others = [entry for entry in audit.split(":") if entry not in {"", library}]
    return ":".join([library, *others])


def _with_static_tls(tunables: str) -> str:
    """Ask for room for static TLS, unless the caller asked for as much or more."""
    entries = [entry for entry in tunables.split(":") if entry]
    asked = [entry.partition("=")[2] for entry in entries if entry.partition("=")[0] == _STATIC_TLS]
    if any(size.isdecimal() and int(size) >= _STATIC_TLS_BYTES for size in asked):
        return tunables
    kept = [entry for entry in entries if entry.partition("=")[0] != _STATIC_TLS]
    return ":".join([*kept, f"{_STATIC_TLS}={_STATIC_TLS_BYTES}"])
