"""Each way to the batch function: the call is seen with its owner, caller, arity, stream, count and code."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from pytest_cudabatch.abi import BatchAbi
from pytest_cudabatch.interposer import Binding, Call, CopyPath, Location, Owner

from .programs import NON_CANONICAL, Compiler, Ended, Programs, symbol_offset

CALL = """
claim()
runtime = load("TEST_RUNTIME")
caller = load("TEST_CALLER")
runtime.check_caller_file.restype = ctypes.c_char_p
runtime.check_caller_offset.restype = c_uint64
stream = new_stream(runtime)
parameters = [1 << 20, 2 << 20, 3 << 20, 5, 4 << 20, 5 << 20, 1]
litter = int(os.environ["TEST_LITTER"])
parameters += [0, stream] if os.environ["TEST_PARAMETERS"] == "9" else [stream, litter]
runtime.check_expect(words(*parameters))
runtime.check_answer(int(os.environ["TEST_ANSWER"]))
code = caller.caller_copy(words(*parameters, litter))
say(code=code, stream=stream, file=runtime.check_caller_file().decode(), offset=runtime.check_caller_offset())
"""

BATCH = "cudaMemcpyBatchAsync"

ONE_SEGMENT = "-Wl,-z,noseparate-code"
"""Puts the table of relocations into the segment of the code, where it cannot be changed."""

LINKED = {
    "lazy": ("plt", "linked", "-Wl,-z,lazy"),
    "now": ("plt", "linked", "-Wl,-z,now"),
    "no-plt": ("relocation", "linked", "-fno-plt"),
    "no-plt, table with the code": ("relocation", "linked", "-fno-plt", ONE_SEGMENT),
    "address-taken": ("relocation", "address-taken"),
    "address-taken, table with the code": ("relocation", "address-taken", ONE_SEGMENT, "-Wl,-z,now"),
}
"""Ways of code that is linked with the runtime: how it is bound, and how it is compiled."""


def caller_by(compiler: Compiler, way: str, runtime: Path) -> Path:
    if way in LINKED:
        _, obtains, *flags = LINKED[way]
        return compiler.caller(obtains, runtime, *flags)
    return compiler.caller(way)


@pytest.mark.parametrize("major", [12, 13])
@pytest.mark.parametrize("way", [*LINKED, "dlsym-default", "dlsym-handle", "dlvsym"])
def test_runtime_call_is_recorded(programs: Programs, way: str, major: int) -> None:
    runtime = programs.compiler.runtime(major)
    caller = caller_by(programs.compiler, way, runtime)
    parameters = 9 if major == 12 else 8
    settings = {
        "runtime": runtime,
        "caller": caller,
        "libcudart": runtime,
        "version_node": runtime.name,
        "parameters": str(parameters),
        "answer": "719",
        "litter": str(NON_CANONICAL),
    }
    plain = programs.run(CALL, settings, audited=False)
    assert (plain.status, plain.errors) == (0, "")
    truth = plain.said[0]
    ended = programs.run(CALL, settings)
    assert (ended.status, ended.errors) == (0, "")
    said = ended.said[0]
    assert said["code"] == truth["code"] == 719

    evidence = ended.evidence
    [call] = evidence.calls
    assert call == Call(
        sequence=1,
        function=BATCH,
        caller=Location(str(caller), truth["offset"], None),
        callee=Location(str(runtime), symbol_offset(runtime, BATCH), BATCH),
        given=parameters,
        taken=parameters,
        stream=said["stream"],
        count=5,
        returned=719,
        owner=Owner.RUNTIME,
        under_test=True,
        thread=call.thread,
    )
    via = LINKED[way][0] if way in LINKED else "dlsym"
    assert Binding(BATCH, str(caller), call.callee, via) in evidence.bindings
    assert (evidence.recorded, evidence.lost, evidence.batch_count, evidence.per_copy_count) == (
        True,
        0,
        1,
        0,
    )
    assert evidence.path is CopyPath.NONE  # rejected
    assert evidence.abi_called is BatchAbi.of_parameters(parameters)
    assert (evidence.mismatches, evidence.in_flight) == ((), ())


BY_CTYPES = """
claim()
runtime = load("TEST_RUNTIME")
runtime.check_caller_file.restype = ctypes.c_char_p
runtime.check_caller_offset.restype = c_uint64
stream = new_stream(runtime)
fail = c_uint64()
arguments = [None, None, None, 3, None, None, 1, byref(fail), stream]
copy = runtime.cudaMemcpyBatchAsync
copy.argtypes = [*[c_void_p] * 3, c_uint64, *[c_void_p] * 2, c_uint64, *[c_void_p] * 2]
code = copy(*arguments)
file, offset = runtime.check_caller_file().decode(), runtime.check_caller_offset()
say(code=code, stream=stream, file=file, offset=offset, fail=fail.value)
"""


def test_call_by_ctypes_is_recorded_as_the_foreign_function_library_makes_it(programs: Programs) -> None:
    runtime = programs.compiler.runtime(12)
    truth = programs.run(BY_CTYPES, {"runtime": runtime}, audited=False).said[0]
    ended = programs.run(BY_CTYPES, {"runtime": runtime})
    [said] = ended.said
    assert (ended.status, ended.errors, said["code"], said["fail"]) == (0, "", 0, 2**64 - 1)
    [call] = ended.evidence.batch_calls()
    assert Path(call.caller.file).samefile(truth["file"])
    assert call.caller.offset == truth["offset"]
    assert (call.given, call.taken, call.stream, call.count, call.returned) == (9, 9, said["stream"], 3, 0)
    assert ended.evidence.path is CopyPath.BATCH


BY_LOOKUP = """
claim()
driver = load("TEST_DRIVER")
caller = load("TEST_CALLER")
caller.caller_ask(int(os.environ["TEST_ASK"]), c_uint64(int(os.environ["TEST_FLAGS"])))
stream = new_stream(driver, "cuStreamCreate")
tail = [stream, 0] if os.environ["TEST_PARAMETERS"] == "8" else [0, stream]
say(code=caller.caller_copy(words(0, 0, 0, 7, 0, 0, 1, *tail, 0)), stream=stream)
"""


@dataclass(frozen=True)
class Asked:
    """A look-up of cuMemcpyBatchAsync, and the function that a driver answers it with."""

    version: int
    flags: int
    function: str
    parameters: int
    code: int = 0


@pytest.mark.parametrize(
    "asked",
    [
        Asked(12080, 0, "cuMemcpyBatchAsync", 9),
        Asked(12080, 1, "cuMemcpyBatchAsync", 9),
        Asked(12080, 2, "cuMemcpyBatchAsync_ptsz", 9, code=1000),
        Asked(13000, 0, "cuMemcpyBatchAsync_v2", 8),
    ],
)
def test_looked_up_driver_function_is_recorded(programs: Programs, asked: Asked) -> None:
    driver, caller = programs.compiler.driver(), programs.compiler.caller("lookup")
    settings = {
        "driver": driver,
        "caller": caller,
        "ask": str(asked.version),
        "flags": str(asked.flags),
        "parameters": str(asked.parameters),
    }
    ended = programs.run(BY_LOOKUP, settings)
    assert (ended.status, ended.errors, ended.said[0]["code"]) == (0, "", asked.code)
    [call] = ended.evidence.batch_calls()
    assert (call.function, call.owner) == (asked.function, Owner.DRIVER)
    assert (call.given, call.taken) == (asked.parameters, asked.parameters)
    assert (call.stream, call.count, call.returned) == (ended.said[0]["stream"], 7, asked.code)
    assert call.callee == Location(str(driver), symbol_offset(driver, asked.function), asked.function)
    assert call.caller.file == str(caller)
    [lookup] = ended.evidence.lookups
    assert (lookup.function, lookup.name) == ("cuGetProcAddress_v2", "cuMemcpyBatchAsync")
    assert (lookup.version, lookup.flags, lookup.code) == (asked.version, asked.flags, 0)
    assert (lookup.caller.file, lookup.found) == (str(caller), call.callee)


@pytest.mark.parametrize("style", ["sysv", "gnu"])
def test_definer_is_found_by_either_symbol_hash(programs: Programs, style: str) -> None:
    flags = ("-Wl,-soname,libcudart.so.14", f"-Wl,--hash-style={style}")
    runtime = programs.compiler.library("libcudart.so.14", "inert_runtime.c", *flags)
    caller = programs.compiler.caller("linked", runtime)
    ended = programs.run(LINKED_CALL, {"runtime": runtime, "caller": caller})
    assert (ended.status, ended.errors) == (0, "")
    [call] = ended.evidence.calls
    assert (call.callee.file, call.caller.file) == (str(runtime), str(caller))


LINKED_CALL = """
claim()
load("TEST_RUNTIME")
load("TEST_CALLER").caller_copy(words(*[0] * 10))
"""


def test_lookup_above_the_driver_is_recorded_as_refused(programs: Programs) -> None:
    driver, caller = programs.compiler.driver(), programs.compiler.caller("lookup")
    settings = {"driver": driver, "caller": caller, "ask": "13010", "flags": "0", "parameters": "8"}
    ended = programs.run(BY_LOOKUP, settings)
    assert (ended.status, ended.said[0]["code"]) == (0, -1)
    [lookup] = ended.evidence.lookups
    assert (lookup.name, lookup.version, lookup.code, lookup.found) == ("cuMemcpyBatchAsync", 13010, 1, None)
    assert ended.evidence.path is CopyPath.NONE


SUCCESS_WITH_NULL = """
claim()
driver = load("TEST_DRIVER")
found, status = c_void_p(1), c_int()
code = driver.cuGetProcAddress_v2(b"cuMemcpyAsync", byref(found), 12080, c_uint64(0), byref(status))
say(code=code, found=found.value)
"""


def test_success_with_null_is_recorded_as_found_nothing(programs: Programs) -> None:
    ended = programs.run(SUCCESS_WITH_NULL, {"driver": programs.compiler.driver()})
    assert ended.said == [{"code": 0, "found": None}]
    [lookup] = ended.evidence.lookups
    assert (lookup.name, lookup.version, lookup.code, lookup.found) == ("cuMemcpyAsync", 12080, 0, None)


OLD_LOOKUP = """
claim()
driver = load("TEST_DRIVER")
old, found = c_void_p(), c_void_p()
assert driver.cuGetProcAddress_v2(b"cuGetProcAddress", byref(old), 11030, c_uint64(0), None) == 0
look_up = ctypes.CFUNCTYPE(c_int, ctypes.c_char_p, c_void_p, c_int, c_uint64)(old.value)
assert look_up(b"cuMemcpyBatchAsync", ctypes.addressof(found), 12080, 0) == 0
copy = ctypes.CFUNCTYPE(c_int, *[c_uint64] * 9)(found.value)
say(code=copy(0, 0, 0, 2, 0, 0, 1, 0, new_stream(driver, "cuStreamCreate")))
"""


def test_looked_up_lookup_of_the_old_form_is_watched_too(programs: Programs) -> None:
    ended = programs.run(OLD_LOOKUP, {"driver": programs.compiler.driver()})
    assert (ended.said, ended.errors) == ([{"code": 0}], "")
    asked = [(row.function, row.name, row.version) for row in ended.evidence.lookups]
    assert asked == [
        ("cuGetProcAddress_v2", "cuGetProcAddress", 11030),
        ("cuGetProcAddress", "cuMemcpyBatchAsync", 12080),
    ]
    [call] = ended.evidence.batch_calls()
    assert (call.function, call.given, call.taken, call.count) == ("cuMemcpyBatchAsync", 9, 9, 2)


BY_ENTRY_POINT = """
claim()
driver = load("TEST_DRIVER")
runtime = load("TEST_RUNTIME")
caller = load("TEST_CALLER")
stream = new_stream(runtime)
tail = [stream, 0] if os.environ["TEST_PARAMETERS"] == "8" else [0, stream]
say(code=caller.caller_copy(words(0, 0, 0, 4, 0, 0, 1, *tail, 0)))
"""


@pytest.mark.parametrize(
    ("major", "parameters", "function"), [(12, 9, "cuMemcpyBatchAsync"), (13, 8, "cuMemcpyBatchAsync_v2")]
)
def test_entry_point_through_a_runtime_is_recorded(
    programs: Programs, major: int, parameters: int, function: str
) -> None:
    driver, runtime = programs.compiler.driver(), programs.compiler.runtime(major)
    caller = programs.compiler.caller("entry-point")
    libraries = {"driver": driver, "runtime": runtime, "caller": caller, "parameters": str(parameters)}
    ended = programs.run(BY_ENTRY_POINT, libraries)
    assert (ended.status, ended.errors, ended.said) == (0, "", [{"code": 0}])
    [call] = ended.evidence.batch_calls()
    assert (call.function, call.given, call.taken) == (function, parameters, parameters)
    assert (call.caller.file, call.callee.file, call.count) == (str(caller), str(driver), 4)
    [lookup] = [row for row in ended.evidence.lookups if row.function == "cudaGetDriverEntryPoint"]
    assert (lookup.name, lookup.version, lookup.found) == ("cuMemcpyBatchAsync", 0, call.callee)


OVER_A_DRIVER = """
claim()
driver = load("TEST_DRIVER")
runtime = load("TEST_RUNTIME")
caller = load("TEST_CALLER")
stream = new_stream(runtime)
copied = caller.caller_copy(words(0, 0, 0, 6, 0, 0, 1, 0, stream, 0))
driver.driver_answer(801)
rejected = caller.caller_copy(words(0, 0, 0, 6, 0, 0, 1, 0, stream, 0))
if os.environ["TEST_SINGLE"] == "1":
    assert runtime.cudaMemcpyAsync(None, None, 9, 1, c_void_p(stream)) == 0
