"""Rules about look-ups, dlsym and version queries; and who is recorded to have asked for a version."""

from __future__ import annotations

import pytest

from pytest_cudabatch.interposer import AppliedInjection

from .programs import Programs
from .simulated import run_simulated, simulated_libraries

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
    ended = run_simulated(programs, LOOK_UPS, f"lookup={effect}")
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
    ended = run_simulated(programs, BY_DLSYM, rule)
    others = {"dlvsym": later, "driver": later, "other": True, "absent": False}
    assert ended.said == [{"dlsym": dlsym, **others}]
    assert ended.evidence.injections == (AppliedInjection(rule, 5, fired),)
    settings = simulated_libraries(programs)
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
    ended = run_simulated(programs, VERSIONS, rules)
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
    ended = run_simulated(programs, ASK_EACH, major=12)
    assert ended.said == [{"code": 1}]
    settings = {name: str(value) for name, value in simulated_libraries(programs, major=12).items()}
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
    answers = {(query.function, query.caller.file, query.owner_file) for query in runtimes}
    assert answers == {("cuDriverGetVersion", settings["runtime"], settings["driver"])}
