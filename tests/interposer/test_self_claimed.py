"""Processes that take their slots themselves, and the notes of those that take none."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_cudabatch.errors import EvidenceError
from pytest_cudabatch.interposer import EvidenceFile, environment, read_notes

from .programs import PRELUDE, SOURCES, Compiler, Programs

WAYS = {
    "execve": 1,
    "execv": 1,
    "execvp": 1,
    "execvpe": 1,
    "fexecve": 1,
    "execveat": 1,
    "execveat-descriptor": 1,
    "execl": 19,
    "execlp": 2,
    "execle": 2,
    "posix_spawn": 1,
    "posix_spawnp": 1,
    "vfork": 1,
}
"""Ways to start a program, and how many arguments sources/starter.c gives it."""


def program(directory: Path, source: str, *flags: str) -> Path:
    target = directory / Path(source).stem
    command = [
        "cc",
        "-std=gnu11",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-O2",
        str(SOURCES / source),
        "-o",
        str(target),
    ]
    subprocess.run([*command, *flags], check=True)
    return target


@pytest.fixture(scope="module")
def started_programs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    """A program that starts others, a static one, and the same with a dynamic linker."""
    directory, dynamic = tmp_path_factory.mktemp("static"), tmp_path_factory.mktemp("dynamic")
    return (
        program(directory, "starter.c"),
        program(directory, "counts_arguments.c", "-static"),
        program(dynamic, "counts_arguments.c"),
    )


@pytest.fixture
def recorded(tmp_path: Path) -> EvidenceFile:
    return EvidenceFile.create(tmp_path / "evidence", slots=2, self_claimed=True)


def start(recorded: EvidenceFile, *command: str | Path) -> int:
    variables = {**os.environ, **environment(recorded.path)}
    return subprocess.run([*map(str, command)], env=variables, check=False, timeout=60).returncode


@pytest.mark.parametrize("way", WAYS)
def test_program_that_cannot_be_audited_is_noted(
    recorded: EvidenceFile, started_programs: tuple[Path, Path, Path], way: str
) -> None:
    starter, static, _ = started_programs
    assert start(recorded, starter, way, static) == 40 + WAYS[way]
    notes = read_notes(recorded.path)
    [image] = notes.images
    assert (image.program, image.name) == (str(starter), str(starter))
    [unfollowed] = notes.unfollowed
    assert (unfollowed.program, unfollowed.unaudited) == (str(static), False)
    assert (unfollowed.pid == image.pid) == way.startswith(("exec", "fexec"))
    assert recorded.processes() == ()


@pytest.mark.parametrize("way", WAYS)
def test_program_in_which_the_library_follows_is_not_noted_as_lost(
    recorded: EvidenceFile, started_programs: tuple[Path, Path, Path], way: str
) -> None:
    starter, _, dynamic = started_programs
    assert start(recorded, starter, way, dynamic) == 40 + WAYS[way]
    notes = read_notes(recorded.path)
    assert [image.program for image in notes.images] == [str(starter), str(dynamic)]
    assert notes.unfollowed == ()


@pytest.mark.parametrize("way", ["execv", "execvp", "execl", "execlp"])
def test_program_started_without_what_its_starter_has_unset_is_noted(
    recorded: EvidenceFile, started_programs: tuple[Path, Path, Path], tmp_path: Path, way: str
) -> None:
    _, _, dynamic = started_programs
    unsetting = program(tmp_path, "starter.c", '-DUNSET="LD_AUDIT"')
    assert start(recorded, unsetting, way, dynamic) == 40 + WAYS[way]
    [unfollowed] = read_notes(recorded.path).unfollowed
    assert (unfollowed.program, unfollowed.unaudited) == (str(dynamic), True)


@pytest.mark.parametrize("way", WAYS)
def test_start_that_failed_is_no_program(
    recorded: EvidenceFile, started_programs: tuple[Path, Path, Path], way: str
) -> None:
    starter, static, _ = started_programs
    assert start(recorded, starter, way, static.with_name("missing")) == 97
    assert read_notes(recorded.path).unfollowed == ()


COPY = """
runtime = load("TEST_RUNTIME")
caller = load("TEST_CALLER")
stream = new_stream(runtime)

def copy(count):
    assert caller.caller_copy(words(0, 0, 0, count, 0, 0, 1, stream, 0, 0)) == 0

def fork(action):
    child = os.fork()
    if child == 0:
        action()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    return child
