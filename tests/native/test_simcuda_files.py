"""The simulated libraries as files: their names, marks, versions and exports."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import pytest
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerDefSection, GNUVerSymSection
from elftools.elf.sections import SymbolTableSection

from .processes import driver_path, runtime_path

DRIVERS = ("12.4", "12.8", "13.0")
RUNTIMES = ("12.6", "12.8", "13.0")
FILES = [*map(driver_path, DRIVERS), *map(runtime_path, RUNTIMES)]
EXPORTS = Path(__file__).parents[2] / "pytest_cudabatch/native/simcuda/exports"
"""What the vendor's libraries export, as collected into the sources."""

GLOBAL_INDEX = 1
"""Version index of a symbol without a version node."""


def name_of(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


def dynamic_values(path: Path, tag: str, attribute: str) -> list[str]:
    with path.open("rb") as stream:
        section = ELFFile(stream).get_section_by_name(".dynamic")
        assert isinstance(section, DynamicSection)
        return [getattr(entry, attribute) for entry in section.iter_tags(tag)]


def exports(path: Path) -> dict[str, str | None]:
    """Map each exported function to its version node, None where it has none."""
    with path.open("rb") as stream:
        elf = ELFFile(stream)
        symbols = elf.get_section_by_name(".dynsym")
        numbers = elf.get_section_by_name(".gnu.version")
        definitions = elf.get_section_by_name(".gnu.version_d")
        assert isinstance(symbols, SymbolTableSection)
        nodes: dict[int, str] = {}
        if isinstance(definitions, GNUVerDefSection):
            nodes = {node["vd_ndx"]: next(iter(names)).name for node, names in definitions.iter_versions()}
        found: dict[str, str | None] = {}
        for index, symbol in enumerate(symbols.iter_symbols()):
            if symbol["st_shndx"] == "SHN_UNDEF" or symbol["st_info"]["type"] != "STT_FUNC":
                continue
            number = GLOBAL_INDEX
            if isinstance(numbers, GNUVerSymSection):
                entry = numbers.get_symbol(index)["ndx"]
                number = entry if isinstance(entry, int) else GLOBAL_INDEX
            found[symbol.name] = nodes.get(number)
        return found


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_soname_is_the_real_one(path: Path) -> None:
    assert dynamic_values(path, "DT_SONAME", "soname") == [path.name]


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_note_says_simulated(path: Path) -> None:
    """Read by hand: pyelftools gives types of owners that it does not know other owners' names."""
    with path.open("rb") as stream:
        elf = ELFFile(stream)
        section = elf.get_section_by_name(".note.cudabatch")
        assert section is not None
        assert section["sh_type"] == "SHT_NOTE"
        data = section.data()
    owner_size, descriptor_size, note_type = struct.unpack_from("=III", data)
    descriptor = 12 + (owner_size + 3) // 4 * 4
    assert note_type == 1
    assert data[12 : 12 + owner_size] == b"cudabatch\0"
    assert data[descriptor : descriptor + descriptor_size] == b"simulated"


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_the_note_is_mapped_at_run_time(path: Path) -> None:
    """An audit may know nothing but the program headers."""
    with path.open("rb") as stream:
        elf = ELFFile(stream)
        section = elf.get_section_by_name(".note.cudabatch")
        assert section is not None
        assert any(segment.section_in_segment(section) for segment in elf.iter_segments("PT_NOTE"))


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_needs_nothing_but_the_c_library(path: Path) -> None:
    allowed = {"libc.so.6", "libpthread.so.0", "libdl.so.2", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
    assert set(dynamic_values(path, "DT_NEEDED", "needed")) <= allowed


@pytest.mark.parametrize("variant", RUNTIMES)
def test_runtime_symbols_carry_the_version_node(variant: str) -> None:
    path = runtime_path(variant)
    assert set(exports(path).values()) == {path.name}
    assert all(name.startswith(("cuda", "__cuda")) for name in exports(path))


@pytest.mark.parametrize("variant", DRIVERS)
def test_driver_symbols_have_no_version_node(variant: str) -> None:
    assert set(exports(driver_path(variant)).values()) == {None}
    assert all(name.startswith("cu") and name[2].isupper() for name in exports(driver_path(variant)))


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (driver_path("12.4"), set()),
        (driver_path("12.8"), {"cuMemcpyBatchAsync", "cuMemcpyBatchAsync_ptsz"}),
        (
            driver_path("13.0"),
            {
                "cuMemcpyBatchAsync",
                "cuMemcpyBatchAsync_ptsz",
                "cuMemcpyBatchAsync_v2",
                "cuMemcpyBatchAsync_v2_ptsz",
            },
        ),
        (runtime_path("12.6"), set()),
        (runtime_path("12.8"), {"cudaMemcpyBatchAsync", "cudaMemcpyBatchAsync_ptsz"}),
        (runtime_path("13.0"), {"cudaMemcpyBatchAsync", "cudaMemcpyBatchAsync_ptsz"}),
    ],
    ids=lambda value: name_of(value) if isinstance(value, Path) else "",
)
def test_batch_functions_that_are_exported(path: Path, expected: set[str]) -> None:
    assert {name for name in exports(path) if "MemcpyBatch" in name} == expected


BATCH = {
    "cudaMemcpyBatchAsync",
    "cudaMemcpyBatchAsync_ptsz",
    "cudaMemcpy3DBatchAsync",
    "cudaMemcpy3DBatchAsync_ptsz",
}


def test_a_later_variant_exports_all_of_an_earlier_one() -> None:
    """A real libcuda never loses a function; what its later versions add is not in the earlier ones."""
    drivers = {variant: set(exports(driver_path(variant))) for variant in DRIVERS}
    assert drivers["12.4"] < drivers["12.8"] < drivers["13.0"]
    assert {"cuMemcpyBatchAsync", "cuMemcpy3DBatchAsync"} <= drivers["12.8"] - drivers["12.4"]
    assert {"cuMemcpyBatchAsync_v2", "cuCtxGetDevice_v2"} <= drivers["13.0"] - drivers["12.8"]
    runtimes = {variant: set(exports(runtime_path(variant))) for variant in RUNTIMES}
    assert runtimes["12.8"] - runtimes["12.6"] >= BATCH


@pytest.mark.parametrize(
    ("variant", "listed", "last"),
    [("12.6", "libcudart_12.h", 12070), ("12.8", "libcudart_12.h", 12990), ("13.0", "libcudart_13.h", 13990)],
)
def test_a_runtime_exports_all_that_the_vendors_files_do(variant: str, listed: str, last: int) -> None:
    """The lists were collected from the vendor's libcudarts: nothing is missing, and nothing is beside it."""
    assert set(exports(runtime_path(variant))) == collected(listed, last)


@pytest.mark.parametrize(("variant", "last"), [("12.4", 12070), ("12.8", 12990), ("13.0", 13990)])
def test_a_driver_exports_all_that_the_vendors_header_declares(variant: str, last: int) -> None:
    assert set(exports(driver_path(variant))) >= collected("libcuda.h", last)


def collected(name: str, last: int) -> set[str]:
    """Read one of the committed lists as the preprocessor does for a file that can be set to ``last``."""
    names: set[str] = set()
    taken = True
    for line in (EXPORTS / name).read_text(encoding="utf-8").splitlines():
        if condition := re.fullmatch(r"#if SIM_\w+_LAST >= (\d+)", line):
            taken = last >= int(condition[1])
        elif (entry := re.fullmatch(r"EXPORT\((\w+)\)", line)) and taken:
            names.add(entry[1])
    return names
