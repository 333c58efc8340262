"""Raw traces, as the audit library appends them, made into a Trace: addresses become offsets in regions."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from pytest_cudabatch.copies.traces import NO_STREAM, UNFINISHED, MemoryKind, Trace
from pytest_cudabatch.interposer import ProcessEvidence
from pytest_cudabatch.interposer.functions import FUNCTIONS
from pytest_cudabatch.interposer.layout import (
    CALL_HAS_STREAM,
    TRACE_BATCH,
    TRACE_CUT,
    TRACE_FREED,
    TRACE_MAGIC,
    TRACE_RETURNED,
    TRACE_SKIPPED,
    TRACE_STREAM_GONE,
    TRACE_TAKEN,
    TraceRecord,
)
from pytest_cudabatch.recording.regions import Ends, Regions

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["read_traces"]

_HEAD = ctypes.sizeof(TraceRecord)
_WORD = 8
_ATTRIBUTE_BYTES = 24
_LAST_SPECIAL_STREAM = 2
_BATCH_COLUMNS = ("processes", "functions", "given", "streams", "counts", "attributes", "codes")


def read_traces(processes: Sequence[ProcessEvidence]) -> Trace:
    """Return the batches of all processes that have some, those of the first process first."""
    traced = [_Process(process) for process in processes]
    traced = [process for process in traced if process.rows]
    regions, first = [], 0
    for number, process in enumerate(traced):
        process.finish(number, first)
        regions += process.regions.described()
        first = len(regions)
    rows = [row for process in traced for row in process.rows.values()]
    used = sorted({row.function for row in rows})
    numbers = {function: number for number, function in enumerate(used)}
    for row in rows:
        row.function = numbers[row.function]
    batch = np.array([row.values() for row in rows], np.int64).reshape(len(rows), len(_BATCH_COLUMNS))
    columns = dict(zip(_BATCH_COLUMNS, batch.T, strict=True))
    return Trace(
        processes=tuple(process.program for process in traced),
        functions=tuple(FUNCTIONS[function] for function in used),
        skipped=sum(process.untraced for process in processes) + sum(each.skipped for each in traced),
        region_kinds=np.array([region[0] for region in regions], np.uint8),
        region_nbytes=np.array([region[1] for region in regions], np.uint64),
        region_places=np.array([region[2] for region in regions], np.uint16),
        batch_processes=columns["processes"].astype(np.uint16),
        batch_functions=columns["functions"].astype(np.uint8),
        batch_given=columns["given"].astype(np.uint8),
        batch_streams=columns["streams"].astype(np.int32),
        batch_counts=columns["counts"].astype(np.uint32),
        batch_attributes=columns["attributes"].astype(np.uint32),
        batch_codes=columns["codes"].astype(np.int32),
        sizes=_joined([process.sizes for process in traced], np.uint64),
        src_regions=_joined([process.sources.regions for process in traced], np.uint32),
        dst_regions=_joined([process.destinations.regions for process in traced], np.uint32),
        src_offsets=_joined([process.sources.offsets for process in traced], np.uint64),
        dst_offsets=_joined([process.destinations.offsets for process in traced], np.uint64),
        attributes=_joined([process.attributes for process in traced], np.int32).reshape(-1, 6),
        attribute_starts=_joined([process.attribute_starts for process in traced], np.uint64),
    )


def _joined(arrays: Sequence[NDArray[Any]], dtype: type[Any]) -> NDArray[Any]:
    return np.concatenate(arrays).astype(dtype) if arrays else np.empty(0, dtype)


@dataclass
class _Row:
    """One batch's columns, in the order of _BATCH_COLUMNS."""

    function: int
    given: int
    stream: int
    count: int
    attributes: int
    code: int = 0
    process: int = 0

    def values(self) -> tuple[int, ...]:
        return (
            self.process,
            self.function,
            self.given,
            self.stream,
            self.count,
            self.attributes,
            self.code,
        )


@dataclass
class _Streams:
    """Ordinals by first use; a handle that is used again after its stream has gone is another stream."""

    ordinals: dict[int, int] = field(default_factory=dict)
    count: int = 0

    def number(self, record: TraceRecord) -> int:
        if not record.flags & CALL_HAS_STREAM:
            return NO_STREAM
        if record.value <= _LAST_SPECIAL_STREAM:
            return -1 - int(record.value)
        if record.value not in self.ordinals:
            self.ordinals[record.value] = self.count
            self.count += 1
        return self.ordinals[record.value]


