"""Rules at work in real processes: who is answered by a rule, with what, and what is then recorded."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_cudabatch import native
from pytest_cudabatch.interposer import AppliedInjection, CopyPath, Owner, parse_injections

from .programs import Ended, Programs

SIMULATED = """
from pytest_cudabatch.abi import MemcpyAttributes
claim()
driver, runtime = load("TEST_DRIVER"), load("TEST_RUNTIME")
asker = load("TEST_ASKER")
asker.ask_dlsym.restype = asker.ask_dlvsym.restype = c_void_p
stream = c_void_p(new_stream(runtime))
device, host = c_void_p(), (ctypes.c_uint8 * 64)(*range(64))
assert runtime.cudaMalloc(byref(device), c_uint64(64)) == 0

def batch(function=runtime.cudaMemcpyBatchAsync, parameters=int(os.environ["TEST_PARAMETERS"])):
    attributes = MemcpyAttributes(src_access_order=1)
    fail = (byref(c_uint64()),) if parameters == 9 else ()
    lists = words(device.value), words(ctypes.addressof(host)), words(64)
    return function(*lists, c_uint64(1), byref(attributes), words(0), c_uint64(1), *fail, stream)

def single():
    return runtime.cudaMemcpyAsync(device, host, c_uint64(64), 1, stream)

def on_device():
    copied = (ctypes.c_uint8 * 64)()
    assert runtime.cudaStreamSynchronize(stream) == 0
    assert runtime.cudaMemcpy(copied, device, c_uint64(64), 2) == 0
    return sum(copied)

def inject(rules=os.environ.get("TEST_RULES", "")):
    evidence_file.inject(rules)
"""


def simulated(programs: Programs, major: int = 13) -> dict[str, object]:
    return {
        "driver": native.library("simcuda/driver-13.0/libcuda.so.1"),
        "runtime": native.library(
            "simcuda/runtime-12.8/libcudart.so.12" if major == 12 else "simcuda/runtime-13.0/libcudart.so.13"
        ),
        "parameters": 9 if major == 12 else 8,
        "asker": programs.compiler.library("libasker.so", "asker.c", "-fno-optimize-sibling-calls"),
    }


def run(programs: Programs, script: str, rules: str = "", major: int = 13) -> Ended:
    ended = programs.run(SIMULATED + script, {**simulated(programs, major), "rules": rules})
    assert (ended.status, ended.errors) == (0, "")
    return ended


FOUR_BATCHES = """
inject()
codes = [(batch(), runtime.cudaGetLastError()) for _ in range(4)]
say(codes=codes)
"""

OK, REFUSED = [0, 0], [801, 801]


@pytest.mark.parametrize("major", [12, 13])
@pytest.mark.parametrize(
    ("which", "codes", "fired"),
    [
        ("", [REFUSED] * 4, 4),
        ("@1", [REFUSED, OK, OK, OK], 1),
        ("@3", [OK, OK, REFUSED, OK], 1),
        ("@3+", [OK, OK, REFUSED, REFUSED], 2),
        ("@5+", [OK] * 4, 0),
    ],
)
def test_runtime_sees_and_keeps_what_its_driver_is_made_to_answer(
    programs: Programs, major: int, which: str, codes: list[list[int]], fired: int
) -> None:
    rule = f"batch{which}=801"
    ended = run(programs, FOUR_BATCHES, rule, major)
    assert ended.said == [{"codes": codes}]
    evidence = ended.evidence
    assert evidence.injections == (AppliedInjection(rule, 4, fired),)
    assert evidence.injected == fired
    driver_calls = [call for call in evidence.calls if call.is_batch and not call.under_test]
    assert [(call.returned, call.injected) for call in driver_calls] == [
        (code, code == 801) for code, _ in codes
    ]
    assert [(call.returned, call.injected) for call in evidence.batch_calls()] == [
        (code, False) for code, _ in codes
    ]
    assert {call.owner for call in driver_calls} == {Owner.DRIVER}


DIRECT = """
inject()
say(codes=[batch(driver.cuMemcpyBatchAsync_v2, 8) for _ in range(2)], copied=on_device())
say(codes=[batch(driver.cuMemcpyBatchAsync, 9) for _ in range(2)], copied=on_device())
"""


def test_driver_called_by_the_code_under_test_is_answered_too(programs: Programs) -> None:
    ended = run(programs, DIRECT, "batch@2+=36")
    assert ended.said == [{"codes": [0, 36], "copied": 2016}, {"codes": [36, 36], "copied": 2016}]
    assert [(call.given, call.returned, call.injected) for call in ended.evidence.batch_calls()] == [
        (8, 0, False),
        (8, 36, True),
        (9, 36, True),
        (9, 36, True),
    ]


NOTHING_COPIED = """
assert runtime.cudaMemset(device, 0, c_uint64(64)) == 0
inject()
say(code=batch(), copied=on_device())
"""


def test_real_function_is_not_called_even_where_the_code_says_success(programs: Programs) -> None:
    ended = run(programs, NOTHING_COPIED, "batch=0")
    assert ended.said == [{"code": 0, "copied": 0}]
    assert ended.evidence.injected == 1


SINGLES = """
inject()
codes = [(single(), runtime.cudaGetLastError()) for _ in range(3)]
say(codes=codes)
"""


@pytest.mark.parametrize(
    ("which", "codes"), [("", [700] * 3), ("@2", [0, 700, 0]), ("@2+", [0, 700, 700]), ("@4", [0, 0, 0])]
)
def test_single_copies_of_the_code_under_test(programs: Programs, which: str, codes: list[int]) -> None:
    ended = run(programs, SINGLES, f"per-copy{which}=700")
    assert ended.said == [
        {"codes": [[code, 0] for code in codes]}
    ]  # the runtime was not called: no last error
    own = [call for call in ended.evidence.calls if call.under_test]
    assert [(call.returned, call.injected) for call in own] == [(code, code == 700) for code in codes]
    # The driver's function, which the runtime calls, is not counted.
    assert ended.evidence.injections == (AppliedInjection(f"per-copy{which}=700", 3, codes.count(700)),)
    assert ended.evidence.per_copy_count == 3
    assert ended.evidence.path is CopyPath.FALLBACK


LOOK_UPS = """
def look_up(function, *order):
    found, status = c_void_p(0x5555), c_int(77)
    values = {"name": name, "found": byref(found), "version": 13000}
    values |= {"flags": c_uint64(0), "status": byref(status)}
    code = function(*(values[parameter] for parameter in order))
    return [code, found.value, status.value]

