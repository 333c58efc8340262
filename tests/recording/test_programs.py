"""Which programs the audit library cannot run in, told by their files."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_cudabatch.recording.programs import find_program, why_not_audited


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("compiled") / "program"
    command = ["cc", "-x", "c", "-", "-o", str(target)]
    subprocess.run(command, input="int main(void) { return 0; }", text=True, check=True)
    return target


def changed(compiled: Path, directory: Path, old: bytes, new: bytes, at: int | None = None) -> Path:
    """Return a copy of the program in which ``old`` (at that offset) reads ``new``."""
    content = compiled.read_bytes()
    start = content.index(old) if at is None else at
    assert content[start : start + len(old)] == old
    target = directory / "changed"
    target.write_bytes(content[:start] + new + content[start + len(new) :])
    target.chmod(0o755)
    return target


def test_ordinary_programs(compiled: Path) -> None:
    assert why_not_audited(compiled) is None
    assert why_not_audited(Path(sys.executable)) is None


@pytest.mark.parametrize(
    ("old", "new", "at", "reason"),
    [
        (b"\x02", b"\x01", 4, "is not a 64-bit little-endian program"),
        (b"\x01", b"\x02", 5, "is not a 64-bit little-endian program"),
        (b"\x7f", b"!", 0, "is no ELF file"),
        (b"", b"\xf3\x00", 18, "is for another architecture (ELF machine 243)"),
        (b"", b"\xff" * 7, 32, "is a damaged ELF file"),
        (
            b"/lib64/ld-linux-x86-64.so.2",
            b"/lib/ld-musl-x86_64.so.1\0",
            None,
            "runs on musl (/lib/ld-musl-x86_64.so.1), whose dynamic linker has no audit interface",
        ),
        (
            b"/lib64/ld-linux-x86-64.so.2",
            b"/system/bin/linker64\0",
            None,
            "has another dynamic linker than glibc's (/system/bin/linker64)",
        ),
    ],
)
@pytest.mark.skipif(platform.machine() != "x86_64", reason="the bytes are those of an x86-64 program")
def test_changed_programs(
    compiled: Path, tmp_path: Path, old: bytes, new: bytes, at: int | None, reason: str
) -> None:
    program = changed(compiled, tmp_path, old, new, at)
    assert why_not_audited(program) == f"{program} {reason}"


@pytest.mark.parametrize("length", range(0, 400, 7))
def test_program_cut_short_is_answered(compiled: Path, tmp_path: Path, length: int) -> None:
    program = tmp_path / "cut"
    program.write_bytes(compiled.read_bytes()[:length])
    assert why_not_audited(program) is not None


@pytest.mark.parametrize(("mode", "word"), [(0o4755, "setuid"), (0o2755, "setgid")])
def test_privileged_programs(
    compiled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int, word: str
) -> None:
    program = Path(shutil.copy(compiled, tmp_path))
    program.chmod(mode)
    assert why_not_audited(program) is None  # its owner is who runs it
    monkeypatch.setattr(os, "geteuid", lambda: program.stat().st_uid + 1)
    monkeypatch.setattr(os, "getegid", lambda: program.stat().st_gid + 1)
    assert why_not_audited(program) == f"{program} is {word}: the dynamic linker ignores LD_AUDIT"


def test_file_capabilities(compiled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "listxattr", lambda _: ["security.capability"])
    monkeypatch.setattr(os, "geteuid", lambda: compiled.stat().st_uid + 1)
    reason = f"{compiled} has file capabilities: the dynamic linker ignores LD_AUDIT"
    assert why_not_audited(compiled) == reason


def test_scripts_are_their_interpreters(compiled: Path, tmp_path: Path) -> None:
    static = tmp_path / "static"
    command = ["cc", "-static", "-x", "c", "-", "-o", str(static)]
    subprocess.run(command, input="int main(void) { return 0; }", text=True, check=True)
    outer, inner, loop = tmp_path / "outer", tmp_path / "inner", tmp_path / "loop"
    inner.write_text(f"#! {static} an argument\n")
    outer.write_text(f"#!{inner}\n")
    assert why_not_audited(outer) == f"{static} is statically linked"
    inner.write_text(f"#!{compiled}\n")
    assert why_not_audited(outer) is None
    loop.write_text(f"#!{loop}\n")
    assert why_not_audited(loop) == f"{loop} is a script of a script, more than 5 deep"
    loop.write_text("#!\n")
    assert why_not_audited(loop) is None
    outer.write_text("#!/no/such/interpreter\n")
    assert why_not_audited(outer) == "/no/such/interpreter cannot be read: No such file or directory"


def test_the_dynamic_linker_itself_is_no_static_program() -> None:
    linker = find_program("/lib64/ld-linux-x86-64.so.2")
    if linker is None:
        pytest.skip("no /lib64/ld-linux-x86-64.so.2 here")
    assert why_not_audited(linker) is None


def test_programs_are_found_as_execvp_finds_them(
    compiled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"/nowhere:{compiled.parent}")
    assert find_program("program") == compiled
    assert find_program("program", str(tmp_path), searched=False) is None
    assert find_program("./program", str(compiled.parent)) == compiled
    assert find_program("no-such-program") is None
