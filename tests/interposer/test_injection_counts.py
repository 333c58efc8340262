"""How rules count: from when on, beside each other, in threads, in forked children, across processes."""

from __future__ import annotations

import json

from pytest_cudabatch.interposer import AppliedInjection, parse_injections

from .programs import Programs
from .simulated import SIMULATED, run_simulated, simulated_libraries

MID_RUN = """
codes = [batch()]
inject("batch@2=801")
codes += [batch(), batch()]
inject("batch=36; per-copy=700")
codes += [batch(), single(), batch()]
say(codes=codes)
"""


def test_rules_are_added_in_mid_run_and_count_from_then_on(programs: Programs) -> None:
    ended = run_simulated(programs, MID_RUN)
    assert ended.said == [{"codes": [0, 0, 801, 36, 700, 36]}]
    assert ended.evidence.injections == (
        AppliedInjection("batch@2=801", 4, 1),
        AppliedInjection("batch=36", 2, 2),
        AppliedInjection("per-copy=700", 1, 1),
    )


FIRST_WINS = """
inject()
say(codes=[batch() for _ in range(4)])
"""


def test_each_rule_counts_every_call_and_the_first_whose_turn_it_is_answers(programs: Programs) -> None:
    ended = run_simulated(programs, FIRST_WINS, "batch@3=1; batch@2+=2; cudaMemcpyBatchAsync@4=3")
    assert ended.said == [{"codes": [0, 2, 1, 3]}]  # the last one never reaches the driver
    assert ended.evidence.injections == (
        AppliedInjection("batch@3=1", 3, 1),
        AppliedInjection("batch@2+=2", 3, 1),
        AppliedInjection("cudaMemcpyBatchAsync@4=3", 4, 1),
    )


BY_SUPERVISOR = """
say(codes=[batch() for _ in range(2)])
"""


def test_supervisor_requests_before_the_process_claims_its_slot(programs: Programs) -> None:
    programs.evidence_file.clear(0)
    programs.evidence_file.request(0, parse_injections("batch@1=801"))
    process = programs.start(SIMULATED + BY_SUPERVISOR, simulated_libraries(programs))
    output, errors = process.communicate(timeout=60)
    assert (process.returncode, errors, json.loads(output)) == (0, "", {"codes": [801, 0]})
    assert programs.evidence_file.read(0).injections == (AppliedInjection("batch@1=801", 2, 1),)


FORKED = """
runtime = load("TEST_RUNTIME")
stream = c_void_p(new_stream(runtime))
copy = runtime.cudaMemcpyBatchAsync
copy.argtypes = [c_uint64] * 8
def batch():
    return copy(0, 0, 0, 1, 0, 0, 1, stream.value)

claim(0)
evidence_file.inject("batch@3=801; cudaMemcpyBatchAsync@3=802")
codes = [batch()]
child = os.fork()
if child == 0:
    codes = [batch() for _ in range(3)]
    claim(1)
    evidence_file.inject("cudaMemcpyBatchAsync@2=36")
    codes += [batch() for _ in range(3)]
    say(codes=codes)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
codes += [batch() for _ in range(3)]
say(codes=codes)
"""


def test_forked_child_has_rules_and_counts_of_its_own(programs: Programs) -> None:
    runtime = programs.compiler.runtime(13)
    programs.evidence_file.clear(1)
    ended = programs.run(FORKED, {"runtime": runtime})
    assert (ended.status, ended.errors) == (0, "")
    assert ended.said == [{"codes": [0, 0, 0, 0, 36, 0]}, {"codes": [0, 0, 802, 0]}]
    assert ended.evidence.injections == (
        AppliedInjection("batch@3=801", 0, 0),  # there is no driver here
        AppliedInjection("cudaMemcpyBatchAsync@3=802", 4, 1),
    )
    assert programs.evidence_file.read(1).injections == (AppliedInjection("cudaMemcpyBatchAsync@2=36", 3, 1),)


THREADS = """
claim()
load("TEST_RUNTIME")
threads = load("TEST_THREADS")
threads.threads_copy.argtypes, threads.threads_copy.restype = [c_int, ctypes.c_long], ctypes.c_long
evidence_file.inject("cudaMemcpyBatchAsync@30001+=801; per-copy@7=700; per-copy@40001+=1")
say(errors=threads.threads_copy(8, 5000))
"""


def test_threads_are_counted_together_and_none_twice(programs: Programs) -> None:
    runtime = programs.compiler.runtime(13)
    threads = programs.compiler.library("libthreads.so", "threads.c", "-pthread")
    ended = programs.run(THREADS, {"runtime": runtime, "threads": threads})
    assert (ended.said, ended.errors) == ([{"errors": 10_001}], "")
    assert ended.evidence.injections == (
        AppliedInjection("cudaMemcpyBatchAsync@30001+=801", 40_000, 10_000),
        AppliedInjection("per-copy@7=700", 40_000, 1),
        AppliedInjection("per-copy@40001+=1", 40_000, 0),
    )
    assert ended.evidence.injected == 10_001


ALL_KINDS = """
inject()
version, found = c_int(), c_void_p()
assert asker.ask_version(b"cuDriverGetVersion", byref(version)) == 0
assert asker.ask_version(b"cuDriverGetVersion", byref(version)) == 35
assert driver.cuGetProcAddress_v2(b"cuMemcpyBatchAsync", byref(found), 13000, c_uint64(0), None) == 500
assert asker.ask_dlsym(b"cudaMemcpyBatchAsync") is None
say(code=batch())
"""


def test_what_was_injected_crosses_processes(programs: Programs) -> None:
    ended = run_simulated(programs, ALL_KINDS, "driver-version@2=35; lookup=500; batch=801")
    assert ended.said == [{"code": 801}]
    evidence = ended.evidence
    assert evidence.injected == 4
    assert [query.injected for query in evidence.version_queries if query.under_test] == [False, True]
    for rows in (evidence.lookups, evidence.bindings, evidence.calls):
        assert [row.injected for row in rows].count(True) == 1
    assert type(evidence).from_json(json.loads(json.dumps(evidence.to_json()))) == evidence