say(copied=copied, rejected=rejected)
"""


def run_over_a_driver(programs: Programs, single: bool) -> Ended:
    driver, runtime = programs.compiler.driver(), programs.compiler.runtime(12)
    caller = programs.compiler.caller("dlsym-default")
    return programs.run(
        OVER_A_DRIVER,
        {"driver": driver, "runtime": runtime, "caller": caller, "single": "1" if single else "0"},
    )


def test_calls_that_a_runtime_makes_are_recorded_but_not_the_code_under_test(programs: Programs) -> None:
    ended = run_over_a_driver(programs, single=True)
    assert (ended.errors, ended.said[0]["copied"], ended.said[0]["rejected"]) == ("", 0, 801)
    runtime, driver = str(programs.compiler.runtime(12)), str(programs.compiler.driver())
    caller = str(programs.compiler.caller("dlsym-default"))
    seen = [
        (call.function, call.caller.file, call.callee.file, call.under_test, call.returned)
        for call in ended.evidence.calls
        if call.function != "cudaMemcpyAsync"  # called by ctypes, from wherever its libffi lies
    ]
    assert seen == [
        ("cudaMemcpyBatchAsync", caller, runtime, True, 0),
        ("cuMemcpyBatchAsync", runtime, driver, False, 0),
        ("cudaMemcpyBatchAsync", caller, runtime, True, 801),
        ("cuMemcpyBatchAsync", runtime, driver, False, 801),
        ("cuMemcpyHtoDAsync_v2", runtime, driver, False, 0),
    ]
    assert [call.function for call in ended.evidence.batch_calls()] == ["cudaMemcpyBatchAsync"] * 2
    assert (ended.evidence.batch_count, ended.evidence.per_copy_count) == (2, 1)
    assert ended.evidence.path is CopyPath.FALLBACK
    asked = [(row.name, row.version, row.caller.file) for row in ended.evidence.lookups]
    assert asked == [
        ("cuMemcpyBatchAsync", 12080, runtime),
        ("cuMemcpyBatchAsync", 13000, runtime),
        ("cuMemcpyHtoDAsync", 12080, runtime),
    ]


def test_one_accepted_batch_without_single_copies_is_the_batch_path(programs: Programs) -> None:
    ended = run_over_a_driver(programs, single=False)
    assert (ended.evidence.batch_count, ended.evidence.per_copy_count) == (2, 0)
    assert ended.evidence.path is CopyPath.BATCH


def test_function_of_a_library_that_is_neither_runtime_nor_driver_is_a_shim(programs: Programs) -> None:
    shim = programs.compiler.library("libvgpu.so", "libcuda.c")
    caller = programs.compiler.caller("lookup")
    settings = {"driver": shim, "caller": caller, "ask": "13000", "flags": "0", "parameters": "8"}
    ended = programs.run(BY_LOOKUP, settings)
    [call] = ended.evidence.batch_calls()
    assert (call.owner, call.callee.file, call.taken) == (Owner.SHIM, str(shim), 8)
    assert [mapped.file for mapped in ended.evidence.objects if mapped.soname == ""].count(str(shim)) == 1


TAIL_CALL = """
claim()
driver = load("TEST_DRIVER")
runtime = load("TEST_RUNTIME")
stream = new_stream(runtime)
copy = runtime.cudaMemcpyBatchAsync_ptsz
copy.argtypes = [c_uint64] * 9
say(code=copy(0, 0, 0, 6, 0, 0, 1, 0, stream))
"""


def test_tail_call_out_of_a_runtime_is_the_runtimes_not_its_callers(programs: Programs) -> None:
    driver, runtime = programs.compiler.driver(), programs.compiler.runtime(12)
    ended = programs.run(TAIL_CALL, {"driver": driver, "runtime": runtime})
    assert (ended.status, ended.errors, ended.said) == (0, "", [{"code": 0}])
    outer, inner = ended.evidence.calls
    assert (outer.function, outer.under_test) == ("cudaMemcpyBatchAsync_ptsz", True)
    entry = symbol_offset(runtime, "cudaMemcpyBatchAsync_ptsz")
    assert (inner.function, inner.caller) == ("cuMemcpyBatchAsync", Location(str(runtime), entry))
    assert (inner.under_test, ended.evidence.batch_count) == (False, 1)