"""


def run_script(
    recorded: EvidenceFile, compiler: Compiler, tmp_path: Path, script: str, **settings: str
) -> str:
    runtime = compiler.runtime(13)
    libraries = {
        "TEST_RUNTIME": str(runtime),
        "TEST_CALLER": str(compiler.caller("linked", runtime)),
        **settings,
    }
    variables = {**os.environ, **environment(recorded.path), **libraries}
    command = [sys.executable, "-c", PRELUDE + COPY + script]
    done = subprocess.run(
        command, env=variables, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stderr == ""
    return done.stdout


def test_forked_child_takes_a_slot_with_its_first_call(
    recorded: EvidenceFile, compiler: Compiler, tmp_path: Path
) -> None:
    run_script(recorded, compiler, tmp_path, "copy(1)\nfork(lambda: copy(2))\nfork(lambda: None)\ncopy(3)\n")
    parent, child = recorded.processes()
    assert [call.count for call in parent.evidence.calls] == [1, 3]
    assert [(call.count, call.given) for call in child.evidence.calls] == [(2, 8)]
    assert (child.parent, child.program, child.name) == (parent.pid, parent.program, sys.executable)
    assert child.evidence.bindings == parent.evidence.bindings != ()
    assert [site.descriptors for site in parent.evidence.sites] == [4]
    assert [site.largest for site in parent.evidence.sites] == [3]
    assert recorded.unserved == 0
    assert len(read_notes(recorded.path).images) == 1  # a fork starts no program


def test_process_without_a_place_is_counted(
    recorded: EvidenceFile, compiler: Compiler, tmp_path: Path
) -> None:
    run_script(recorded, compiler, tmp_path, "copy(1)\nfor _ in range(3): fork(lambda: (copy(2), copy(3)))\n")
    assert [len(process.evidence.calls) for process in recorded.processes()] == [1, 2]
    assert recorded.unserved == 2


def test_program_that_replaces_another_takes_a_slot_of_its_own(
    recorded: EvidenceFile, compiler: Compiler, tmp_path: Path
) -> None:
    script = """
copy(1)
if "TEST_AGAIN" not in os.environ:
    os.environ["TEST_AGAIN"] = "1"
    os.execv(sys.executable, sys.orig_argv)
"""
    run_script(recorded, compiler, tmp_path, script)
    first, second = recorded.processes()
    assert (first.pid, first.program) == (second.pid, second.program)
    assert [len(each.evidence.calls) for each in (first, second)] == [1, 1]


def test_many_threads_that_come_first_at_once_take_one_slot(
    recorded: EvidenceFile, compiler: Compiler, tmp_path: Path
) -> None:
    """And no second one for a moment, which another thread would miss: each child finds one slot free."""
    script = """
together = ctypes.CDLL(os.environ["TEST_TOGETHER"])
def call():
    os._exit(together.call_together(caller.caller_copy, words(0, 0, 0, 1, 0, 0, 1, stream, 0, 0)))
counts = []
for _ in range(60):
    fork(call)
    counts.append(evidence_file.read(1).batch_count)
    evidence_file.clear(1)
print(json.dumps(counts))
"""
    together = compiler.library("libtogether.so", "together.c", "-pthread")
    counts = json.loads(run_script(recorded, compiler, tmp_path, script, TEST_TOGETHER=str(together)))
    assert counts == [8] * 60
    assert recorded.unserved == 0


def test_notes_that_are_none_are_refused(recorded: EvidenceFile) -> None:
    notes = recorded.path.with_name("evidence.processes")
    notes.write_bytes(b"\xff" * 1040)
    with pytest.raises(EvidenceError, match=r"is damaged: it has a note of kind 4294967295$"):
        read_notes(recorded.path)
    notes.unlink()
    with pytest.raises(EvidenceError, match="No such file or directory"):
        read_notes(recorded.path)


def test_without_self_claims_nothing_is_noted(programs: Programs) -> None:
    programs.run("load('TEST_RUNTIME')", {"runtime": programs.compiler.runtime(13)})
    assert not programs.evidence_path.with_name("evidence.processes").exists()


def test_a_trace_ends_at_its_limit_and_says_so(compiler: Compiler, tmp_path: Path) -> None:
    traced = EvidenceFile.create(tmp_path / "evidence", slots=2, self_claimed=True, trace_limit=4096)
    run_script(traced, compiler, tmp_path, "for _ in range(100): copy(0)\n")
    [process] = traced.processes()
    size = process.raw_trace.stat().st_size
    assert 4096 <= size < 4096 + 1024
    assert 0 < process.untraced < 100
    assert process.evidence.batch_count == 100


def test_without_a_trace_there_is_no_file(recorded: EvidenceFile, compiler: Compiler, tmp_path: Path) -> None:
    run_script(recorded, compiler, tmp_path, "copy(0)\n")
    assert [process.raw_trace.exists() for process in recorded.processes()] == [False]
