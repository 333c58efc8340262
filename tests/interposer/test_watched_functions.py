"""What else is watched beside batches of 1D copies: 3D batches, single copies with attributes, versions."""

from __future__ import annotations

import pytest

from pytest_cudabatch import native
from pytest_cudabatch.abi import BatchAbi
from pytest_cudabatch.interposer import CopyPath, Owner

from .programs import Programs
from .simulated import SIMULATED, run_simulated, simulated_libraries

ATTRIBUTES = """
claim()
runtime = load("TEST_RUNTIME")
stream = new_stream(runtime)
for name, before in (("cudaMemcpyWithAttributesAsync", 4), ("cudaMemcpy3DWithAttributesAsync", 2)):
    for suffix in ("", "_ptsz"):
        copy = runtime[name + suffix]
        copy.argtypes = [c_uint64] * (before + 1)
        copy(*[0] * before, stream)
say(stream=stream)
"""


def test_single_copies_with_attributes_are_a_fallback(programs: Programs) -> None:
    runtime = programs.compiler.library("libcudart.so.14", "inert_runtime.c", "-Wl,-soname,libcudart.so.14")
    ended = programs.run(ATTRIBUTES, {"runtime": runtime})
    assert (ended.status, ended.errors) == (0, "")
    stream = ended.said[0]["stream"]
    assert [(call.function, call.stream, call.count) for call in ended.evidence.calls] == [
        ("cudaMemcpyWithAttributesAsync", stream, 1),
        ("cudaMemcpyWithAttributesAsync_ptsz", stream, 1),
        ("cudaMemcpy3DWithAttributesAsync", stream, 1),
        ("cudaMemcpy3DWithAttributesAsync_ptsz", stream, 1),
    ]
    assert (ended.evidence.per_copy_count, ended.evidence.path) == (4, CopyPath.FALLBACK)


IN_3D = """
asks = int(os.environ["TEST_PARAMETERS"]) == 9
fail = (byref(c_uint64()),) if asks else ()
operations = ctypes.create_string_buffer(4096)
code = runtime.cudaMemcpy3DBatchAsync(c_uint64(0), operations, *fail, c_uint64(0), stream)
say(code=code, stream=stream.value)
"""


@pytest.mark.parametrize(
    ("major", "parameters", "inner"), [(12, 5, "cuMemcpy3DBatchAsync"), (13, 4, "cuMemcpy3DBatchAsync_v2")]
)
def test_3d_batch_is_seen_on_its_way_through_a_runtime(
    programs: Programs, major: int, parameters: int, inner: str
) -> None:
    """A batch of no operations is refused, by the driver, as any is."""
    ended = run_simulated(programs, IN_3D, major=major)
    stream = ended.said[0]["stream"]
    seen = [
        (call.function, call.owner, call.given, call.taken, call.stream, call.under_test, call.returned)
        for call in ended.evidence.calls
    ]
    assert seen == [
        ("cudaMemcpy3DBatchAsync", Owner.RUNTIME, parameters, parameters, stream, True, 1),
        (inner, Owner.DRIVER, parameters, parameters, stream, False, 1),
    ]
    assert ended.evidence.abi_called is BatchAbi.of_parameters(parameters)


VERSIONS = """
def version_by(address):
    version = c_int()
    assert ctypes.CFUNCTYPE(c_int, c_void_p)(address)(ctypes.addressof(version)) == 0
    return version.value

def looked_up(look_up, name, *version):
    found, status = c_void_p(), c_int()
    assert look_up(name, byref(found), *version, c_uint64(0), byref(status)) == 0
    return found.value

plain = c_int()
assert runtime.cudaRuntimeGetVersion(byref(plain)) == 0
say(by={
    "ctypes": plain.value,
    "dlsym": version_by(asker.ask_dlsym(b"cuDriverGetVersion")),
    "cuGetProcAddress_v2": version_by(looked_up(driver.cuGetProcAddress_v2, b"cuDriverGetVersion", 12000)),
    "entry point": version_by(looked_up(runtime.cudaGetDriverEntryPoint, b"cuDriverGetVersion")),
    "no-plt": load("TEST_NO_PLT").ask_linked_version(),
})
"""


def test_each_version_query_says_who_asked_whom_and_what_was_answered(programs: Programs) -> None:
    """By whatever way the caller came to the function; ctypes calls from where its libffi lies."""
    no_plt = programs.compiler.library("libnoplt.so", "linked_version.c", "-fno-plt")
    libraries = {**simulated_libraries(programs), "no_plt": no_plt}
    ended = programs.run(SIMULATED + VERSIONS, libraries)
    assert (ended.status, ended.errors) == (0, "")
    assert set(ended.said[0]["by"].values()) == {13000}
    runtime, driver = str(libraries["runtime"]), str(libraries["driver"])
    own = [query for query in ended.evidence.version_queries if query.under_test]
    asked = {(query.function, query.owner_file, query.caller.file == str(no_plt)) for query in own}
    assert asked == {
        ("cudaRuntimeGetVersion", runtime, False),
        ("cuDriverGetVersion", driver, False),
        ("cudaDriverGetVersion", runtime, True),
    }
    assert all((query.code, query.version) == (0, 13000) and query.caller.offset > 0 for query in own)


WITH_A_STATIC_RUNTIME = """
lists = words(device.value), words(ctypes.addressof(host)), words(64)
assert load("TEST_STATIC").cudabatch_copy(*lists, c_uint64(1), stream) == 0
"""


def test_static_runtime_is_seen_by_what_the_driver_gave_it(programs: Programs) -> None:
    static = native.library("implementations/libspecimen-static-cudart.so")
    libraries = {**simulated_libraries(programs), "static": static}
    ended = programs.run(SIMULATED + WITH_A_STATIC_RUNTIME, libraries)
    assert (ended.status, ended.errors) == (0, "")
    [call] = ended.evidence.batch_calls()
    seen = (call.function, call.owner, call.given, call.taken, call.returned)
    assert seen == ("cuMemcpyBatchAsync", Owner.DRIVER, 9, 9, 0)
    lookups = [row for row in ended.evidence.lookups if row.caller.file == str(static)]
    assert [(row.name, row.version, row.found) for row in lookups] == [
        ("cuMemcpyBatchAsync", 12080, call.callee)
    ]
    assert (call.caller.file, ended.evidence.path) == (str(static), CopyPath.BATCH)
