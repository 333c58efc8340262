"""Wrong calls crash, and the evidence says which call it was and why. Evidence outlives its process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_cudabatch.abi import BatchAbi
from pytest_cudabatch.interposer import CopyPath, EvidenceFile, environment

from .programs import NON_CANONICAL, PRELUDE, Compiler, Programs

WRONG_CALL = """
claim()
runtime = load("TEST_RUNTIME")
caller = load("TEST_CALLER")
stream = new_stream(runtime)
say(stream=stream)
litter = int(os.environ["TEST_LITTER"])
if os.environ["TEST_GIVEN"] == "8":
    caller.caller_copy(words(0, 0, 0, 3, 0, 0, 1, stream, litter, litter))
else:
    caller.caller_copy_failing(words(0, 0, 0, 3, 0, 0, 1, 0, stream, litter), byref(c_uint64()))
"""


@pytest.mark.parametrize("way", ["linked", "dlsym-default"])
@pytest.mark.parametrize(("given", "major"), [(8, 12), (9, 13)])
def test_wrong_abi_is_named_with_both_sides_before_the_crash(
    programs: Programs, way: str, given: int, major: int
) -> None:
    runtime = programs.compiler.runtime(major)
    caller = programs.compiler.caller(way, runtime if way == "linked" else None)
    settings = {"runtime": runtime, "caller": caller, "given": str(given), "litter": str(NON_CANONICAL)}
    ended = programs.run(WRONG_CALL, settings)
    assert ended.status == -signal.SIGSEGV
    evidence = ended.evidence
    [call] = evidence.mismatches
    assert (call.given, call.taken) == (given, 9 if major == 12 else 8)
    assert (call.caller.file, call.callee.file) == (str(caller), str(runtime))
    assert (call.stream, call.count, call.returned) == (ended.said[0]["stream"], 3, None)
    assert evidence.last_call == call
    assert evidence.in_flight == (call,)
    assert evidence.abi_called is BatchAbi.of_parameters(given)
    assert evidence.path is CopyPath.NONE
    [site] = evidence.sites
    assert (site.calls, site.returned, site.errors) == (1, 0, 0)


IN_THE_MIDDLE = """
claim()
runtime = load("TEST_RUNTIME")
caller = load("TEST_CALLER")
stream = new_stream(runtime)
say(ready=True)
number = 0
while True:
    number += 1
    caller.caller_copy(words(0, 0, 0, number, 0, 0, 1, stream, 0, 0))
"""


def test_evidence_survives_sigkill_in_the_middle(programs: Programs) -> None:
    libraries = {
        "runtime": programs.compiler.runtime(13),
        "caller": programs.compiler.caller("linked", programs.compiler.runtime(13)),
    }
    with programs.start(IN_THE_MIDDLE, libraries) as process:
        assert process.stdout is not None
        process.stdout.readline()
        while programs.evidence_file.read(0).batch_count < 200:
            assert process.poll() is None
        process.kill()
    evidence = programs.evidence_file.read(0)
    calls = evidence.batch_calls()
    [site] = evidence.sites
    assert site.calls >= 200
    assert site.calls - site.returned in (0, 1)
    assert [call.count for call in calls[:64]] == list(range(1, 65))
    # The ring holds the last 64; the one that was being replaced when the process died may be missing.
    last = [call.count for call in calls[64:]]
    assert len(last) in (63, 64)
    assert last == list(range(calls[-1].sequence - len(last) + 1, calls[-1].sequence + 1))
    assert all(call.returned == 0 for call in calls[:-1])
    assert all((call.given, call.taken) == (8, 8) for call in calls)
    assert evidence.path is CopyPath.BATCH


FORK = """
claim(0)
runtime = load("TEST_RUNTIME")
caller = load("TEST_CALLER")
stream = new_stream(runtime)
assert caller.caller_copy(words(0, 0, 0, 1, 0, 0, 1, stream, 0, 0)) == 0

def fork(action):
    child = os.fork()
    if child == 0:
        action()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0

def copy(count):
    assert caller.caller_copy(words(0, 0, 0, count, 0, 0, 1, stream, 0, 0)) == 0

def with_a_slot():
    copy(10)  # before the claim: nobody's
    claim(1)
    copy(11)

fork(with_a_slot)
fork(lambda: copy(20))
copy(2)
"""


def test_forked_child_records_into_its_own_slot_only(programs: Programs) -> None:
    runtime = programs.compiler.runtime(13)
    caller = programs.compiler.caller("linked", runtime)
    ended = programs.run(FORK, {"runtime": runtime, "caller": caller})
    assert (ended.status, ended.errors) == (0, "")
    child = programs.evidence_file.read(1)
    assert [call.count for call in ended.evidence.calls] == [1, 2]
    assert [(call.count, call.sequence) for call in child.calls] == [(11, 1)]
    assert (child.recorded, child.lost) == (True, 0)
    # What was bound before the fork is known in the child too, under the stream that the parent made.
    assert child.bindings == ended.evidence.bindings
    assert {mapped.file for mapped in child.objects} >= {str(runtime), str(caller)}
    assert child.calls[0].given == 8


FORK_INSIDE = """
claim()
runtime = load("TEST_RUNTIME")
copy = runtime.cudaMemcpyAsync
copy.argtypes = [c_void_p, c_void_p, c_uint64, c_int, c_void_p]
if copy(None, None, 1, 1, None) == 0:
    os._exit(0)
