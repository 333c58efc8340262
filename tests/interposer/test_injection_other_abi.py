"""Look-ups answered in the other ABI: who finds which function, and what a call with the wrong type shows."""

from __future__ import annotations

import signal

import pytest

from pytest_cudabatch import native
from pytest_cudabatch.interposer import AppliedInjection

from .programs import Programs
from .simulated import SIMULATED, run_simulated, simulated_libraries

ASK = """
inject()

def ask(library, function, *arguments):
    found = c_void_p()
    code = library[function](b"cuMemcpyBatchAsync", byref(found), *arguments)
    return [code, found.value is not None]

null = None
say(answers=[
    ask(driver, "cuGetProcAddress_v2", 12080, c_uint64(0), null),
    ask(driver, "cuGetProcAddress_v2", 13000, c_uint64(0), null),
    ask(driver, "cuGetProcAddress_v2", 13000, c_uint64(2), null),
    ask(driver, "cuGetProcAddress", 12080, c_uint64(0)),
    ask(runtime, "cudaGetDriverEntryPoint", c_uint64(0), null),
    ask(runtime, "cudaGetDriverEntryPoint_ptsz", c_uint64(0), null),
    ask(runtime, "cudaGetDriverEntryPointByVersion", 12080, c_uint64(0), null),
    ask(driver, "cuGetProcAddress_v2", 12000, c_uint64(0), null),
])
"""

NINE, EIGHT = "cuMemcpyBatchAsync", "cuMemcpyBatchAsync_v2"


def test_every_look_up_answers_with_the_counterpart(programs: Programs) -> None:
    ended = run_simulated(programs, ASK, "lookup=other-abi")
    assert ended.said == [{"answers": [[0, True]] * 7 + [[0, False]]}]
    own = [row for row in ended.evidence.lookups if row.caller.file.find("libcudart") < 0]
    assert [(row.version, row.found and row.found.symbol, row.injected) for row in own] == [
        (12080, EIGHT, True),
        (13000, NINE, True),
        (13000, f"{NINE}_ptsz", True),
        (12080, EIGHT, True),
        (0, NINE, True),
        (0, f"{NINE}_ptsz", True),
        (12080, EIGHT, True),
        (12000, None, False),  # success with NULL: there is nothing to put something else in place of
    ]
    assert {row.found.file for row in own if row.found} == {str(simulated_libraries(programs)["driver"])}
    assert ended.evidence.injections == (AppliedInjection("lookup=other-abi", 8, 7),)


FIND = """
inject()
name, found, version = b"cuMemcpyBatchAsync", c_void_p(), int(os.environ["TEST_VERSION"])
say(code=driver.cuGetProcAddress_v2(name, byref(found), version, c_uint64(0), None))
function = ctypes.CFUNCTYPE(c_int)(found.value)
function.argtypes = None
say(code=batch(function, int(os.environ["TEST_GIVEN"])), copied=on_device())
"""


@pytest.mark.parametrize(("version", "given"), [(12080, 8), (13000, 9)])
def test_the_function_found_works_when_called_as_what_it_is(
    programs: Programs, version: int, given: int
) -> None:
    settings = {**simulated_libraries(programs), "rules": "cuGetProcAddress_v2@1=other-abi"}
    ended = programs.run(SIMULATED + FIND, {**settings, "version": version, "given": given})
    assert (ended.status, ended.errors) == (0, "")
    assert ended.said == [{"code": 0}, {"code": 0, "copied": 2016}]
    [call] = ended.evidence.batch_calls()
    assert (call.given, call.taken, call.injected) == (given, given, False)


@pytest.mark.parametrize(("version", "given"), [(12080, 9), (13000, 8)])
def test_the_function_found_crashes_when_called_as_what_was_asked_for(
    programs: Programs, version: int, given: int
) -> None:
    settings = {**simulated_libraries(programs), "rules": "lookup=other-abi"}
    ended = programs.run(SIMULATED + FIND, {**settings, "version": version, "given": given})
    assert ended.status == -signal.SIGSEGV
    [call] = ended.evidence.mismatches
    assert (call.given, call.taken, call.returned) == (given, 17 - given, None)
    assert call.callee.symbol == (EIGHT if version == 12080 else NINE)


def test_driver_without_the_other_function_answers_truly(programs: Programs) -> None:
    driver = native.library("simcuda/driver-12.8/libcuda.so.1")
    settings = {**simulated_libraries(programs, 12), "driver": driver, "rules": "lookup=other-abi"}
    ended = programs.run(SIMULATED + FIND, {**settings, "version": 12080, "given": 9})
    assert (ended.status, ended.errors) == (0, "")
    assert ended.said == [{"code": 0}, {"code": 0, "copied": 2016}]
    [row] = [row for row in ended.evidence.lookups if row.name == NINE and "libcudart" not in row.caller.file]
    assert (row.injected, row.found and row.found.symbol) == (False, NINE)
    assert ended.evidence.injections == (AppliedInjection("lookup=other-abi", 1, 0),)


BY_DLSYM = """
inject()
if os.environ["TEST_SECOND"]:
    load("TEST_SECOND")
said = {name: asker.ask_dlsym(name.encode()) is not None for name in json.loads(os.environ["TEST_NAMES"])}
say(**said)
"""

NAMES = f'["{EIGHT}_ptsz", "{NINE}", "cudaMemcpyBatchAsync"]'


def test_dlsym_answers_with_the_counterpart_in_the_driver_or_in_the_other_runtime(programs: Programs) -> None:
    libraries = simulated_libraries(programs)
    second = native.library("simcuda/runtime-12.8/libcudart.so.12")
    settings = {**libraries, "rules": "lookup=other-abi", "second": second, "names": NAMES}
    ended = programs.run(SIMULATED + BY_DLSYM, settings)
    assert (ended.status, ended.errors) == (0, "")
    assert set(ended.said[0].values()) == {True}
    injected = [row for row in ended.evidence.bindings if row.injected]
    assert [(row.function, row.callee.file, row.via) for row in injected] == [
        (f"{NINE}_ptsz", str(libraries["driver"]), "dlsym"),
        (EIGHT, str(libraries["driver"]), "dlsym"),
        ("cudaMemcpyBatchAsync", str(second), "dlsym"),
    ]
    assert ended.evidence.injections == (AppliedInjection("lookup=other-abi", 3, 3),)


def test_dlsym_of_the_only_runtime_answers_truly(programs: Programs) -> None:
    settings = {**simulated_libraries(programs), "rules": "lookup=other-abi", "second": "", "names": NAMES}
    ended = programs.run(SIMULATED + BY_DLSYM, settings)
    assert (ended.status, ended.errors) == (0, "")
    assert ended.said[0]["cudaMemcpyBatchAsync"] is True
    assert [row.function for row in ended.evidence.bindings if row.injected] == [f"{NINE}_ptsz", EIGHT]
    assert ended.evidence.injections == (AppliedInjection("lookup=other-abi", 3, 2),)
