"""Places: symbol, build id and source line out of files that are only read."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from pytest_cudabatch.interposer import Location
from pytest_cudabatch.places import Place, place_of

SOURCE = """\
int outside(int);

__attribute__((noinline)) static int inner(int value)
{
    return outside(value) + 1;
}

int outer(int value)
{
    return inner(value) * 2;
}
"""
BUILD_ID = "0123456789abcdef0123456789abcdef01234567"


def build(directory: Path, *options: str) -> Path:
    source, library = directory / "places.c", directory / "libplaces.so"
    source.write_text(SOURCE)
    linking = ("-shared", "-fPIC", f"-Wl,--build-id=0x{BUILD_ID}")
    subprocess.run(["cc", "-O1", *linking, *options, str(source), "-o", str(library)], check=True)
    return library


def address_of(library: Path, name: str) -> int:
    with library.open("rb") as stream:
        section = ELFFile(stream).get_section_by_name(".symtab")
        assert section is not None
        return next(int(symbol["st_value"]) for symbol in section.iter_symbols() if symbol.name == name)


def return_address(library: Path, name: str) -> int:
    """Return where the only call in ``name`` returns to, as objdump sees it."""
    listing = subprocess.check_output(["objdump", "-d", f"--disassemble={name}", str(library)], text=True)
    lines = [line.split("\t") for line in listing.splitlines() if line.startswith(" ")]
    number = next(index for index, line in enumerate(lines) if line[2].startswith("call"))
    return int(lines[number + 1][0].strip().rstrip(":"), 16)


@pytest.mark.parametrize("debug", ["-g", "-gdwarf-4", "-gdwarf-5", "-g -gz"])
def test_a_call_lies_in_its_line(tmp_path: Path, debug: str) -> None:
    """What a call returns to may be another line's, or another function's: the call lies before it."""
    library = build(tmp_path, *debug.split())
    offset = return_address(library, "inner")
    place = place_of(Location(str(library), offset), returned_to=True)
    assert place == Place(f"{tmp_path.name}/libplaces.so", offset, BUILD_ID, "inner", "places.c:5")


def test_without_an_index_of_addresses_every_unit_is_read(tmp_path: Path) -> None:
    library = build(tmp_path, "-g")
    subprocess.run(["objcopy", "--remove-section=.debug_aranges", str(library)], check=True)
    place = place_of(Location(str(library), address_of(library, "outer")))
    assert (place.symbol, place.line) == ("outer", "places.c:9")


def test_a_stripped_library_has_its_exported_functions(tmp_path: Path) -> None:
    library = build(tmp_path)
    inner, outer = address_of(library, "inner"), address_of(library, "outer")
    subprocess.run(["strip", str(library)], check=True)
    found = [place_of(Location(str(library), offset)) for offset in (inner, outer)]
    assert [(place.symbol, place.line, place.build_id) for place in found] == [
        (None, None, BUILD_ID),
        ("outer", None, BUILD_ID),
    ]


def test_what_was_called_keeps_the_name_that_it_was_called_by() -> None:
    assert place_of(Location("/cuda/libcudart.so.12", 0x50, "cudaMemcpyBatchAsync")) == Place(
        "cuda/libcudart.so.12", 0x50, symbol="cudaMemcpyBatchAsync"
    )


@pytest.mark.parametrize("content", [b"", b"not ELF", b"\x7fELF\x02\x01" + b"\xff" * 500])
def test_a_file_that_cannot_be_read_has_no_details(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "libbroken.so"
    path.write_bytes(content)
    assert place_of(Location(str(path), 0x10)) == Place(f"{tmp_path.name}/libbroken.so", 0x10)


@pytest.mark.parametrize("end", [70, 4096, 9000])
def test_a_file_that_was_cut_short_raises_nothing(tmp_path: Path, end: int) -> None:
    library = build(tmp_path, "-g")
    cut = tmp_path / "libcut.so"
    cut.write_bytes(library.read_bytes()[:end])
    assert place_of(Location(str(cut), 0x10)).offset == 0x10


def test_debug_information_that_is_too_large_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = build(tmp_path, "-g")
    monkeypatch.setattr("pytest_cudabatch.places.MOST_DEBUG_BYTES", 100)
    place = place_of(Location(str(library), address_of(library, "outer")))
    assert (place.symbol, place.line) == ("outer", None)


def test_on_one_line() -> None:
    plain = Place("site/libmine.so", 0x12E4)
    assert (str(plain), plain.describe()) == ("libmine.so+0x12e4", "libmine.so+0x12e4")
    full = Place("site/libmine.so", 0x12E4, "abc123", "copy_pages", "pages.c:43")
    assert full.describe() == "libmine.so+0x12e4 (copy_pages, pages.c:43), build id abc123"
    assert Place.from_json(full.to_json()) == full


def test_a_report_of_a_version_without_details_is_read() -> None:
    assert Place.from_json({"file": "site/libmine.so", "offset": 3}) == Place("site/libmine.so", 3)