def look_ups():
    return [
        look_up(driver.cuGetProcAddress_v2, "name", "found", "version", "flags", "status"),
        look_up(driver.cuGetProcAddress, "name", "found", "version", "flags"),
        look_up(runtime.cudaGetDriverEntryPoint, "name", "found", "flags", "status"),
        look_up(runtime.cudaGetDriverEntryPoint_ptsz, "name", "found", "flags", "status"),
        look_up(runtime.cudaGetDriverEntryPointByVersion, "name", "found", "version", "flags", "status"),
    ]

inject()
name = b"cuMemcpyBatchAsync"
say(answers=look_ups())
name = b"cuMemcpyAsync"
say(codes=[code for code, _, _ in look_ups()], found=all(found for _, found, _ in look_ups()))
null = None
say(code=driver.cuGetProcAddress_v2(b"cuMemcpyBatchAsync", null, 13000, c_uint64(0), null))
say(code=batch())
"""


@pytest.mark.parametrize(("effect", "code", "status"), [("null", 0, 1), ("500", 500, 77), ("0", 0, 77)])
def test_look_ups_of_the_batch_function(programs: Programs, effect: str, code: int, status: int) -> None:
    ended = run(programs, LOOK_UPS, f"lookup={effect}")
    with_status, without_status = [code, None, status], [code, None, 77]
    assert ended.said == [
        {"answers": [with_status, without_status, *[with_status] * 3]},
        {"codes": [0] * 5, "found": True},
        {"code": code},
        {"code": 0},
    ]
    own = [row for row in ended.evidence.lookups if row.injected]
    assert [(row.function, row.name, row.version, row.code, row.found) for row in own] == [
        ("cuGetProcAddress_v2", "cuMemcpyBatchAsync", 13000, code, None),
        ("cuGetProcAddress", "cuMemcpyBatchAsync", 13000, code, None),
        ("cudaGetDriverEntryPoint", "cuMemcpyBatchAsync", 0, code, None),
        ("cudaGetDriverEntryPoint_ptsz", "cuMemcpyBatchAsync", 0, code, None),
        ("cudaGetDriverEntryPointByVersion", "cuMemcpyBatchAsync", 13000, code, None),
    ]
    assert ended.evidence.injections == (AppliedInjection(f"lookup={effect}", 6, 6),)


RUNTIMES_LOOK_UPS = """
claim()
evidence_file.inject("lookup=null")
driver, runtime = load("TEST_DRIVER"), load("TEST_RUNTIME")
stream, count = new_stream(runtime), c_int()
say(code=load("TEST_CALLER").caller_copy(words(0, 0, 0, 1, 0, 0, 1, stream, 0, 0)))
"""


def test_look_ups_that_a_runtime_makes_are_answered_truly(programs: Programs) -> None:
    compiler = programs.compiler
    driver, runtime = compiler.driver(), compiler.runtime(13)
    caller = compiler.caller("linked", runtime)
    ended = programs.run(RUNTIMES_LOOK_UPS, {"driver": driver, "runtime": runtime, "caller": caller})
    assert (ended.status, ended.errors, ended.said) == (0, "", [{"code": 0}])
    asked = [row for row in ended.evidence.lookups if row.name == "cuMemcpyBatchAsync"]
    assert [(row.version, row.caller.file, row.injected) for row in asked] == [
        (12080, str(runtime), False),
        (13000, str(runtime), False),
    ]
    assert [call.callee.file for call in ended.evidence.calls] == [str(runtime), str(driver)]
    assert ended.evidence.injections == (AppliedInjection("lookup=null", 0, 0),)


BY_DLSYM = """
inject()
found = [asker.ask_dlsym(b"cudaMemcpyBatchAsync") is not None for _ in range(3)]
say(
    dlsym=found,
    dlvsym=asker.ask_dlvsym(b"cudaMemcpyBatchAsync", b"libcudart.so.13") is not None,
    driver=asker.ask_dlsym(b"cuMemcpyBatchAsync_v2") is not None,
    other=asker.ask_dlsym(b"cudaMemcpyAsync") is not None,
    absent=asker.ask_dlsym(b"cudaNoSuchFunction") is not None,
)
"""


@pytest.mark.parametrize("effect", ["null", "500"])
@pytest.mark.parametrize(
    ("which", "dlsym", "later", "fired"),
    [
        ("", [False] * 3, False, 5),
        ("@2", [True, False, True], True, 1),
        ("@3+", [True, True, False], False, 3),
    ],
)
def test_dlsym_of_a_batch_function_finds_nothing(
    programs: Programs, effect: str, which: str, dlsym: list[bool], later: bool, fired: int
) -> None:
    rule = f"lookup{which}={effect}"
    ended = run(programs, BY_DLSYM, rule)
    said: dict[str, Any] = {"dlsym": dlsym, "dlvsym": later, "driver": later, "other": True, "absent": False}
    assert ended.said == [said]
    assert ended.evidence.injections == (AppliedInjection(rule, 5, fired),)
    settings = simulated(programs)
    refused = {(row.function, row.caller, row.via) for row in ended.evidence.bindings if row.injected}
    expected = {("cudaMemcpyBatchAsync", str(settings["asker"]), "dlsym")}
    if not later:
        expected.add(("cuMemcpyBatchAsync_v2", str(settings["asker"]), "dlsym"))
    assert refused == expected


VERSIONS = """
functions = (b"cudaDriverGetVersion", b"cuDriverGetVersion", b"cudaRuntimeGetVersion")

