"""What a shared library says of itself: its SONAME, its exports and this project's note, unloaded.

Reads what the dynamic linker reads (program headers and the dynamic section), so a library stripped of
its section headers is read too. Layouts: System V ABI, "Object Files" and "Dynamic Linking"; the hash
table that counts the symbols is GNU's (DT_GNU_HASH) or the ABI's own (DT_HASH).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pytest_cudabatch.errors import UsageError

__all__ = ["SharedObject"]

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_DYNAMIC = struct.Struct("<QQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_NOTE = struct.Struct("<III")
_WORD = struct.Struct("<I")

_IDENTITY = b"\x7fELF\x02\x01"  # 64-bit, little-endian: x86-64 and aarch64
_TYPE_SHARED = 3
_SEGMENT_LOAD, _SEGMENT_DYNAMIC, _SEGMENT_NOTE = 1, 2, 4
_TAG_HASH, _TAG_STRINGS, _TAG_SYMBOLS, _TAG_SONAME, _TAG_GNU_HASH = 4, 5, 6, 14, 0x6FFFFEF5
_UNDEFINED = 0

_SIMULATED_NOTE = (b"cudabatch", 1, b"simulated")


@dataclass(frozen=True)
class SharedObject:
    """One shared library: ``exports`` are its defined dynamic symbols, without their version nodes.

    ``simulated`` says that it carries the note of this project's simulated CUDA.
    """

    soname: str | None
    exports: frozenset[str]
    simulated: bool

    @classmethod
    def read(cls, path: Path) -> SharedObject:
        """Read the library at ``path``. Raises UsageError where it is unreadable or no shared library."""
        try:
            return cls.parse(path.read_bytes())
        except OSError as error:
            raise UsageError(f"{path}: {error.strerror}") from error
        except ValueError as error:
            raise UsageError(f"{path}: {error}") from error

    @classmethod
    def parse(cls, content: bytes) -> SharedObject:
        """Read the library whose file holds ``content``. Raises ValueError where it is not one."""
        if content[: len(_IDENTITY)] != _IDENTITY:
            raise ValueError("not a 64-bit little-endian ELF file")
        try:
            image = _Image(content)
            return cls(image.soname(), frozenset(image.exports()), _SIMULATED_NOTE in image.notes())
        except (struct.error, IndexError) as error:
            raise ValueError("a damaged ELF file: a table lies outside of it") from error


@dataclass(frozen=True)
class _Segment:
    """A program header: ``offset`` and ``size`` in the file, ``address`` in memory."""

    kind: int
    offset: int
    address: int
    size: int


class _Image:
    """The tables of one ELF file. Methods raise struct.error or IndexError on a damaged one."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        header = _HEADER.unpack_from(content)
        if header[1] != _TYPE_SHARED:
            raise ValueError("an ELF file, but not a shared library")
        self._segments = [
            _Segment(kind, offset, address, size)
            for kind, _, offset, address, _, size, _, _ in (
                _SEGMENT.unpack_from(content, header[5] + index * header[9]) for index in range(header[10])
            )
        ]
        self._dynamic = dict(self._dynamic_entries())

    def _dynamic_entries(self) -> Iterator[tuple[int, int]]:
        for segment in self._segments:
            if segment.kind == _SEGMENT_DYNAMIC:
                for offset in range(segment.offset, segment.offset + segment.size, _DYNAMIC.size):
                    yield _DYNAMIC.unpack_from(self._content, offset)

    def _offset(self, address: int) -> int:
        """Return where in the file the memory ``address`` comes from."""
        for segment in self._segments:
            if segment.kind == _SEGMENT_LOAD and 0 <= address - segment.address < segment.size:
                return segment.offset + address - segment.address
        raise IndexError(f"no loaded segment holds address {address:#x}")

    def _word(self, offset: int) -> int:
        (value,) = _WORD.unpack_from(self._content, offset)
        return int(value)

    def _string(self, index: int) -> str:
        start = self._offset(self._dynamic.get(_TAG_STRINGS, -1) + index)
        end = self._content.find(b"\0", start)
        if end < 0:
            raise IndexError("a string runs past the end of the file")
        return self._content[start:end].decode(errors="replace")

    def soname(self) -> str | None:
        index = self._dynamic.get(_TAG_SONAME)
        return None if index is None else self._string(index)

    def exports(self) -> Iterator[str]:
        count = self._symbol_count()
        if not count:
            return
        table = self._offset(self._dynamic.get(_TAG_SYMBOLS, -1))
        for index in range(1, count):
            name, _, _, section, _, _ = _SYMBOL.unpack_from(self._content, table + index * _SYMBOL.size)
            if section != _UNDEFINED:
                yield self._string(name)

    def _symbol_count(self) -> int:
        """Return how many dynamic symbols there are, which only the hash tables tell."""
        if _TAG_HASH in self._dynamic:
            return self._word(self._offset(self._dynamic[_TAG_HASH]) + _WORD.size)
        if _TAG_GNU_HASH in self._dynamic:
            return self._gnu_symbol_count(self._offset(self._dynamic[_TAG_GNU_HASH]))
        return 0

    def _gnu_symbol_count(self, table: int) -> int:
        """Follow the chain of the last bucket: its end is the last symbol."""
        buckets, first, filter_words = (self._word(table + index * 4) for index in range(3))
        bucket_table = table + 16 + filter_words * 8
        last = max((self._word(bucket_table + index * 4) for index in range(buckets)), default=0)
        if last < first:
            return first
        chains = bucket_table + buckets * 4
        while not self._word(chains + (last - first) * 4) & 1:  # bit 0 marks the end of a chain
            last += 1
        return last + 1

    def notes(self) -> Iterator[tuple[bytes, int, bytes]]:
        """Yield owner, type and descriptor of each note, without padding and closing zeros."""
        for segment in self._segments:
            if segment.kind == _SEGMENT_NOTE:
                yield from self._notes_of(segment.offset, segment.offset + segment.size)

    def _notes_of(self, offset: int, end: int) -> Iterator[tuple[bytes, int, bytes]]:
        while offset + _NOTE.size <= end:
            owner_size, descriptor_size, kind = _NOTE.unpack_from(self._content, offset)
            owner = offset + _NOTE.size
            descriptor = owner + _padded(owner_size)
            yield (
                self._content[owner : owner + owner_size].rstrip(b"\0"),
                kind,
                self._content[descriptor : descriptor + descriptor_size].rstrip(b"\0"),
            )
            offset = descriptor + _padded(descriptor_size)


def _padded(size: int) -> int:
    return (size + 3) & ~3
