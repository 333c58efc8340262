"""Traces: the batches of a program as they were made, without their data, to be made again.

A trace knows memory as regions (an allocation, or a stretch of pageable memory that was copied from or to),
and each descriptor as offsets within two of them. It is made by ``cudabatch record --trace FILE``.

The file: MAGIC, the length of a JSON header as 4 bytes little-endian, the header, and the columns that it
describes, one zlib stream each. Before it is compressed, a column of numbers is divided by their greatest
common divisor and cut into planes, all lowest bytes first. Offsets may be kept as distances from the end of
the descriptor before, which are 0 for what is packed; where pages of a cache recur, as they are.
"""

from __future__ import annotations

import enum
import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pytest_cudabatch.errors import UsageError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["LIMIT", "NO_STREAM", "UNFINISHED", "MemoryKind", "Trace", "TracedBatch"]

SCHEMA = "pytest-cudabatch/trace/1"
MAGIC = b"cudabatch-trace\n"

LIMIT = 1 << 30
"""How many bytes of columns ``Trace.load`` takes at most: about 29 million descriptors."""

UNFINISHED = -1
"""The code of a batch that did not return."""

DEFAULT_STREAM, LEGACY_STREAM, PER_THREAD_STREAM, NO_STREAM = -1, -2, -3, -4
"""Streams that nobody created: handle 0, 0x1 and 0x2; and a batch whose stream is not known."""

_HEADER_MAX = 1 << 20
_ATTRIBUTE_WORDS = 6  # access order, two location hints of type and id, flags
_PLACE_BYTES = 4096


class MemoryKind(enum.IntEnum):
    """The kind of a region.

    PAGEABLE is all that no watched function gave, so also an address that was never mapped. No memory can lie
    at NULL and its neighbours, nor BEYOND what a process can address; offsets count from 0 and from the first
    address used.
    """

    DEVICE = 0
    MANAGED = 1
    PINNED = 2
    REGISTERED = 3
    PAGEABLE = 4
    NULL = 5
    BEYOND = 6


@dataclass(frozen=True)
class TracedBatch:
    """One batch: its place in the trace, and views of its rows. ``stream`` is as in ``batch_streams``."""

    index: int
    function: str
    given: int | None
    stream: int
    code: int
    sizes: NDArray[np.uint64]
    src_regions: NDArray[np.uint32]
    dst_regions: NDArray[np.uint32]
    src_offsets: NDArray[np.uint64]
    dst_offsets: NDArray[np.uint64]
    attributes: NDArray[np.int32]
    """One row of 6 each: srcAccessOrder, source hint type and id, destination hint type and id, flags."""
    attribute_starts: NDArray[np.uint64]

    @property
    def count(self) -> int:
        """The number of descriptors."""
        return len(self.sizes)


