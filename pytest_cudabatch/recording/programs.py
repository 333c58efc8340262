"""Whether the audit library can run in a program, judged by its file: what glibc's dynamic linker reads."""

from __future__ import annotations

import os
import platform
import stat
import struct
from pathlib import Path

__all__ = ["find_program", "why_not_audited"]

_SCRIPTS_MAX = 5
"""How many interpreters of interpreters the kernel follows (BINPRM_MAX_RECURSION, fs/exec.c)."""

_SHEBANG_BYTES = 256
_SEGMENTS_MAX = 256
_IDENTITY = b"\x7fELF\x02\x01"  # 64-bit, little-endian
_HEADER = struct.Struct("<16xHHIQQQIHHHHHH")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_INTERPRETER = 3  # PT_INTERP
_MACHINES = {"x86_64": 62, "aarch64": 183}
_CAPABILITIES = "security.capability"


def find_program(name: str, directory: str = "", *, searched: bool = True) -> Path | None:
    """Return the file that starting ``name`` runs, as far as this process can tell; None where there is none.

    Without a slash, and ``searched``, the name is looked for in this process's PATH; else it is relative to
    ``directory``.
    """
    if searched and "/" not in name:
        places = [Path(place or ".", name) for place in os.get_exec_path()]
    else:
        places = [Path(directory, name)]
    return next((place for place in places if place.is_file() and os.access(place, os.X_OK)), None)


def why_not_audited(program: Path) -> str | None:
    """Say why the audit library does not run in ``program``; None where nothing of its file speaks against.

    For a script this is about its interpreter, which is the program that the kernel starts.
    """
    file = program
    for _ in range(_SCRIPTS_MAX):
        try:
            privileges = _privileges(file)
            with file.open("rb") as opened:
                start = opened.read(_SHEBANG_BYTES)
                if not start.startswith(b"#!"):
                    return privileges or _elf_fault(start, opened.seek(0, os.SEEK_END), file)
        except OSError as problem:
            return f"{file} cannot be read: {problem.strerror}"
        words = start[2:].partition(b"\n")[0].split(None, 1)
        if not words:
            return None  # "#!" and nothing: the caller runs it by a shell, or not at all
        file = Path(os.fsdecode(words[0]))
    return f"{program} is a script of a script, more than {_SCRIPTS_MAX} deep"


def _privileges(file: Path) -> str | None:
    """Say by what the kernel would set AT_SECURE, under which the dynamic linker ignores LD_AUDIT."""
    status = file.stat()
    if status.st_mode & stat.S_ISUID and status.st_uid != os.geteuid():
        return f"{file} is setuid: the dynamic linker ignores LD_AUDIT"
    if status.st_mode & stat.S_ISGID and status.st_gid != os.getegid():
        return f"{file} is setgid: the dynamic linker ignores LD_AUDIT"
    if os.geteuid() != 0 and _CAPABILITIES in _attributes(file):
        return f"{file} has file capabilities: the dynamic linker ignores LD_AUDIT"
    return None


def _attributes(file: Path) -> list[str]:
    try:
        return os.listxattr(file)
    except OSError:  # a file system without them
        return []


def _elf_fault(start: bytes, size: int, file: Path) -> str | None:
    if start[:4] != _IDENTITY[:4]:
        return f"{file} is no ELF file"
    if not start.startswith(_IDENTITY):
        return f"{file} is not a 64-bit little-endian program"
    try:
        header = _HEADER.unpack_from(start)
    except struct.error:
        return f"{file} is a damaged ELF file"
    machine, segments_at, segment_size, segment_count = header[1], header[4], header[8], header[9]
    if machine != _MACHINES.get(platform.machine()):
        return f"{file} is for another architecture (ELF machine {machine})"
    if segment_size != _SEGMENT.size or segment_count > _SEGMENTS_MAX or segments_at > size:
        return f"{file} is a damaged ELF file"
    return _interpreter_fault(file, segments_at, segment_count)


def _interpreter_fault(file: Path, segments_at: int, count: int) -> str | None:
    """Judge by the dynamic linker that the program names, if it does."""
    with file.open("rb") as opened:
        opened.seek(segments_at)
        table = opened.read(count * _SEGMENT.size)
        for segment in _SEGMENT.iter_unpack(table[: len(table) // _SEGMENT.size * _SEGMENT.size]):
            if segment[0] != _INTERPRETER:
                continue
            opened.seek(segment[2])
            interpreter = os.fsdecode(opened.read(min(segment[5], 4096)).partition(b"\0")[0])
            name = Path(interpreter).name
            if name.startswith("ld-musl"):
                return f"{file} runs on musl ({interpreter}), whose dynamic linker has no audit interface"
            if not name.startswith("ld-linux"):
                return f"{file} has another dynamic linker than glibc's ({interpreter})"
            return None
    if file.name.startswith("ld-linux"):
        return None  # the dynamic linker itself, which audits what it is told to run
    return f"{file} is statically linked"
