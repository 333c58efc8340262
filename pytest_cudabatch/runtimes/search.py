"""Finds the libcudarts of a host, by small steps that each look in one kind of place.

Facts: where the vendor's wheels and toolkits keep libraries; ld.so(8) for LD_LIBRARY_PATH; glibc's
sysdeps/generic/dl-cache.h for the format of /etc/ld.so.cache.
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_cudabatch.errors import InstallationError, UsageError
from pytest_cudabatch.runtimes.cache import fetched_entries, load
from pytest_cudabatch.runtimes.runtime_file import RuntimeFile

__all__ = ["Found", "Places", "cached_libraries", "candidates", "examine"]

_NAME = re.compile(r"libcudart\.so\.\d+(\.\d+)*")
_CACHE_MAGIC = b"glibc-ld.so.cache1.1"
_CACHE_HEADER = struct.Struct("<20sII4xI12x")
"""cache_file_new: magic, number of libraries, bytes of strings, offset of extensions."""
_CACHE_ENTRY = struct.Struct("<iIIIQ")
"""file_entry_new: flags, offset of the name, offset of the path, OS version, hardware capabilities."""
_LARGEST_CACHE = 16 << 20
"""Bytes; real ones have some 100 KB."""


@dataclass(frozen=True)
class Found:
    """A libcudart that a step found: what it is, or the ``problem`` that keeps it from being used.

    ``found_via`` is ``fetched``, ``site-packages``, ``CUDA_HOME``, ``CUDA_PATH``, ``/usr/local``,
    ``ld.so.cache`` or ``LD_LIBRARY_PATH``. Where the search itself came to a fault, that is the last one's
    problem, and ``path`` the file that it was reading (``.`` where it was none).
    """

    path: Path
    found_via: str
    runtime: RuntimeFile | None
    problem: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON data."""
        return {
            "path": str(self.path),
            "found_via": self.found_via,
            "runtime": self.runtime.to_json() if self.runtime else None,
            "problem": self.problem,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Found:
        """Read ``to_json``'s form back. Raises KeyError where something is missing."""
        runtime = RuntimeFile.from_json(data["runtime"]) if data["runtime"] else None
        return cls(Path(data["path"]), data["found_via"], runtime, data["problem"])


@dataclass(frozen=True)
class Places:
    """Where the steps look: an interpreter's module path, an environment, and a root of the file system."""

    module_path: tuple[Path, ...]
    environment: Mapping[str, str]
    root: Path = Path("/")


def candidates(places: Places) -> Iterator[tuple[str, Path | None]]:
    """Yield each library once, by its real path, under the first step that meets it; unread.

    Before its libraries each step is yielded with None, so that one that hangs can be named.
    """
    seen: set[Path] = set()
    for found_via, step in _STEPS:
        yield found_via, None
        for path in step(places):
            real = path.resolve()
            if real not in seen and real.is_file():
                seen.add(real)
                yield found_via, path


def examine(path: Path, found_via: str) -> Found:
    """Read one candidate. Raises nothing: what is wrong with it is its ``problem``."""
    try:
        runtime = load(path.parent) if found_via == "fetched" else RuntimeFile.read(path)
    except (UsageError, InstallationError) as error:
        return Found(path, found_via, None, str(error))
    return Found(path, found_via, runtime)


def _fetched(places: Places) -> Iterator[Path]:
    del places  # the cache of this user is meant, wherever else is looked
    for entry in fetched_entries():
        # A release without its library is damaged, which reading it will say; its record stands for it then.
        yield from list(_libraries([entry])) or [entry / "record.json"]


def _site_packages(places: Places) -> Iterator[Path]:
    """Look where the vendor's wheels put it: nvidia/cuda_runtime/lib, nvidia/cu13/lib."""
    for directory in places.module_path:
        yield from _libraries(sorted(directory.glob("nvidia/*/lib")))


def _named_toolkit(variable: str) -> Callable[[Places], Iterator[Path]]:
    """Return the step that looks into the toolkit that ``variable`` names."""

    def step(places: Places) -> Iterator[Path]:
        if toolkit := places.environment.get(variable):
            yield from _of_toolkit(Path(toolkit))

    return step


def _installed_toolkits(places: Places) -> Iterator[Path]:
    for toolkit in sorted((places.root / "usr/local").glob("cuda-*")):
        yield from _of_toolkit(toolkit)


def _of_toolkit(toolkit: Path) -> Iterator[Path]:
    yield from _libraries([toolkit / "lib64", toolkit / "lib", *sorted(toolkit.glob("targets/*/lib"))])


def _linker_cache(places: Places) -> Iterator[Path]:
    """Read what ldconfig(8) found; a cache that does not read as one has nothing."""
    try:
        with (places.root / "etc/ld.so.cache").open("rb") as file:
            content = file.read(_LARGEST_CACHE)
        yield from (places.root / path.lstrip("/") for path in cached_libraries(content))
    except (OSError, ValueError, struct.error):
        return


def cached_libraries(content: bytes) -> list[str]:
    """Return the paths of the libcudarts in an ld.so.cache. Raises ValueError or struct.error for damage."""
    start = content.index(_CACHE_MAGIC)  # an older cache may lie in front of it
    _, count, _, _ = _CACHE_HEADER.unpack_from(content, start)
    entries = content[start + _CACHE_HEADER.size :][: count * _CACHE_ENTRY.size]

    def text(offset: int) -> str:
        return os.fsdecode(content[start + offset : content.index(b"\0", start + offset)])

    return [
        text(path) for _, name, path, _, _ in _CACHE_ENTRY.iter_unpack(entries) if _NAME.fullmatch(text(name))
    ]


def _library_path(places: Places) -> Iterator[Path]:
    """Look where the dynamic linker would; an empty part is the current directory (ld.so(8))."""
    value = places.environment.get("LD_LIBRARY_PATH", "")
    yield from _libraries(Path(part) for part in re.split("[:;]", value) if value)


def _libraries(directories: Iterable[Path]) -> Iterator[Path]:
    """Yield the libcudarts in each of the directories that are there."""
    for directory in directories:
        yield from (path for path in sorted(directory.glob("libcudart.so.*")) if _NAME.fullmatch(path.name))


_STEPS: tuple[tuple[str, Callable[[Places], Iterator[Path]]], ...] = (
    ("fetched", _fetched),
    ("site-packages", _site_packages),
    ("CUDA_HOME", _named_toolkit("CUDA_HOME")),
    ("CUDA_PATH", _named_toolkit("CUDA_PATH")),
    ("/usr/local", _installed_toolkits),
    ("ld.so.cache", _linker_cache),
    ("LD_LIBRARY_PATH", _library_path),
)
"""In the order of trust: what this project fetched, what Python would load, then the host's."""