def versions():
    answers = []
    for function in functions:
        version = c_int(77)
        answers.append([asker.ask_version(function, byref(version)), version.value])
    return answers

truth = versions()
inject()
say(truth=truth, answers=versions())
"""


@pytest.mark.parametrize(
    ("rules", "answers"),
    [
        ("driver-version=35", [[35, 77], [35, 77], [0, 13000]]),
        ("driver-version@1=0", [[0, 77], [0, 13000], [0, 13000]]),
        ("driver-version@2+=100", [[0, 13000], [100, 77], [0, 13000]]),
        ("runtime-version=999", [[0, 13000], [0, 13000], [999, 77]]),
        ("cuDriverGetVersion=3", [[0, 13000], [3, 77], [0, 13000]]),
    ],
)
def test_version_queries(programs: Programs, rules: str, answers: list[list[int]]) -> None:
    ended = run(programs, VERSIONS, rules)
    assert ended.said == [{"truth": [[0, 13000]] * 3, "answers": answers}]
    injected = [query for query in ended.evidence.version_queries if query.injected]
    assert [(query.code, query.version) for query in injected] == [
        (code, None) for code, version in answers if version == 77
    ]
    assert ended.evidence.injected == len(injected)


ASK_EACH = """
for function in (b"cudaDriverGetVersion", b"cuDriverGetVersion", b"cudaRuntimeGetVersion") * 3:
    assert asker.ask_version(function, byref(c_int())) == 0