assert os.wait()[1] == 0
"""


def test_child_forked_inside_a_call_does_not_complete_its_parents_record(programs: Programs) -> None:
    runtime = programs.compiler.library("libcudart.so.14", "inert_runtime.c", "-Wl,-soname,libcudart.so.14")
    ended = programs.run(FORK_INSIDE, {"runtime": runtime})
    assert (ended.status, ended.errors) == (0, "")
    assert [call.returned for call in ended.evidence.calls] == [7]
    assert [(site.calls, site.returned, site.errors) for site in ended.evidence.sites] == [(1, 1, 1)]


RECLAIM = """
runtime = load("TEST_RUNTIME")
caller = load("TEST_CALLER")
stream = new_stream(runtime)

def copy(count):
    assert caller.caller_copy(words(0, 0, 0, count, 0, 0, 1, stream, 0, 0)) == 0

claim(1)
copy(1)
claim(2)
copy(2)
evidence_file.clear(2)
copy(3)
claim(2)
copy(4)
"""


def test_slots_follow_claims_within_one_process(programs: Programs) -> None:
    runtime = programs.compiler.runtime(13)
    ended = programs.run(RECLAIM, {"runtime": runtime, "caller": programs.compiler.caller("linked", runtime)})
    assert (ended.status, ended.errors) == (0, "")
    first, second = programs.evidence_file.read(1), programs.evidence_file.read(2)
    assert not ended.evidence.recorded
    assert [call.count for call in first.calls] == [1]
    assert [call.count for call in second.calls] == [4]
    assert second.calls[0].callee.file == str(runtime)
    assert first.bindings == second.bindings != ()


CLAIMED_FROM_OUTSIDE = """
runtime = load("TEST_RUNTIME")
caller = load("TEST_CALLER")
stream = new_stream(runtime)
say(ready=True)
sys.stdin.readline()
assert caller.caller_copy(words(0, 0, 0, 1, 0, 0, 1, stream, 0, 0)) == 0
"""


def test_supervisor_may_claim_for_a_process(compiler: Compiler, tmp_path: Path) -> None:
    runtime = compiler.runtime(13)
    path = tmp_path / "evidence"
    libraries = {"TEST_RUNTIME": str(runtime), "TEST_CALLER": str(compiler.caller("linked", runtime))}
    with EvidenceFile.create(path, slots=2) as evidence_file:
        process = subprocess.Popen(
            [sys.executable, "-c", PRELUDE + CLAIMED_FROM_OUTSIDE],
            env={**os.environ, **environment(path), **libraries},
            cwd=tmp_path,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        process.stdout.readline()
        evidence_file.claim(1, process.pid)
        process.communicate("go\n", timeout=60)
        assert process.returncode == 0
        assert [call.count for call in evidence_file.read(1).calls] == [1]


UNRECORDED = """
runtime = load("TEST_RUNTIME")
caller = load("TEST_CALLER")
stream = new_stream(runtime)
parameters = [1, 2, 3, 4, 5, 6, 7, stream, 9, 10]
runtime.check_expect(words(*parameters[:9]))
runtime.check_answer(36)
code = caller.caller_copy(words(*parameters))
say(code=code, errno=[runtime.check_errno_before(), caller.caller_errno_after()])
maps = Path("/proc/self/maps").read_text()
say(loaded="libcudabatch_interposer" in maps)
"""


def test_process_without_a_slot_records_nothing_and_behaves_the_same(programs: Programs) -> None:
    runtime = programs.compiler.runtime(13)
    libraries = {"runtime": runtime, "caller": programs.compiler.caller("dlsym-default")}
    without = programs.run(UNRECORDED, libraries, audited=False)
    slotless = programs.run(UNRECORDED, libraries)
    assert (without.status, without.errors) == (slotless.status, slotless.errors) == (0, "")
    assert without.said[0] == slotless.said[0] == {"code": 36, "errno": [77, 4711]}
    assert (without.said[1]["loaded"], slotless.said[1]["loaded"]) == (False, True)
    assert not slotless.evidence.recorded
    assert slotless.evidence.path is CopyPath.UNKNOWN


@pytest.mark.parametrize("evidence", [None, "missing", "foreign"])
def test_library_unloads_itself_without_an_evidence_file(
    programs: Programs, tmp_path: Path, evidence: str | None
) -> None:
    (tmp_path / "foreign").write_bytes(bytes(1 << 20))
    runtime = programs.compiler.runtime(13)
    variables = programs.variables({"runtime": runtime, "caller": programs.compiler.caller("dlsym-default")})
    del variables["CUDABATCH_EVIDENCE"]
    script = PRELUDE + UNRECORDED
    if evidence is not None:
        variables["CUDABATCH_EVIDENCE"] = str(tmp_path / evidence)
        script = 'import os; del os.environ["CUDABATCH_EVIDENCE"]\n' + script
    ended = subprocess.run(
        [sys.executable, "-c", script],
        env=variables,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    said = [json.loads(line) for line in ended.stdout.splitlines()]
    assert said == [{"code": 36, "errno": [77, 4711]}, {"loaded": False}]
    assert ended.stderr == ""
