"""From where a stream lies in the call, the arity follows; what could be either stays unknown."""

from __future__ import annotations

import json

import pytest

from .programs import Programs

ARITIES = """
claim()
runtime = load("TEST_RUNTIME")
caller = load("TEST_CALLER")
driver = load("TEST_DRIVER")
live, gone = new_stream(runtime), new_stream(runtime)
kept = new_stream(runtime)
assert runtime.cudaStreamDestroy(c_void_p(gone)) == 0
runtime.check_answer(719)
assert runtime.cudaStreamDestroy(c_void_p(kept)) == 719  # refused: it lives on
create = c_void_p()
assert driver.cuGetProcAddress_v2(b"cuStreamCreate", byref(create), 12080, c_uint64(0), None) == 0
by_driver = c_void_p()
assert ctypes.CFUNCTYPE(c_int, c_void_p, c_int)(create.value)(ctypes.addressof(by_driver), 0) == 0
runtime.check_answer(36)
heap = ctypes.addressof(ctypes.create_string_buffer(64))
values = {"live": live, "gone": gone, "kept": kept, "by_driver": by_driver.value}
values |= {"heap": heap, "unknown": 1 << 46}
eighth, ninth = (values.get(word, word) for word in json.loads(os.environ["TEST_WORDS"]))
if eighth == "local":
    caller.caller_copy_failing(words(0, 0, 0, 1, 0, 0, 1, 0, ninth, 0), byref(c_uint64()))
else:
    caller.caller_copy(words(0, 0, 0, 1, 0, 0, 1, eighth, ninth, 0))
say(**values)
"""


@pytest.mark.parametrize(
    ("eighth", "ninth", "given", "stream"),
    [
        ("live", 0, 8, "live"),
        ("live", "live", 8, "live"),
        ("live", "heap", 8, "live"),
        ("by_driver", 0, 8, "by_driver"),
        ("kept", 0, 8, "kept"),
        ("gone", "unknown", 8, "gone"),
        ("gone", 0, 8, "gone"),
        (1, 0, 8, 1),
        (2, "unknown", 8, 2),
        ("heap", "live", 9, "live"),
        ("local", "live", 9, "live"),
        ("local", 0, 9, 0),
        ("local", "gone", 9, "gone"),
        ("local", "unknown", 9, "unknown"),
        (0, "live", 9, "live"),
        (0, "kept", 9, "kept"),
        ("heap", 0, 9, 0),
        ("heap", 1, 9, 1),
        ("heap", 2, 9, 2),
        (0, 0, None, None),
        (0, 1, None, None),
        (0, 2, None, None),
        (0, "unknown", None, None),
        ("heap", "unknown", None, None),
        ("heap", "gone", None, None),
    ],
)
def test_arity_follows_from_the_streams_place(
    programs: Programs, eighth: str | int, ninth: str | int, given: int | None, stream: str | int | None
) -> None:
    libraries = {
        "runtime": programs.compiler.library(
            "libcudart.so.14", "inert_runtime.c", "-Wl,-soname,libcudart.so.14"
        ),
        "driver": programs.compiler.driver(),
        "caller": programs.compiler.caller("dlsym-default"),
    }
    ended = programs.run(ARITIES, {"words": json.dumps([eighth, ninth]), **libraries})
    assert (ended.status, ended.errors) == (0, "")
    [call] = ended.evidence.batch_calls()
    expected = ended.said[0][stream] if isinstance(stream, str) else stream
    assert (call.given, call.stream, call.taken, call.returned) == (given, expected, 8, 36)


IN_3D = """
claim()
runtime = load("TEST_RUNTIME")
live, gone = new_stream(runtime), new_stream(runtime)
assert runtime.cudaStreamDestroy(c_void_p(gone)) == 0
runtime.check_answer(36)
heap = ctypes.addressof(ctypes.create_string_buffer(64))
values = {"live": live, "gone": gone, "heap": heap, "unknown": 1 << 46}
copy = runtime[os.environ["TEST_FUNCTION"]]
copy.argtypes = [c_uint64] * 5
third, fourth, fifth = (values.get(word, word) for word in json.loads(os.environ["TEST_WORDS"]))
if third == "local":
    load("TEST_CALLER").caller_copy_3d_failing(ctypes.cast(copy, c_void_p), c_uint64(fifth))
else:
    copy(7, 0, third, fourth, fifth)
say(**values)
"""


@pytest.mark.parametrize("function", ["cudaMemcpy3DBatchAsync", "cudaMemcpy3DBatchAsync_ptsz"])
@pytest.mark.parametrize(
    ("third", "fourth", "fifth", "given", "stream"),
    [
        (0, "live", "unknown", 4, "live"),
        (0, "live", "live", 4, "live"),
        (0, "gone", 0, 4, "gone"),
        (0, 1, "unknown", 4, 1),
        (0, 2, 0, 4, 2),
        ("local", 0, "live", 5, "live"),
        ("local", 0, "unknown", 5, "unknown"),
        ("heap", 0, "live", 5, "live"),
        ("heap", 0, 0, 5, 0),
        ("heap", 0, 2, 5, 2),
        (0, 0, "live", 5, "live"),
        (0, 0, 0, None, None),
        (0, 0, 1, None, None),
        (0, "unknown", "unknown", None, None),
        (0, 3, 0, None, None),
    ],
)
def test_arity_of_a_batch_of_3d_copies_follows_from_the_streams_register(
    programs: Programs,
    function: str,
    third: str | int,
    fourth: str | int,
    fifth: str | int,
    given: int | None,
    stream: str | int | None,
) -> None:
    """The longer list is (numOps, opList, failIdx, flags, stream), the shorter one has no failIdx."""
    runtime = programs.compiler.library("libcudart.so.14", "inert_runtime.c", "-Wl,-soname,libcudart.so.14")
    words = json.dumps([third, fourth, fifth])
    caller = programs.compiler.caller("dlsym-default")
    settings = {"runtime": runtime, "caller": caller, "function": function, "words": words}
    ended = programs.run(IN_3D, settings)
    assert (ended.status, ended.errors) == (0, "")
    [call] = ended.evidence.batch_calls()
    expected = ended.said[0][stream] if isinstance(stream, str) else stream
    assert (call.function, call.given, call.taken) == (function, given, 4)
    assert (call.stream, call.count, call.returned) == (expected, 7, 36)
