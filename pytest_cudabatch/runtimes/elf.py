"""What a shared library says of itself, read by pyelftools without loading it.

Only what the dynamic linker reads is used (program headers and the dynamic segment), so that a library
without section headers is read too.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from elftools.common.exceptions import ELFError
from elftools.construct import ConstructError
from elftools.elf.dynamic import DynamicSegment
from elftools.elf.elffile import ELFFile
from elftools.elf.segments import NoteSegment

from pytest_cudabatch.errors import UsageError

__all__ = ["ELF_DAMAGE", "SharedObject", "defined_symbols", "dynamic_segment"]

_IDENTITY = b"\x7fELF\x02\x01"  # 64-bit, little-endian: x86-64 and aarch64
_SYMBOL = struct.Struct("<IBBHQQ")
"""Elf64_Sym: name, info, other, section, value, size (System V ABI, "Symbol Table")."""
_UNDEFINED = 0  # SHN_UNDEF
_SIMULATED_NOTE = ("cudabatch", b"simulated")

ELF_DAMAGE = (
    ELFError,
    ConstructError,
    struct.error,
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
    ArithmeticError,
    AssertionError,
)
"""What pyelftools raises for a file whose tables do not fit together."""


@dataclass(frozen=True)
class SharedObject:
    """One shared library: ``exports`` are its defined dynamic symbols, without their version nodes.

    ``simulated`` says that it carries the note of this project's simulated CUDA; ``build_id`` is its GNU
    build id in hexadecimal.
    """

    soname: str | None
    exports: frozenset[str]
    simulated: bool
    build_id: str | None

    @classmethod
    def read(cls, path: Path) -> SharedObject:
        """Read the library at ``path``. Raises UsageError where it is none, is damaged or is unreadable."""
        try:
            with path.open("rb") as file:
                return cls._read(file)
        except OSError as error:
            raise UsageError(f"{path}: {error.strerror}") from error
        except ValueError as error:
            raise UsageError(f"{path}: {error}") from error

    @classmethod
    def parse(cls, content: bytes) -> SharedObject:
        """Read the library whose file holds ``content``. Raises ValueError where it is not one."""
        return cls._read(io.BytesIO(content))

    @classmethod
    def _read(cls, file: BinaryIO) -> SharedObject:
        if file.read(len(_IDENTITY)) != _IDENTITY:
            raise ValueError("not a 64-bit little-endian ELF file")
        try:
            elf = ELFFile(file)
            kind = elf["e_type"]
            dynamic = dynamic_segment(elf)
            notes = list(_notes(elf))
            symbols = defined_symbols(elf, dynamic) if dynamic else ()
            exports = frozenset(name for name, _, _ in symbols)
            soname = _soname(dynamic) if dynamic else None
        except ELF_DAMAGE as error:
            raise ValueError(f"a damaged ELF file ({type(error).__name__}: {error})") from error
        if kind != "ET_DYN":
            raise ValueError("an ELF file, but not a shared library")
        return cls(
            soname=soname,
            exports=exports,
            simulated=any((owner, content) == _SIMULATED_NOTE for owner, _, content in notes),
            build_id=next((content.hex() for _, kind, content in notes if kind == "NT_GNU_BUILD_ID"), None),
        )


def dynamic_segment(elf: ELFFile) -> DynamicSegment | None:
    """Return what the dynamic linker reads of a library; None in a file without it."""
    return next((s for s in elf.iter_segments() if isinstance(s, DynamicSegment)), None)


def _soname(dynamic: DynamicSegment) -> str | None:
    for tag in dynamic.iter_tags("DT_SONAME"):
        return str(tag.soname)  # type: ignore[attr-defined]  # set on the tags that carry a string
    return None


def _notes(elf: ELFFile) -> Iterator[tuple[str, object, bytes]]:
    """Yield owner, type (pyelftools names it as if all were GNU's) and content of each note."""
    for segment in elf.iter_segments():
        if isinstance(segment, NoteSegment):
            for note in segment.iter_notes():
                yield note["n_name"], note["n_type"], note["n_descdata"]


def defined_symbols(elf: ELFFile, dynamic: DynamicSegment) -> Iterator[tuple[str, int, int]]:
    """Yield name, address and size of each dynamic symbol that the library defines.

    The table is unpacked here, since pyelftools reads all dynamic tags again for each symbol: 0.2 s for a
    libcudart. Raises one of ELF_DAMAGE where it does not fit together.
    """
    strings = _table(elf, dynamic, "DT_STRTAB", next(dynamic.iter_tags("DT_STRSZ"))["d_val"])
    count = dynamic.num_symbols()
    symbols = _table(elf, dynamic, "DT_SYMTAB", count * _SYMBOL.size)
    for name, _, _, section, address, size in _SYMBOL.iter_unpack(symbols):
        if name and section != _UNDEFINED:
            yield strings[name : strings.index(b"\0", name)].decode(), address, size


def _table(elf: ELFFile, dynamic: DynamicSegment, tag: str, size: int) -> bytes:
    """Return the ``size`` bytes of the table that a dynamic tag points to."""
    _, offset = dynamic.get_table_offset(tag)
    if offset is None:
        raise ValueError(f"no {tag}")
    elf.stream.seek(offset)
    content: bytes = elf.stream.read(size)
    if len(content) != size:
        raise ValueError(f"{tag} is cut short")
    return content
