"""Functions that are bound by relocations: seen from the first constructor on, else known to be unseen."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_cudabatch.interposer import Binding, CopyPath, EvidenceFile, Location, environment

from .programs import PRELUDE, Compiler, Programs, symbol_offset
from .test_ways_in import BATCH, LINKED, caller_by

POINTERS = [way for way, (via, *_) in LINKED.items() if via == "relocation"]
WITH_THE_CODE = [way for way in POINTERS if "table with the code" in way]
AT_ONCE = [way for way in LINKED if way not in WITH_THE_CODE]


def inert(compiler: Compiler) -> Path:
    return compiler.library("libcudart.so.14", "inert_runtime.c", "-Wl,-soname,libcudart.so.14")


def loading(compiler: Compiler, way: str, runtime: Path) -> Path:
    """Return a caller that calls the function in its constructor already."""
    _, obtains, *flags = LINKED[way]
    return compiler.caller(obtains, runtime, "-DCALL_WHEN_LOADED", *flags)


LOAD = """
claim()
load("TEST_RUNTIME")
caller = load("TEST_CALLER")
say(seen=len(evidence_file.read(0).calls))
caller.caller_copy(words(*[0] * 10))
"""


@pytest.mark.parametrize("way", AT_ONCE)
def test_constructor_of_a_loaded_library_goes_through_the_stub(programs: Programs, way: str) -> None:
    runtime = inert(programs.compiler)
    caller = loading(programs.compiler, way, runtime)
    ended = programs.run(LOAD, {"runtime": runtime, "caller": caller})
    assert (ended.status, ended.errors, ended.said) == (0, "", [{"seen": 1}])
    assert [(call.function, call.caller.file) for call in ended.evidence.calls] == [(BATCH, str(caller))] * 2


@pytest.mark.parametrize("way", WITH_THE_CODE)
def test_pointer_replaced_after_relocation_misses_the_constructor_only(programs: Programs, way: str) -> None:
    """Where the linker cannot be asked, what it fills is replaced at the next binding: caller_copy's."""
    runtime = inert(programs.compiler)
    caller = loading(programs.compiler, way, runtime)
    ended = programs.run(LOAD, {"runtime": runtime, "caller": caller})
    assert (ended.status, ended.errors, ended.said) == (0, "", [{"seen": 0}])
    assert [(call.function, call.caller.file) for call in ended.evidence.calls] == [(BATCH, str(caller))]


PROGRAM = """
#include <stdint.h>
extern int caller_copy(const uint64_t *words);
int main(void)
{
    static const uint64_t nothing[10];
    return caller_copy(nothing);
}
"""


@pytest.mark.parametrize("way", LINKED)
def test_library_that_the_program_is_linked_with(compiler: Compiler, tmp_path: Path, way: str) -> None:
    """Relocated at the start, before any constructor runs; here everything is seen either way."""
    runtime = inert(compiler)
    caller = loading(compiler, way, runtime)
    source, program, path = tmp_path / "main.c", tmp_path / "main", tmp_path / "evidence"
    source.write_text(PROGRAM)
    subprocess.run(["cc", source, caller, runtime, "-o", program], check=True)
    variables = {**os.environ, "LD_LIBRARY_PATH": str(runtime.parent), **environment(path)}
    with EvidenceFile.create(path, self_claimed=True) as evidence_file:
        subprocess.run([program], check=True, env=variables, timeout=60)
        [process] = evidence_file.processes()
    calls = [(call.function, call.caller.file) for call in process.evidence.calls]
    assert calls == [(BATCH, str(caller))] * 2
    via = {row.via for row in process.evidence.bindings if (row.function, row.caller) == (BATCH, str(caller))}
    assert via == {LINKED[way][0]}


@pytest.mark.parametrize("way", ["lazy", "now", *POINTERS])
def test_linker_reports_no_pointer_by_itself(compiler: Compiler, tmp_path: Path, way: str) -> None:
    runtime = inert(compiler)
    caller = caller_by(compiler, way, runtime)
    audit = compiler.library("libreports.so", "reports.c")
    script = "load('TEST_RUNTIME'); load('TEST_CALLER').caller_copy(words(*[0] * 10))"
    ended = subprocess.run(
        [sys.executable, "-c", PRELUDE + script],
        env={
            **os.environ,
            "LD_AUDIT": str(audit),
            "TEST_RUNTIME": str(runtime),
            "TEST_CALLER": str(caller),
        },
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert ended.stderr == ("" if way in POINTERS else BATCH)


COMPUTED = """
claim()
runtime = load("TEST_RUNTIME")
caller = load("TEST_CALLER")
stream = new_stream(runtime)
say(code=caller.caller_copy(words(0, 0, 0, 1, 0, 0, 1, stream, 0, 0)))
"""


def test_what_cannot_be_taken_over_is_known_to_be_unseen(programs: Programs) -> None:
    """An address with an offset is no pointer to the function; the code makes one of it."""
    runtime = programs.compiler.runtime(13)
    caller = programs.compiler.caller("computed", runtime)
    ended = programs.run(COMPUTED, {"runtime": runtime, "caller": caller})
    assert (ended.status, ended.errors, ended.said) == (0, "", [{"code": 0}])
    callee = Location(str(runtime), symbol_offset(runtime, BATCH), BATCH)
    assert ended.evidence.unseen == (Binding(BATCH, str(caller), callee, "unseen"),)
    assert (ended.evidence.calls, ended.evidence.lost) == ((), 0)
    assert ended.evidence.path is CopyPath.UNKNOWN


UNLOADED = """
claim()
load("TEST_RUNTIME")
import _ctypes
for _ in range(300):  # more often than there are places
    caller = ctypes.CDLL(os.environ["TEST_CALLER"])
    caller.caller_copy(words(*[0] * 10))
    _ctypes.dlclose(caller._handle)
"""


@pytest.mark.parametrize("way", ["lazy", "no-plt", "address-taken, table with the code"])
def test_unloaded_libraries_leave_room_for_others(programs: Programs, way: str) -> None:
    runtime = inert(programs.compiler)
    caller = caller_by(programs.compiler, way, runtime)
    ended = programs.run(UNLOADED, {"runtime": runtime, "caller": caller})
    assert (ended.status, ended.errors) == (0, "")
    assert (ended.evidence.batch_count, ended.evidence.lost) == (300, 0)


def test_dynamic_linker_is_tried_in_each_process(programs: Programs) -> None:
    """Bindings while relocating and dlsym are tried at the start; the first lazy one shows itself."""
    evidence = programs.run("claim()", {}).evidence
    assert (evidence.capabilities.now, evidence.capabilities.dlsym) == (True, True)
    assert evidence.capabilities.lazy is not False
    assert evidence.is_complete