code = asker.ask_version(b"cuDriverGetVersion", None)
say(code=code)
"""


def test_version_queries_are_recorded_once_each_with_who_asked_and_who_answered(programs: Programs) -> None:
    ended = run(programs, ASK_EACH, major=12)
    assert ended.said == [{"code": 1}]
    settings = {name: str(value) for name, value in simulated(programs, major=12).items()}
    own = [query for query in ended.evidence.version_queries if query.under_test]
    assert [
        (query.function, query.caller.file, query.owner_file, query.code, query.version) for query in own
    ] == [
        ("cudaDriverGetVersion", settings["asker"], settings["runtime"], 0, 13000),
        ("cuDriverGetVersion", settings["asker"], settings["driver"], 0, 13000),
        ("cudaRuntimeGetVersion", settings["asker"], settings["runtime"], 0, 12080),
        ("cuDriverGetVersion", settings["asker"], settings["driver"], 1, None),
    ]
    assert len({query.caller for query in own}) == 1
    assert not any(query.injected for query in ended.evidence.version_queries)
    runtimes = [query for query in ended.evidence.version_queries if not query.under_test]
    assert {(query.caller.file, query.owner_file) for query in runtimes} <= {
        (settings["runtime"], settings["driver"])
    }


EXACT = """
inject()
handle, found = c_void_p(0x5555), c_void_p(0x5555)
say(
    batch=batch(),
    driver_batch=batch(driver.cuMemcpyBatchAsync_v2, 8),
    create=runtime.cudaStreamCreate(byref(handle)),
    destroy=runtime.cudaStreamDestroy(stream),
    look_up=driver.cuGetProcAddress_v2(b"cuInit", byref(found), 12000, c_uint64(0), None),
    found=found.value is not None,
)
"""

EXACT_TRUTH = {"batch": 0, "driver_batch": 0, "create": 0, "destroy": 0, "look_up": 0, "found": True}


@pytest.mark.parametrize(
    ("rule", "changed"),
    [
        ("cudaMemcpyBatchAsync=36", {"batch": 36}),
        ("cuMemcpyBatchAsync_v2=37", {"driver_batch": 37}),
        ("cudaStreamCreate=2", {"create": 2}),
        ("cudaStreamCreate=0", {}),
        ("cudaStreamDestroy=400", {"destroy": 400}),
        ("cuGetProcAddress_v2=null", {"found": False}),
        ("cuGetProcAddress_v2=999", {"look_up": 999, "found": False}),
        ("cudaMemcpyBatchAsync_ptsz=36", {}),
    ],
)
def test_function_by_its_own_name(programs: Programs, rule: str, changed: dict[str, Any]) -> None:
    ended = run(programs, EXACT, rule)
    assert ended.said == [{**EXACT_TRUTH, **changed}]
    seen = 0 if rule.startswith("cudaMemcpyBatchAsync_ptsz") else 1
    assert ended.evidence.injections == (AppliedInjection(rule, seen, seen),)


MID_RUN = """
codes = [batch()]
inject("batch@2=801")
codes += [batch(), batch()]
inject("batch=36; per-copy=700")
codes += [batch(), single(), batch()]
say(codes=codes)
"""


def test_rules_are_added_in_mid_run_and_count_from_then_on(programs: Programs) -> None:
    ended = run(programs, MID_RUN)
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
    ended = run(programs, FIRST_WINS, "batch@3=1; batch@2+=2; cudaMemcpyBatchAsync@4=3")
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
    process = programs.start(SIMULATED + BY_SUPERVISOR, simulated(programs))
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


def test_injections_and_version_queries_cross_processes(programs: Programs) -> None:
    evidence = run(programs, VERSIONS, "driver-version@2=35; batch=801").evidence
    crossed = json.loads(json.dumps(evidence.to_json()))
    assert type(evidence).from_json(crossed) == evidence
    own = [query.injected for query in evidence.version_queries if query.under_test]
    assert own == [False] * 3 + [True]
