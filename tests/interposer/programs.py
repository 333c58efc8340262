"""Small CUDA libraries and callers, compiled at test time, and processes that run them, recorded or not."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from elftools.elf.elffile import ELFFile

from pytest_cudabatch.interposer import Evidence, EvidenceFile, environment

SOURCES = Path(__file__).parent / "sources"

Settings = Mapping[str, object]

WAYS = {
    "linked": 1,
    "dlsym-default": 2,
    "dlsym-handle": 3,
    "dlvsym": 4,
    "lookup": 5,
    "entry-point": 6,
    "address-taken": 7,
    "computed": 8,
    "old-lookup": 9,
    "entry-point-by-version": 10,
}

NON_CANONICAL = 0xDEAD_0000_0000_0000
"""A word that faults when followed: what a wrong call finds behind its last argument."""

PRELUDE = """
import ctypes, json, os, sys
from ctypes import POINTER, RTLD_GLOBAL, byref, c_int, c_uint64, c_void_p
from pathlib import Path

def say(**facts):
    sys.stdout.write(json.dumps(facts) + "\\n")
    sys.stdout.flush()

def words(*values):
    return (c_uint64 * len(values))(*values)

if "CUDABATCH_EVIDENCE" in os.environ:
    from pytest_cudabatch.interposer import EvidenceFile
    evidence_file = EvidenceFile.open(Path(os.environ["CUDABATCH_EVIDENCE"]))

def claim(slot=0):
    if "CUDABATCH_EVIDENCE" in os.environ:
        evidence_file.claim(slot)

def load(variable):
    return ctypes.CDLL(os.environ[variable], mode=RTLD_GLOBAL)

def new_stream(library, name="cudaStreamCreate"):
    stream = c_void_p()
    assert library[name](byref(stream), 0) == 0
    return stream.value
"""


@dataclass(frozen=True)
class Compiler:
    """Compiles libraries of this directory's sources into one directory, each once."""

    directory: Path
    command: str = "cc"
    _cache: dict[tuple[str, ...], Path] = field(default_factory=dict)

    def library(self, name: str, source: str, *flags: str) -> Path:
        """Return the shared library ``name``, or the program if it has no .so, made of ``sources/source``."""
        key = (name, source, *flags)
        if key not in self._cache:
            target = self.directory / f"{len(self._cache)}" / name
            target.parent.mkdir()
            shared = ("-shared",) if ".so" in name else ()
            command = [self.command, "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O2", "-g", "-fPIC"]
            subprocess.run([*command, *shared, str(SOURCES / source), "-o", str(target), *flags], check=True)
            self._cache[key] = target
        return self._cache[key]

    def runtime(self, major: int) -> Path:
        """Return a libcudart.so.<major> with its SONAME and its symbol version."""
        soname = f"libcudart.so.{major}"
        script = self.directory / f"{soname}.map"
        script.write_text(f"{soname} {{ global: cu*; check_*; local: *; }};\n")
        flags = (f"-DRUNTIME_MAJOR={major}", f"-Wl,-soname,{soname}", f"-Wl,--version-script={script}")
        return self.library(soname, "libcudart.c", *flags)

    def driver(self) -> Path:
        """Return a libcuda.so.1."""
        return self.library("libcuda.so.1", "libcuda.c", "-Wl,-soname,libcuda.so.1")

    def caller(self, way: str, runtime: Path | None = None, *flags: str) -> Path:
        """Return a library that obtains the batch function in one of WAYS."""
        linked = (f"-L{runtime.parent}", f"-l:{runtime.name}") if runtime else ()
        return self.library("libcaller.so", "libcaller.c", f"-DOBTAIN={WAYS[way]}", *linked, *flags)


@dataclass(frozen=True)
class Ended:
    """A process that has ended: its status, what it said, and its evidence in slot 0."""

    status: int
    said: list[dict[str, Any]]
    errors: str
    evidence: Evidence


class Programs:
    """Runs scripts with the compiled libraries, with evidence or without."""

    def __init__(self, compiler: Compiler, directory: Path) -> None:
        self.compiler = compiler
        self.evidence_path = directory / "evidence"
        self.evidence_file = EvidenceFile.create(self.evidence_path, slots=4)

    def variables(self, settings: Settings, *, audited: bool = True) -> dict[str, str]:
        """Return a program's environment: ours, the evidence's if wanted, and each setting as TEST_<NAME>."""
        named = {f"TEST_{name.upper()}": str(value) for name, value in settings.items()}
        return {**os.environ, **(environment(self.evidence_path) if audited else {}), **named}

    def start(
        self, script: str, settings: Settings, *, audited: bool = True, preload: Path | None = None
    ) -> subprocess.Popen[str]:
        """Start a script, which has PRELUDE's names, with pipes for its output."""
        preloaded = {"LD_PRELOAD": str(preload)} if preload else {}
        return subprocess.Popen(
            [sys.executable, "-c", PRELUDE + script],
            env={**self.variables(settings, audited=audited), **preloaded},
            cwd=self.evidence_path.parent,  # -c imports from here first, so not from where the sources lie
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(
        self, script: str, settings: Settings, *, audited: bool = True, preload: Path | None = None
    ) -> Ended:
        """Run a script to its end, with a fresh slot 0."""
        self.evidence_file.clear(0)
        process = self.start(script, settings, audited=audited, preload=preload)
        output, errors = process.communicate(timeout=60)
        said = [json.loads(line) for line in output.splitlines()]
        return Ended(process.returncode, said, errors, self.evidence_file.read(0))


@functools.cache
def symbol_offset(library: Path, symbol: str) -> int:
    """Return a defined symbol's address as the file counts it."""
    with library.open("rb") as file:
        symbols = ELFFile(file).get_section_by_name(".dynsym").iter_symbols()
        return next(
            int(row["st_value"]) for row in symbols if row.name == symbol and row["st_shndx"] != "SHN_UNDEF"
        )