class _Process:
    """One process's raw trace, read record by record; descriptors are handled in arrays only."""

    def __init__(self, process: ProcessEvidence) -> None:
        self.program = process.program
        self.rows: dict[int, _Row] = {}
        self.skipped = 0
        self.regions = Regions()
        self._streams = _Streams()
        self._unfinished = {call.sequence for call in process.evidence.in_flight}
        self._attributes: list[NDArray[Any]] = []
        self._starts: list[NDArray[Any]] = []
        if process.raw_trace.exists() and process.raw_trace.stat().st_size:
            with process.raw_trace.open("rb") as file:
                self._content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            for start, record in _records(self._content):
                self._take(start, record)

    def finish(self, number: int, first_region: int) -> None:
        """Give regions their numbers, from ``first_region`` on, and free the raw trace."""
        self.sizes, self.sources, self.destinations = self.regions.resolve(first_region)
        self.attributes = _joined(self._attributes, np.int32)
        self.attribute_starts = _joined(self._starts, np.uint64)
        for sequence, row in self.rows.items():
            row.process = number
            if sequence in self._unfinished:
                row.code = UNFINISHED

    def _take(self, start: int, record: TraceRecord) -> None:
        if record.kind == TRACE_BATCH:
            self._take_batch(start + _HEAD, record)
        elif record.kind == TRACE_TAKEN:
            self.regions.taken(record.value, record.count, MemoryKind(record.attributes))
        elif record.kind == TRACE_FREED:
            self.regions.freed(record.value)
        elif record.kind == TRACE_STREAM_GONE:
            self._streams.ordinals.pop(record.value, None)
        elif record.kind == TRACE_RETURNED and record.sequence in self.rows:
            self.rows[record.sequence].code = record.value
        elif record.kind in {TRACE_CUT, TRACE_SKIPPED}:
            self.skipped += 1

    def _take_batch(self, at: int, record: TraceRecord) -> None:
        count, attributes = record.count, record.attributes
        destinations, sources, sizes = (
            np.frombuffer(self._content, "<u8", count, at + part * count * _WORD) for part in range(3)
        )
        at += 3 * count * _WORD
        self._attributes.append(np.frombuffer(self._content, "<i4", attributes * 6, at))
        self._starts.append(
            np.frombuffer(self._content, "<u8", attributes, at + attributes * _ATTRIBUTE_BYTES)
        )
        self.regions.used(Ends(sources, destinations, sizes))
        self.rows[record.sequence] = _Row(
            record.function, record.given, self._streams.number(record), count, attributes
        )


def _records(content: mmap.mmap) -> Iterator[tuple[int, TraceRecord]]:
    """Yield each whole record with its place. The last one may have been cut by the process's end."""
    start = 0
    while start + _HEAD <= len(content):
        record = TraceRecord.from_buffer_copy(content[start : start + _HEAD])
        if record.magic != TRACE_MAGIC:
            return
        size = _HEAD
        if record.kind == TRACE_BATCH:
            size += record.count * 3 * _WORD + record.attributes * (_ATTRIBUTE_BYTES + _WORD)
            cut = _cut(content, start, size, record.sequence)
            if cut is not None:
                start += cut
                continue
            if start + size > len(content):
                return
        yield start, record
        start += size


def _cut(content: mmap.mmap, start: int, size: int, sequence: int) -> int | None:
    """Return how much of a batch's record was written, where what follows says that not all of it was."""
    following = content[start + size : start + size + _WORD]
    if following == TRACE_MAGIC.to_bytes(_WORD, "little"):
        return None
    note = bytes(TraceRecord(magic=TRACE_MAGIC, kind=TRACE_CUT))[:12]
    at = content.find(note, start + _HEAD)
    while at >= 0 and at + _HEAD <= len(content):
        record = TraceRecord.from_buffer_copy(content[at : at + _HEAD])
        if record.sequence == sequence:
            return int(record.value)
        at = content.find(note, at + 1)
    return None
