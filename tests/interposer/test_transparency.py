"""A recorded call is the same call: parameters, return value, errno, stack and threads are untouched."""

from __future__ import annotations

from pathlib import Path

import pytest

from .programs import Programs

PARAMETERS = """
claim()
runtime = load("TEST_RUNTIME")
caller = load("TEST_CALLER")
stream = new_stream(runtime)
parameters = [0x1111111111111111 * number for number in range(1, 8)]
parameters += [0, stream] if os.environ["TEST_MAJOR"] == "12" else [stream, 0x9999999999999999]
runtime.check_expect(words(*parameters))
right = caller.caller_copy(words(*parameters, 0))
wrong = []
for position in range(9 if os.environ["TEST_MAJOR"] == "12" else 7):
    if parameters[position] not in (0, stream):
        changed = [*parameters]
        changed[position] ^= 1
        wrong.append(caller.caller_copy(words(*changed, 0)))
say(right=right, wrong=wrong, errno=[runtime.check_errno_before(), caller.caller_errno_after()])
"""


@pytest.mark.parametrize("major", [12, 13])
def test_callee_sees_every_parameter_and_the_caller_its_errno(programs: Programs, major: int) -> None:
    runtime = programs.compiler.runtime(major)
    caller = programs.compiler.caller("linked", runtime)
    ended = programs.run(PARAMETERS, {"runtime": runtime, "caller": caller, "major": str(major)})
    assert (ended.status, ended.errors) == (0, "")
    assert ended.said == [{"right": 0, "wrong": [777] * 7, "errno": [77, 4711]}]
    assert len(ended.evidence.calls) == 8


RETURN_VALUE = """
claim()
runtime = load("TEST_RUNTIME")
wide = runtime["cudaMemcpyAsync_ptsz"]
wide.restype, wide.argtypes = c_uint64, [c_void_p, c_void_p, c_uint64, c_int, c_void_p]
say(value=wide(None, None, 1, 1, None))
"""


def test_whole_return_register_comes_back(programs: Programs) -> None:
    ended = programs.run(RETURN_VALUE, {"runtime": programs.compiler.runtime(12)})
    assert ended.said == [{"value": 0x1122334455667788}]
    [call] = ended.evidence.calls
    assert (call.function, call.returned) == ("cudaMemcpyAsync_ptsz", 0x55667788)


VECTORS = """
claim()
load("TEST_RUNTIME")
vectors = load("TEST_VECTORS")
say(changed=vectors.vectors_changed())
"""


def test_vector_registers_are_untouched(programs: Programs) -> None:
    runtime, vectors = programs.compiler.runtime(12), programs.compiler.library("libvectors.so", "vectors.c")
    ended = programs.run(VECTORS, {"runtime": runtime, "vectors": vectors})
    assert (ended.said, ended.errors) == ([{"changed": 0}], "")
    assert [call.function for call in ended.evidence.calls] == ["cudaMemcpyAsync_ptsz"]


FRAMES = """
claim()
runtime = load("TEST_RUNTIME")
caller = load("TEST_CALLER")
stream = new_stream(runtime)
assert caller.caller_copy(words(0, 0, 0, 1, 0, 0, 1, stream, 0, 0)) == 0
frames = (c_void_p * 64)()
count = runtime.check_frames(frames)
regions = []
for line in Path("/proc/self/maps").read_text().splitlines():
    fields = line.split()
    low, high = (int(end, 16) for end in fields[0].split("-"))
    regions.append((low, high, fields[-1]))
files = [next((file for low, high, file in regions if low <= frame < high), "?") for frame in frames[:count]]
say(files=files)
"""


def test_unwinder_walks_through_the_stub_to_the_start_of_the_program(programs: Programs) -> None:
    runtime = programs.compiler.runtime(13)
    caller = programs.compiler.caller("linked", runtime)
    plain = programs.run(FRAMES, {"runtime": runtime, "caller": caller}, audited=False).said[0]["files"]
    audited = programs.run(FRAMES, {"runtime": runtime, "caller": caller}).said[0]["files"]
    stubs = [file for file in audited if Path(file).name == "libcudabatch_interposer.so"]
    assert len(stubs) == 1
    assert [file for file in audited if file not in stubs] == plain
    assert plain[:3] == [str(runtime), str(runtime), str(caller)]


THREADS = """
claim()
load("TEST_RUNTIME")
threads = load("TEST_THREADS")
threads.threads_copy.argtypes, threads.threads_copy.restype = [c_int, ctypes.c_long], ctypes.c_long
say(errors=threads.threads_copy(8, 5000))
"""


def test_threads_record_at_once_without_losing_a_call(programs: Programs) -> None:
    runtime = programs.compiler.runtime(13)
    threads = programs.compiler.library("libthreads.so", "threads.c", "-pthread")
    ended = programs.run(THREADS, {"runtime": runtime, "threads": threads})
    assert (ended.said, ended.errors) == ([{"errors": 0}], "")
    evidence = ended.evidence
    counts = {site.function: (site.calls, site.returned, site.errors, site.given) for site in evidence.sites}
    assert counts == {
        "cudaMemcpyBatchAsync": (40_000, 40_000, 0, 8),
        "cudaMemcpyAsync": (40_000, 40_000, 0, None),
    }
    assert len(evidence.calls) == 256
    assert len({call.sequence for call in evidence.calls}) == 256
    assert evidence.in_flight == ()
    assert {(call.given, call.taken) for call in evidence.batch_calls()} == {(8, 8)}
    stream_of_thread = {(call.thread, call.stream) for call in evidence.calls}
    assert len(stream_of_thread) == len({thread for thread, _ in stream_of_thread})
