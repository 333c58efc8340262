"""Collects what the vendor's libraries export, into the headers beside this file.

    pip download --no-deps --dest WHEELS nvidia-cuda-runtime==13.5.37 nvidia-cuda-runtime-cu12==12.9.79 ...
    python collect.py WHEELS

A libcudart's names are the dynamic symbols of its file. There is no libcuda in any wheel; its names are those
that cuda.h of the same wheel declares, and cudaTypedefs.h says since which version each can be looked up.
Needs pyelftools, which the plugin depends on.
"""

from __future__ import annotations

import io
import re
import sys
import zipfile
from collections.abc import Iterable
from pathlib import Path

from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

HERE = Path(__file__).parent
RELEASE = re.compile(r"nvidia_cuda_runtime(?:_cu12)?-((\d+)\.(\d+)\.\d+)-")
DECLARED = re.compile(r"\bCUDAAPI\s+(cu[A-Z]\w*)\s*\(")
RENAMED = re.compile(
    r"^\s*#\s*define\s+cu[A-Z]\w*\s+(?:__CUDA_API_(PTSZ|PTDS)\((cu\w+)\)|(cu[A-Z]\w*))\s*$", re.M
)
LOOKED_UP = re.compile(r"\(CUDAAPI \*PFN_(cu[A-Z]\w*?)_v(\d+)(?:_ptsz|_ptds)?\)")


class Release:
    """One wheel of the runtime: its version as an API number, and its files."""

    def __init__(self, path: Path, match: re.Match[str]) -> None:
        self.name = match[1]
        self.version = 1000 * int(match[2]) + 10 * int(match[3])
        self._wheel = zipfile.ZipFile(path)

    def _read(self, tail: str) -> bytes:
        names = [name for name in self._wheel.namelist() if re.search(tail, name)]
        if len(names) != 1:
            raise SystemExit(f"{self.name}: {len(names)} files match {tail}")
        return self._wheel.read(names[0])

    def runtime_exports(self) -> set[str]:
        """Return the functions that its libcudart exports."""
        symbols = ELFFile(io.BytesIO(self._read(r"/libcudart\.so\.\d+$"))).get_section_by_name(".dynsym")
        if not isinstance(symbols, SymbolTableSection):
            raise SystemExit(f"{self.name}: its libcudart has no dynamic symbols")
        return {
            symbol.name
            for symbol in symbols.iter_symbols()
            if symbol["st_shndx"] != "SHN_UNDEF" and symbol["st_info"]["type"] == "STT_FUNC"
        }

    def driver_exports(self) -> set[str]:
        """Return the functions that its cuda.h declares, under every name that it gives them."""
        text = self._read(r"/cuda\.h$").decode()
        names = set(DECLARED.findall(text))
        for twin, twinned, renamed in RENAMED.findall(text):
            names |= {twinned, f"{twinned}_{twin.lower()}"} if twin else {renamed}
        return names

    def lookups(self) -> dict[str, int]:
        """Return since which version each name can be looked up."""
        since: dict[str, int] = {}
        for name, version in LOOKED_UP.findall(self._read(r"/cudaTypedefs\.h$").decode()):
            since[name] = min(int(version), since.get(name, sys.maxsize))
        return since


def grouped(releases: list[Release], names_of: dict[int, set[str]], variable: str) -> list[str]:
    """Return one conditional block for each version that added names."""
    lines: list[str] = []
    seen: set[str] = set()
    for release in releases:
        added = names_of[release.version] - seen
        seen |= added
        if added:
            lines.append(f"#if {variable} >= {release.version}")
            lines += [f"EXPORT({name})" for name in sorted(added)]
            lines.append("#endif")
    return lines


def write(name: str, what: str, releases: Iterable[Release], lines: list[str]) -> None:
    """Write one header."""
    read = ", ".join(release.name for release in releases)
    comment = f"/*\n * {what}\n *\n * Collected by collect.py from the wheels of {read}; do not edit.\n */\n"
    (HERE / name).write_text(comment + "\n".join(lines) + "\n", encoding="utf-8")


def main(directory: Path) -> None:
    """Write the three headers from the wheels in ``directory``."""
    found = [(path, RELEASE.match(path.name)) for path in directory.glob("nvidia_cuda_runtime*.whl")]
    releases = sorted((Release(path, match) for path, match in found if match), key=lambda each: each.version)
    for major in (12, 13):
        mine = [release for release in releases if release.version // 1000 == major]
        exports = {release.version: release.runtime_exports() for release in mine}
        what = f"Every function that libcudart.so.{major} exports, as EXPORT(name), by first version."
        write(f"libcudart_{major}.h", what, mine, grouped(mine, exports, "SIM_RUNTIME_LAST"))
    exports = {release.version: release.driver_exports() for release in releases}
    lines = grouped(releases, exports, "SIM_DRIVER_LAST")
    what = "Every function that cuda.h declares, as EXPORT(name), by the version that added it."
    write("libcuda.h", what, releases, lines)
    looked_up: dict[int, dict[str, int]] = {release.version: release.lookups() for release in releases}
    write_lookups(releases, exports, looked_up)


def write_lookups(
    releases: list[Release], exports: dict[int, set[str]], looked_up: dict[int, dict[str, int]]
) -> None:
    """Write which names can be looked up, since when; only of functions that are exported under that name."""
    lines: list[str] = []
    seen: set[str] = set()
    for release in releases:
        added = {
            name: since
            for name, since in looked_up[release.version].items()
            if name not in seen and name in exports[release.version]
        }
        seen |= added.keys()
        if added:
            lines.append(f"#if SIM_DRIVER_LAST >= {release.version}")
            lines += [f"LOOKUP({name}, {since})" for name, since in sorted(added.items())]
            lines.append("#endif")
    what = "The names that cuGetProcAddress knows, as LOOKUP(name, version that added it)."
    write("libcuda_lookups.h", what, releases, lines)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