@dataclass(frozen=True, eq=False)
class Trace:
    """Batches of one or more processes, in each process in order. Columns are arrays, one element a row.

    ``region_*``: kind (MemoryKind), length in bytes, address modulo 4096 where it was not CUDA that chose it.
    ``batch_*``: index into ``processes`` and ``functions``, parameters given (0: unknown), stream (an ordinal
    within the process by first use, or a special one), descriptors, attributes, code (UNFINISHED: none).
    The rest: one row a descriptor, and one an attribute. ``skipped`` batches could not be traced.
    """

    processes: tuple[str, ...]
    functions: tuple[str, ...]
    skipped: int
    region_kinds: NDArray[np.uint8]
    region_nbytes: NDArray[np.uint64]
    region_places: NDArray[np.uint16]
    batch_processes: NDArray[np.uint16]
    batch_functions: NDArray[np.uint8]
    batch_given: NDArray[np.uint8]
    batch_streams: NDArray[np.int32]
    batch_counts: NDArray[np.uint32]
    batch_attributes: NDArray[np.uint32]
    batch_codes: NDArray[np.int32]
    sizes: NDArray[np.uint64]
    src_regions: NDArray[np.uint32]
    dst_regions: NDArray[np.uint32]
    src_offsets: NDArray[np.uint64]
    dst_offsets: NDArray[np.uint64]
    attributes: NDArray[np.int32]
    attribute_starts: NDArray[np.uint64]

    def __len__(self) -> int:
        return len(self.batch_counts)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Trace):
            return NotImplemented
        return all(
            np.array_equal(getattr(self, field.name), getattr(other, field.name)) for field in fields(self)
        )

    def __repr__(self) -> str:
        return f"<Trace of {len(self)} batches with {len(self.sizes)} descriptors>"

    __hash__ = None  # type: ignore[assignment]  # arrays have none

    def batch(self, index: int) -> TracedBatch:
        """Return a batch. Raises IndexError where there is none of that index."""
        if not 0 <= index < len(self):
            raise IndexError(f"the trace has {len(self)} batches, and none of index {index}")
        return next(self._batches(index, index + 1))

    def __iter__(self) -> Iterator[TracedBatch]:
        return self._batches(0, len(self))

    def _batches(self, start: int, stop: int) -> Iterator[TracedBatch]:
        first = int(self.batch_counts[:start].sum(dtype=np.uint64))
        first_attribute = int(self.batch_attributes[:start].sum(dtype=np.uint64))
        for index in range(start, stop):
            rows = slice(first, first := first + int(self.batch_counts[index]))
            attributes = slice(
                first_attribute, first_attribute := first_attribute + int(self.batch_attributes[index])
            )
            yield TracedBatch(
                index=index,
                function=self.functions[self.batch_functions[index]],
                given=int(self.batch_given[index]) or None,
                stream=int(self.batch_streams[index]),
                code=int(self.batch_codes[index]),
                sizes=self.sizes[rows],
                src_regions=self.src_regions[rows],
                dst_regions=self.dst_regions[rows],
                src_offsets=self.src_offsets[rows],
                dst_offsets=self.dst_offsets[rows],
                attributes=self.attributes[attributes],
                attribute_starts=self.attribute_starts[attributes],
            )

    def of_process(self, process: int) -> Trace:
        """Return one process's batches alone, with all regions. Raises IndexError for no such process."""
        if not 0 <= process < len(self.processes):
            raise IndexError(f"the trace has {len(self.processes)} processes, and none of index {process}")
        chosen = self.batch_processes == process
        rows, attributes = np.repeat(chosen, self.batch_counts), np.repeat(chosen, self.batch_attributes)
        columns: dict[str, Any] = {}
        for name in _COLUMNS:
            array = getattr(self, name)
            if name.startswith("region_"):
                columns[name] = array
            elif name.startswith("batch_"):
                columns[name] = array[chosen]
            else:
                columns[name] = array[attributes if name.startswith("attribute") else rows]
        columns["batch_processes"] = np.zeros(int(chosen.sum()), np.uint16)
        return Trace((self.processes[process],), self.functions, self.skipped, **columns)

    def save(self, path: Path) -> None:
        """Write the trace. Raises UsageError where that is not possible."""
        described, stored = [], []
        for name, column in _COLUMNS.items():
            array = getattr(self, name).reshape(-1)
            coding, (scale, content) = _PLAIN, _pack(array)
            if name in _OFFSETS:
                other = _pack(_distances(array, self.sizes))
                if len(other[1]) < len(content):
                    coding, (scale, content) = _DISTANCES, other
            described.append([name, column.dtype, coding, len(array), scale, len(content)])
            stored.append(content)
        header = {
            "schema": SCHEMA,
            "processes": list(self.processes),
            "functions": list(self.functions),
            "skipped": self.skipped,
            "columns": described,
        }
        text = json.dumps(header).encode()
        try:
            path.write_bytes(b"".join([MAGIC, len(text).to_bytes(4, "little"), text, *stored]))
        except OSError as error:
            raise UsageError(f"cannot write {path}: {error.strerror}") from error

    @classmethod
    def load(cls, path: Path, *, limit: int = LIMIT) -> Trace:
        """Read what ``save`` wrote, in not much more than ``limit`` bytes of memory, whatever the file says.

        Raises UsageError where the file is none, is damaged, or has more than that.
        """
        try:
            with path.open("rb") as file:
                return _Reader(path, limit).read(file.read(limit + _HEADER_MAX))
        except OSError as error:
            raise UsageError(f"cannot read {path}: {error.strerror}") from error


