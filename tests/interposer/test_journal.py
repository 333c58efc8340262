"""Of many calls the first and the last are kept in full, each kind for itself, and all are counted."""

from __future__ import annotations

from pathlib import Path

from pytest_cudabatch.interposer import CopyPath

from .programs import Programs

MANY = """
claim()
runtime = load("TEST_RUNTIME")
caller = load("TEST_CALLER")
stream = new_stream(runtime)
for number in range(1, 301):
    runtime.check_answer(1 if number % 10 == 0 else 0)
    caller.caller_copy(words(0, 0, 0, number, 0, 0, 1, stream, 0, 0))
runtime.check_answer(0)
copy = runtime.cudaMemcpyAsync
copy.argtypes = [c_void_p, c_void_p, c_uint64, c_int, c_void_p]
for number in range(2000):
    copy(None, None, 1, 1, stream)
"""


def test_many_calls(programs: Programs) -> None:
    runtime = programs.compiler.runtime(13)
    caller = programs.compiler.caller("linked", runtime)
    ended = programs.run(MANY, {"runtime": runtime, "caller": caller})
    assert (ended.status, ended.errors) == (0, "")
    evidence = ended.evidence
    batches = evidence.batch_calls()
    assert [call.count for call in batches] == [*range(1, 65), *range(237, 301)]
    assert [call.returned for call in batches] == [int(call.sequence % 10 == 0) for call in batches]
    singles = [call for call in evidence.calls if not call.is_batch]
    assert [call.sequence for call in singles] == [*range(301, 365), *range(2237, 2301)]
    assert {(call.count, call.given, call.taken, call.returned) for call in singles} == {(1, None, None, 0)}
    counts = {site.function: (site.calls, site.returned, site.errors) for site in evidence.sites}
    assert counts == {"cudaMemcpyBatchAsync": (300, 300, 30), "cudaMemcpyAsync": (2000, 2000, 0)}
    assert (evidence.batch_count, evidence.per_copy_count) == (300, 2000)
    assert evidence.path is CopyPath.FALLBACK
    assert len({call.stream for call in evidence.calls}) == 1
    assert evidence.lost == 0


HANGING = """
import threading
claim()
runtime = load("TEST_RUNTIME")
copy = runtime.cudaMemcpyBatchAsync
copy.argtypes = [c_uint64] * 8
stream = new_stream(runtime)
for number in range(70):
    copy(0, 0, 0, number, 0, 0, 1, stream)
runtime.check_hang(os.pipe()[0])  # nobody ever writes
threading.Thread(target=copy, args=(0, 0, 0, 999, 0, 0, 1, stream), daemon=True).start()
while not evidence_file.read(0).in_flight:
    pass
for number in range(100, 300):
    copy(0, 0, 0, number, 0, 0, 1, stream)
os.kill(os.getpid(), 9)
"""


def test_hanging_call_is_kept_however_many_follow(programs: Programs) -> None:
    runtime = programs.compiler.library("libcudart.so.14", "inert_runtime.c", "-Wl,-soname,libcudart.so.14")
    ended = programs.run(HANGING, {"runtime": runtime})
    assert (ended.status, ended.errors) == (-9, "")
    evidence = ended.evidence
    [call] = evidence.in_flight
    assert (call.sequence, call.count, call.given, call.returned) == (71, 999, 8, None)
    assert evidence.last_call == call
    # The hanging call holds a place of the ring; call 291, which should have had it, lost its own to 292.
    assert [row.count for row in evidence.calls] == [*range(64), 999, *range(236, 291), *range(292, 300)]


REPLACED = """
import _ctypes
claim()
for _ in range(3):
    for name in ("TEST_FIRST", "TEST_SECOND"):
        library = ctypes.CDLL(os.environ[name])
        copy = library.cudaMemcpyAsync
        copy.argtypes = [c_void_p, c_void_p, c_uint64, c_int, c_void_p]
        copy(None, None, 1, 1, None)
        _ctypes.dlclose(library._handle)
"""


def test_library_loaded_in_another_ones_place_is_told_apart(programs: Programs) -> None:
    libraries = {"first": programs.compiler.runtime(12), "second": programs.compiler.runtime(13)}
    ended = programs.run(REPLACED, libraries)
    assert (ended.status, ended.errors) == (0, "")
    callees = [Path(call.callee.file).name for call in ended.evidence.calls]
    assert callees == ["libcudart.so.12", "libcudart.so.13"] * 3


RELOADED = """
import _ctypes
claim()
for _ in range(200):
    runtime = ctypes.CDLL(os.environ["TEST_RUNTIME"])
    copy = runtime.cudaMemcpyAsync
    copy.argtypes = [c_void_p, c_void_p, c_uint64, c_int, c_void_p]
    assert copy(None, None, 1, 1, None) == 0
    _ctypes.dlclose(runtime._handle)
"""


def test_library_that_comes_and_goes_does_not_exhaust_the_tables(programs: Programs) -> None:
    ended = programs.run(RELOADED, {"runtime": programs.compiler.runtime(12)})
    assert (ended.status, ended.errors) == (0, "")
    assert (ended.evidence.per_copy_count, ended.evidence.lost) == (200, 0)
    assert {call.callee.file for call in ended.evidence.calls} == {str(programs.compiler.runtime(12))}


TOO_MANY_STUBS = """
claim()
driver = load("TEST_DRIVER")
found = c_void_p()
for number in range(300):
    driver.driver_give(c_uint64(number))
    assert driver.cuGetProcAddress_v2(b"cuMemcpyBatchAsync", byref(found), 12080, c_uint64(0), None) == 0
"""


def test_more_functions_than_stubs_make_the_path_unknown(programs: Programs) -> None:
    driver = programs.compiler.library("libcuda.so.1", "many_functions.c", "-Wl,-soname,libcuda.so.1")
    ended = programs.run(TOO_MANY_STUBS, {"driver": driver})
    assert (ended.status, ended.errors, ended.evidence.recorded) == (0, "", True)
    assert ended.evidence.lost > 0
    assert ended.evidence.path is CopyPath.UNKNOWN
