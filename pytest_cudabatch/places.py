"""Spots in loaded objects, as a maintainer wants them: file, build id, symbol, and source line where known.

Read from the files themselves, in the controller, when a finding is made; nothing of them is executed. What
costs too much, or is damaged, is left out: a place without its line is still a place.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, BinaryIO

from pytest_cudabatch.runtimes import ELF_DAMAGE

if TYPE_CHECKING:
    from elftools.dwarf.compileunit import CompileUnit
    from elftools.dwarf.dwarfinfo import DWARFInfo
    from elftools.elf.elffile import ELFFile

    from pytest_cudabatch.interposer import Location

__all__ = ["Place", "place_of"]

MOST_SYMBOL_BYTES = 64 << 20
"""Of a symbol table: 2.8 million symbols."""
MOST_DEBUG_BYTES = 64 << 20
"""Of all debug sections together, as they lie in the file."""
LINE_SECONDS = 1.0
"""How long the source line of a place is looked for; without an index of addresses every unit is."""

SYMBOL_SIZE, FUNCTION_TYPES = 24, (2, 10)  # Elf64_Sym; STT_FUNC and STT_GNU_IFUNC


@dataclass(frozen=True)
class Place:
    """A spot in a loaded object: the file and its directory, and the offset in bytes as nm counts it.

    The directories above are the host's own and say nothing; reports leave them out. ``symbol`` is the
    function that the spot lies in, ``line`` the source file's base name and line; None where the file does
    not say.
    """

    file: str
    offset: int
    build_id: str | None = None
    symbol: str | None = None
    line: str | None = None

    @property
    def name(self) -> str:
        """The file's base name, the same on every host."""
        return PurePath(self.file).name

    def __str__(self) -> str:
        return f"{self.name}+{self.offset:#x}"

    def describe(self) -> str:
        """Return all that is known of it, on one line."""
        inside = ", ".join(part for part in (self.symbol, self.line) if part)
        return "".join(
            (
                str(self),
                f" ({inside})" if inside else "",
                f", build id {self.build_id}" if self.build_id else "",
            )
        )

    def to_json(self) -> dict[str, Any]:
        """Return the report's form."""
        return dict(vars(self))

    @classmethod
    def from_json(cls, data: Mapping[str, Any] | None) -> Place | None:
        """Read the report's form back, also that of a version without details; None stays None."""
        if data is None:
            return None
        details = {name: data.get(name) for name in ("build_id", "symbol", "line")}
        return cls(str(data["file"]), int(data["offset"]), **details)


def place_of(location: Location, *, returned_to: bool = False) -> Place:
    """Return the place of ``location``, with what its file says of it.

    ``returned_to``: it is where a call returns to, so the call itself lies before it. Raises nothing.
    """
    instruction = location.offset - 1 if returned_to else location.offset
    build_id, symbol, line = _details(location.file, instruction)
    return Place(
        "/".join(PurePath(location.file).parts[-2:]),
        location.offset,
        build_id,
        location.symbol or symbol,
        line,
    )


@functools.lru_cache(maxsize=1024)
def _details(file: str, address: int) -> tuple[str | None, str | None, str | None]:
    """Return build id, symbol and line. A run has few places, most of them many times."""
    from elftools.elf.elffile import ELFFile  # noqa: PLC0415 - only where there is a finding

    try:
        with Path(file).open("rb") as stream:
            elf = ELFFile(stream)
            if elf.elfclass != 64 or not elf.little_endian:
                return None, None, None
            return _build_id(elf), _symbol(elf, stream, address), _line(elf, address)
    except (OSError, *ELF_DAMAGE):
        return None, None, None


def _build_id(elf: ELFFile) -> str | None:
    for segment in elf.iter_segments("PT_NOTE"):
        notes: Any = segment
        for note in notes.iter_notes():
            if note["n_type"] == "NT_GNU_BUILD_ID":
                return str(note["n_desc"])
    return None


def _symbol(elf: ELFFile, stream: BinaryIO, address: int) -> str | None:
    """Return the function that ``address`` lies in: of all functions, else of the exported ones."""
    for name in (".symtab", ".dynsym"):
        section = elf.get_section_by_name(name)
        if section is None or not 0 < section["sh_size"] <= MOST_SYMBOL_BYTES:
            continue
        stream.seek(section["sh_offset"])
        offset = _name_of_function(stream.read(section["sh_size"]), address)
        if offset is not None:
            strings: Any = elf.get_section(section["sh_link"])
            return str(strings.get_string(offset))
    return None


def _name_of_function(table: bytes, address: int) -> int | None:
    """Return where the name is of the function around ``address``; a million symbols take 20 ms."""
    import numpy as np  # noqa: PLC0415 - only where there is a finding

    symbol = np.dtype(
        [
            ("name", "<u4"),
            ("info", "u1"),
            ("other", "u1"),
            ("section", "<u2"),
            ("value", "<u8"),
            ("size", "<u8"),
        ]
    )
    symbols = np.frombuffer(table[: len(table) // SYMBOL_SIZE * SYMBOL_SIZE], dtype=symbol)
    around = np.isin(symbols["info"] & 0xF, FUNCTION_TYPES) & (symbols["section"] != 0)
    around &= symbols["value"] <= address
    # Both sides are unsigned and the first is not greater: the difference is the offset into the function.
    around &= np.uint64(address) - symbols["value"] < symbols["size"]
    found = np.flatnonzero(around)
    return int(symbols["name"][found[0]]) if len(found) else None


def _line(elf: ELFFile, address: int) -> str | None:
    sections = [
        section for section in elf.iter_sections() if section.name.startswith((".debug_", ".zdebug_"))
    ]
    total = sum(section["sh_size"] for section in sections)
    if not total or total > MOST_DEBUG_BYTES:
        return None
    dwarf = elf.get_dwarf_info(follow_links=False)
    ends = time.monotonic() + LINE_SECONDS
    for unit in _units(dwarf, address):
        if time.monotonic() > ends:
            return None
        if (line := _line_in(dwarf, unit, address)) is not None:
            return line
    return None


def _units(dwarf: DWARFInfo, address: int) -> Iterator[CompileUnit]:
    """Yield the compilation unit of ``address`` where an index says which; else all of them."""
    ranges = dwarf.get_aranges()
    offset = None if ranges is None else ranges.cu_offset_at_addr(address)
    if offset is not None:
        yield dwarf.get_CU_at(offset)
    else:
        yield from dwarf.iter_CUs()


def _line_in(dwarf: DWARFInfo, unit: CompileUnit, address: int) -> str | None:
    program = dwarf.line_program_for_CU(unit)
    if program is None:
        return None
    before = None
    for entry in program.get_entries():
        state = entry.state
        if state is None:
            continue
        if before is not None and before.address <= address < state.address:
            first = 0 if program["version"] >= 5 else 1
            files = program["file_entry"]
            name = files[before.file - first].name if 0 <= before.file - first < len(files) else b"?"
            return f"{PurePath(name.decode('utf-8', 'replace')).name}:{before.line}"
        before = None if state.end_sequence else state
    return None