@dataclass(frozen=True)
class _Column:
    """How a column lies in a file; ``width`` elements make a row."""

    dtype: str
    width: int = 1


_COLUMNS = {
    "region_kinds": _Column("|u1"),
    "region_nbytes": _Column("<u8"),
    "region_places": _Column("<u2"),
    "batch_processes": _Column("<u2"),
    "batch_functions": _Column("|u1"),
    "batch_given": _Column("|u1"),
    "batch_streams": _Column("<i4"),
    "batch_counts": _Column("<u4"),
    "batch_attributes": _Column("<u4"),
    "batch_codes": _Column("<i4"),
    "sizes": _Column("<u8"),
    "src_regions": _Column("<u4"),
    "dst_regions": _Column("<u4"),
    "src_offsets": _Column("<u8"),
    "dst_offsets": _Column("<u8"),
    "attributes": _Column("<i4", _ATTRIBUTE_WORDS),
    "attribute_starts": _Column("<u8"),
}
"""In the order in which they are stored; sizes come before the offsets, which need them."""

_OFFSETS = frozenset({"src_offsets", "dst_offsets"})
_PLAIN, _DISTANCES = "plain", "distances"
_COMPRESSION = 4  # of zlib: more makes it hardly smaller


def _distances(offsets: NDArray[np.uint64], sizes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return each offset as its distance from the end of the one before, modulo 2**64."""
    before = np.zeros_like(offsets)
    before[1:] = offsets[:-1] + sizes[:-1]
    return offsets - before


def _offsets(distances: NDArray[np.uint64], sizes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Undo ``_distances``."""
    steps = distances.copy()
    steps[1:] += sizes[:-1]
    return np.cumsum(steps, dtype=np.uint64)


def _pack(values: NDArray[Any]) -> tuple[int, bytes]:
    """Return the divisor of a column, and its compressed planes."""
    signed = values.view(f"<i{values.dtype.itemsize}")
    scale = max(int(np.gcd.reduce(signed)), 1) if len(values) else 1
    scaled = np.ascontiguousarray(signed // signed.dtype.type(scale))
    planes = scaled.view(np.uint8).reshape(len(values), values.dtype.itemsize).T
    return scale, zlib.compress(np.ascontiguousarray(planes).tobytes(), _COMPRESSION)


def _unpack(content: bytes, dtype: np.dtype[Any], count: int, scale: int) -> NDArray[Any]:
    """Undo ``_pack``. Raises ValueError or zlib.error where the content is of another length."""
    size = count * dtype.itemsize
    stream = zlib.decompressobj()
    plain = stream.decompress(content, max(size, 1))
    if len(plain) != size or not stream.eof or stream.unused_data:
        raise ValueError("a column has another length than its header says")
    planes = np.frombuffer(plain, dtype=np.uint8).reshape(dtype.itemsize, count)
    signed = np.ascontiguousarray(planes.T).reshape(-1).view(f"<i{dtype.itemsize}")
    values: NDArray[Any] = (signed * signed.dtype.type(scale)).view(dtype)  # arrays wrap around
    return values


class _Reader:
    """Reads one file's content, of which nothing is believed."""

    def __init__(self, path: Path, limit: int) -> None:
        self._path = path
        self._limit = limit

    def read(self, content: bytes) -> Trace:
        if not content.startswith(MAGIC):
            raise UsageError(f"{self._path} is no trace")
        try:
            return self._read(content)
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError, zlib.error) as problem:
            raise UsageError(f"{self._path} is a damaged trace: {problem}") from problem

    def _read(self, content: bytes) -> Trace:
        start = len(MAGIC) + 4
        length = int.from_bytes(content[len(MAGIC) : start], "little")
        if length > _HEADER_MAX or start + length > len(content):
            raise ValueError("its header is cut short or too long")
        header = json.loads(content[start : start + length])
        if not isinstance(header, dict) or header.get("schema") != SCHEMA:
            found = header.get("schema") if isinstance(header, dict) else None
            raise ValueError(f"its schema is {found!r}, not {SCHEMA!r}")
        described = [_described(row) for row in header["columns"]]
        if [row[0] for row in described] != list(_COLUMNS):
            raise ValueError("its columns are not those of a trace")
        self._check_size(described, len(content) - start - length)
        columns: dict[str, NDArray[Any]] = {}
        at = start + length
        for name, coding, count, scale, stored in described:
            column = _COLUMNS[name]
            array = _unpack(content[at : at + stored], np.dtype(column.dtype), count, scale)
            if coding == _DISTANCES:
                array = _offsets(array, columns["sizes"])
            columns[name] = array.reshape(-1, column.width) if column.width > 1 else array
            columns[name].setflags(write=False)
            at += stored
        trace = Trace(
            _names(header["processes"]), _names(header["functions"]), int(header["skipped"]), **columns
        )
        _check(trace)
        return trace

    def _check_size(self, described: Sequence[tuple[str, str, int, int, int]], available: int) -> None:
        needed = sum(count * np.dtype(_COLUMNS[name].dtype).itemsize for name, _, count, _, _ in described)
        if needed > self._limit:
            raise ValueError(f"it has {needed} bytes of columns, more than the {self._limit} allowed")
        if sum(stored for *_, stored in described) != available:
            raise ValueError("its columns are cut short, or something follows them")
        rows = {name: count for name, _, count, _, _ in described}
        if len({rows[name] for name in ("sizes", "src_regions", "dst_regions", *_OFFSETS)}) > 1:
            raise ValueError("its columns of descriptors differ in length")


def _described(row: Any) -> tuple[str, str, int, int, int]:
    """Return name, coding, count, scale and stored length of a column."""
    name, dtype, coding, count, scale, stored = row
    numbers = (count, scale, stored)
    if not all(type(number) is int and 0 <= number < 2**63 for number in numbers) or scale == 0:
        raise ValueError(f"column {name!r} has impossible numbers")
    if name not in _COLUMNS or _COLUMNS[name].dtype != dtype:
        raise ValueError(f"there is no column {name!r} of {dtype!r}")
    if coding != _PLAIN and not (coding == _DISTANCES and name in _OFFSETS):
        raise ValueError(f"column {name!r} cannot be coded as {coding!r}")
    return name, coding, count, scale, stored


def _names(values: Any) -> tuple[str, ...]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise ValueError("its names are no texts")
    return tuple(values)


def _check(trace: Trace) -> None:
    """Raise ValueError where the columns do not fit together."""
    groups: dict[str, set[int]] = {}
    for name in _COLUMNS:
        prefix = name.partition("_")[0]
        groups.setdefault(prefix if prefix in {"region", "batch"} else "", set()).add(
            len(getattr(trace, name))
        )
    if len(groups["region"]) > 1 or len(groups["batch"]) > 1:
        raise ValueError("its columns of regions or of batches differ in length")
    if int(trace.batch_counts.sum(dtype=np.uint64)) != len(trace.sizes):
        raise ValueError("its batches have other descriptors than there are")
    attributes = int(trace.batch_attributes.sum(dtype=np.uint64))
    if attributes != len(trace.attributes) or attributes != len(trace.attribute_starts):
        raise ValueError("its batches have other attributes than there are")
    limits: list[tuple[NDArray[Any], int]] = [
        (trace.src_regions, len(trace.region_kinds)),
        (trace.dst_regions, len(trace.region_kinds)),
        (trace.batch_processes, len(trace.processes)),
        (trace.batch_functions, len(trace.functions)),
        (trace.region_kinds, len(MemoryKind)),
        (trace.region_places, _PLACE_BYTES),
    ]
    if any(len(indexes) and int(indexes.max()) >= limit for indexes, limit in limits):
        raise ValueError("it names a region, a process or a function that it does not have")
    if len(trace) and int(trace.batch_streams.min()) < NO_STREAM:
        raise ValueError("it names a stream that there cannot be")
