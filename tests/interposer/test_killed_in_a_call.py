"""The table of ways: each is killed while a call is in flight, and what is left says all of its calls."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from pytest_cudabatch.interposer import CopyPath, Evidence, Owner

from .programs import Programs
from .test_ways_in import LINKED, caller_by

LAYER = Path(__file__).parents[2] / "pytest_cudabatch/native/dispatch/specimens/dlsym_layer.c"
"""Compiled without the symbol version that the specimen's build gives it: LD_PRELOAD does it here."""

RUNTIME, DRIVER = "cudaMemcpyBatchAsync", "cuMemcpyBatchAsync"


@dataclass(frozen=True)
class Way:
    """How the code under test comes to the function, and what the evidence has to say of its calls."""

    obtains: str
    major: int
    function: str
    owner: Owner
    given: int
    taken: int | None
    asked: Mapping[str, int] = field(default_factory=dict)
    layer: bool = False


def of_runtime(obtains: str, major: int) -> Way:
    parameters = 9 if major == 12 else 8
    return Way(obtains, major, RUNTIME, Owner.RUNTIME, parameters, parameters)


def of_driver(obtains: str, function: str, parameters: int, major: int = 12, **asked: int) -> Way:
    return Way(obtains, major, function, Owner.DRIVER, parameters, parameters, asked)


WAYS = {
    **{f"{way}, CUDA {major}": of_runtime(way, major) for way in LINKED for major in (12, 13)},
    "dlsym(RTLD_DEFAULT)": of_runtime("dlsym-default", 12),
    "dlsym(handle)": of_runtime("dlsym-handle", 13),
    "dlvsym": of_runtime("dlvsym", 13),
    "cuGetProcAddress_v2 at 12080": of_driver("lookup", DRIVER, 9, ask=12080, flags=0),
    "cuGetProcAddress_v2 at 13000": of_driver("lookup", f"{DRIVER}_v2", 8, ask=13000, flags=0),
    "cuGetProcAddress of four parameters": of_driver("old-lookup", f"{DRIVER}_v2", 8, ask=13000, flags=0),
    "cudaGetDriverEntryPoint": of_driver("entry-point", f"{DRIVER}_v2", 8, major=13),
    "cudaGetDriverEntryPointByVersion": of_driver("entry-point-by-version", DRIVER, 9, major=13),
    # What a layer takes is what it passes on, and so not known of itself.
    "preloaded dlsym": Way("dlsym-default", 12, RUNTIME, Owner.SHIM, 9, None, layer=True),
}

KILLED = """
claim()
driver = load("TEST_DRIVER")
runtime = load("TEST_RUNTIME")
caller = load("TEST_CALLER")
if os.environ["TEST_ASK"]:
    caller.caller_ask(int(os.environ["TEST_ASK"]), c_uint64(int(os.environ["TEST_FLAGS"])))
stream = new_stream(runtime)
tail = [0, stream] if os.environ["TEST_GIVEN"] == "9" else [stream, 0]
assert caller.caller_copy(words(0, 0, 0, 3, 0, 0, 1, *tail, 0)) == 0
driver.driver_hang()
runtime.check_hang()
caller.caller_copy(words(0, 0, 0, 4, 0, 0, 1, *tail, 0))
"""


def killed_in_its_second_call(programs: Programs, way: Way) -> tuple[Evidence, dict[str, Path]]:
    compiler = programs.compiler
    runtime = compiler.runtime(way.major)
    libraries = {
        "driver": compiler.driver(),
        "runtime": runtime,
        "caller": caller_by(compiler, way.obtains, runtime),
    }
    settings = {
        **libraries,
        "libcudart": runtime,
        "version_node": runtime.name,
        "given": way.given,
        "ask": way.asked.get("ask", ""),
        "flags": way.asked.get("flags", ""),
    }
    layer = compiler.library("liblayer.so", str(LAYER)) if way.layer else None
    with programs.start(KILLED, settings, preload=layer) as process:
        while not in_its_second_call(programs.evidence_file.read(0)):
            assert process.poll() is None, process.communicate()
        process.kill()
    assert process.returncode == -signal.SIGKILL
    return programs.evidence_file.read(0), libraries


def assert_nothing_is_lost(evidence: Evidence, way: Way, caller: Path) -> None:
    """Hold the evidence of a process that was killed in its second call against the way."""
    calls = evidence.batch_calls()
    assert [(call.count, call.returned) for call in calls] == [(3, 0), (4, None)]
    expected = (way.function, way.owner, way.given, way.taken, str(caller))
    for call in calls:
        assert (call.function, call.owner, call.given, call.taken, call.caller.file) == expected
    assert evidence.last_call == calls[-1]
    assert (evidence.batch_count, evidence.per_copy_count, evidence.lost) == (2, 0, 0)
    assert (evidence.path, evidence.mismatches, evidence.unseen) == (CopyPath.BATCH, (), ())


def in_its_second_call(evidence: Evidence) -> bool:
    """Whether the function that hangs has been entered, and not only the layer above it."""
    return any(call.count == 4 and call.owner is not Owner.SHIM for call in evidence.in_flight)


@pytest.mark.parametrize("name", WAYS)
def test_nothing_of_a_way_is_lost(programs: Programs, name: str) -> None:
    way = WAYS[name]
    evidence, libraries = killed_in_its_second_call(programs, way)
    assert_nothing_is_lost(evidence, way, libraries["caller"])


def test_layer_passes_on_what_is_not_its_own(programs: Programs) -> None:
    evidence, libraries = killed_in_its_second_call(programs, WAYS["preloaded dlsym"])
    [layer] = evidence.layers
    assert Path(layer).name == "liblayer.so"
    seen = [(call.caller.file, call.callee.file, call.given, call.taken) for call in evidence.calls]
    asked, passed_on = (str(libraries["caller"]), layer), (layer, str(libraries["runtime"]))
    to_driver = (str(libraries["runtime"]), str(libraries["driver"]))
    whole = [(*asked, 9, None), (*passed_on, 9, 9), (*to_driver, 9, 9)]
    assert seen == [*whole, *whole[:2]]
