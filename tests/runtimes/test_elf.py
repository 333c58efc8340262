from __future__ import annotations

import struct
import subprocess
import sys
from pathlib import Path

import pytest
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection
from vendor_wheels import SIMULATED_NOTE, compile_library

from pytest_cudabatch.errors import UsageError
from pytest_cudabatch.runtimes import SharedObject

SOURCE = """
extern int imported(int);
int exported_data = 3;
int exported(int value) { return imported(value); }
static int hidden(void) { return 1; }
__attribute__((visibility("hidden"))) int invisible(void) { return hidden(); }
"""


@pytest.mark.parametrize("style", ["gnu", "sysv", "both"])
def test_soname_and_exports(tmp_path: Path, style: str) -> None:
    options = ("-nostdlib", f"-Wl,--hash-style={style}")
    path = compile_library(tmp_path / "lib.so", SOURCE, *options, soname="libname.so.7")
    library = SharedObject.read(path)
    assert (library.soname, library.exports) == ("libname.so.7", {"exported", "exported_data"})
    assert not library.simulated


def test_a_library_without_soname_and_exports(tmp_path: Path) -> None:
    path = compile_library(
        tmp_path / "lib.so", "static int unused;", "-nostdlib", "-Wno-unused", "-Wl,--build-id=none"
    )
    assert SharedObject.read(path) == SharedObject(None, frozenset(), False, None)


def test_the_build_id(tmp_path: Path) -> None:
    path = compile_library(tmp_path / "lib.so", SIMULATED_NOTE, "-nostdlib", "-Wl,--build-id=0x0123abcd")
    assert SharedObject.read(path) == SharedObject(None, frozenset(), True, "0123abcd")


def test_the_note_of_simulated_cuda(tmp_path: Path) -> None:
    path = compile_library(tmp_path / "lib.so", SIMULATED_NOTE, "-nostdlib", soname="libcuda.so.1")
    assert SharedObject.read(path).simulated


def test_section_headers_are_not_needed(tmp_path: Path) -> None:
    path = compile_library(tmp_path / "lib.so", SOURCE, "-nostdlib", soname="libname.so.7")
    stripped = bytearray(path.read_bytes())
    stripped[40:48] = bytes(8)  # e_shoff
    stripped[60:64] = bytes(4)  # e_shnum, e_shstrndx
    assert SharedObject.parse(bytes(stripped)) == SharedObject.read(path)


def test_the_same_as_the_sections_of_libc_say() -> None:
    maps = Path("/proc/self/maps").read_text()
    libc = next(line.split()[-1] for line in maps.splitlines() if "libc.so" in line or "/libc-" in line)
    with Path(libc).open("rb") as file:
        elf = ELFFile(file)
        symbols = elf.get_section_by_name(".dynsym")
        dynamic = elf.get_section_by_name(".dynamic")
        assert isinstance(symbols, SymbolTableSection)
        assert isinstance(dynamic, DynamicSection)
        soname = next(tag.soname for tag in dynamic.iter_tags("DT_SONAME"))
        defined = {symbol.name for symbol in symbols.iter_symbols() if symbol["st_shndx"] != "SHN_UNDEF"}
    library = SharedObject.read(Path(libc))
    assert (library.soname, library.exports, library.simulated) == (soname, defined, False)


def test_every_truncation_is_told(tmp_path: Path) -> None:
    path = compile_library(tmp_path / "lib.so", SOURCE, "-nostdlib", soname="libname.so.7")
    content = path.read_bytes()
    for size in range(16, len(content), 16):
        with pytest.raises(ValueError, match="a damaged ELF file"):
            SharedObject.parse(content[:size])


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "not a 64-bit little-endian ELF file"),
        (b"#!/bin/sh\n" * 20, "not a 64-bit little-endian ELF file"),
        (b"\x7fELF\x01\x01" + bytes(80), "not a 64-bit little-endian ELF file"),
        (b"\x7fELF\x02\x01" + bytes(4), "a damaged ELF file (ELFParseError: expected 7, found 1)"),
        (
            b"\x7fELF\x02\x01" + bytes(10) + struct.pack("<H", 1) + bytes(60),
            "an ELF file, but not a shared library",
        ),
    ],
)
def test_what_is_no_library(tmp_path: Path, content: bytes, problem: str) -> None:
    path = tmp_path / "libcudart.so.12"
    path.write_bytes(content)
    with pytest.raises(UsageError) as refusal:
        SharedObject.read(path)
    assert str(refusal.value) == f"{path}: {problem}"


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as refusal:
        SharedObject.read(tmp_path / "none.so")
    assert str(refusal.value) == f"{tmp_path}/none.so: No such file or directory"


def test_reading_does_not_load(tmp_path: Path) -> None:
    source = "#include <stdlib.h>\n__attribute__((constructor)) static void loaded(void) { abort(); }"
    path = compile_library(tmp_path / "lib.so", source, soname="libaborts.so")
    code = (
        "import pathlib, sys; from pytest_cudabatch.runtimes import SharedObject; "
        "print(SharedObject.read(pathlib.Path(sys.argv[1])).soname)"
    )
    output = subprocess.run(
        [sys.executable, "-c", code, str(path)], check=True, capture_output=True, text=True
    )
    assert output.stdout == "libaborts.so\n"
