"""Delays, hangs and crashes by rule: each target class, in a process that really waits, hangs or dies."""

from __future__ import annotations

import signal
from collections.abc import Callable

import pytest

from pytest_cudabatch.interposer import AppliedInjection, Evidence

from .programs import Programs
from .simulated import SIMULATED, run_simulated, simulated_libraries

CALLS = {
    "batch": "batch()",
    "cudaMemcpyBatchAsync": "batch()",
    "cuMemcpyBatchAsync_v2": "batch(driver.cuMemcpyBatchAsync_v2, 8)",
    "per-copy": "single()",
    "cuGetProcAddress_v2": "driver.cuGetProcAddress_v2(NAME, byref(c_void_p()), 13000, c_uint64(0), None)",
    "cudaGetDriverEntryPoint": "runtime.cudaGetDriverEntryPoint(NAME, byref(c_void_p()), c_uint64(0), None)",
    "lookup": '0 if asker.ask_dlsym(b"cudaMemcpyBatchAsync") else 1',
    "driver-version": 'asker.ask_version(b"cuDriverGetVersion", byref(c_int()))',
    "runtime-version": 'asker.ask_version(b"cudaRuntimeGetVersion", byref(c_int()))',
    "cudaStreamCreate": "runtime.cudaStreamCreate(byref(c_void_p()))",
}
"""A call of each target class, by the code under test; with a rule about `lookup` dlsym is what is called."""

CALL = """
import signal, time
NAME = b"cuMemcpyBatchAsync"
inject()
say(ready=True)
start = time.monotonic()
code = {call}
seconds = time.monotonic() - start
signal.setitimer(signal.ITIMER_REAL, 0)
say(code=code, seconds=seconds)
"""

INTERRUPTED = """
import signal
interruptions = []
signal.signal(signal.SIGALRM, lambda *_: interruptions.append(1))
signal.setitimer(signal.ITIMER_REAL, 0.005, 0.005)
"""


def with_call(target: str) -> str:
    return CALL.replace("{call}", CALLS[target])


@pytest.mark.parametrize("interrupted", ["", INTERRUPTED], ids=["quiet", "signals"])
@pytest.mark.parametrize("target", CALLS)
def test_delay_comes_before_the_call_which_is_then_made(
    programs: Programs, target: str, interrupted: str
) -> None:
    rule = f"{target}@1=delay:60"
    ended = run_simulated(programs, interrupted + with_call(target), rule)
    [_, said] = ended.said
    assert said["code"] == 0
    assert said["seconds"] >= 0.06
    assert ended.evidence.injections == (AppliedInjection(rule, 1, 1),)
    assert not any(call.injected for call in ended.evidence.calls)
    assert not any(lookup.injected for lookup in ended.evidence.lookups)
    assert all(call.returned == 0 for call in ended.evidence.calls)


DELAYS_ADD_UP = """
import time
inject()
start = time.monotonic()
code = batch()
say(code=code, seconds=time.monotonic() - start, copied=on_device())
"""


def test_delays_add_up_before_what_else_happens(programs: Programs) -> None:
    ended = run_simulated(programs, DELAYS_ADD_UP, "batch=delay:30; batch=801; batch=delay:40; batch=36")
    [said] = ended.said
    assert (said["code"], said["copied"]) == (801, 0)
    assert said["seconds"] >= 0.07
    fired = [(applied.rule, applied.fired) for applied in ended.evidence.injections]
    assert fired == [("batch=delay:30", 1), ("batch=801", 1), ("batch=delay:40", 1), ("batch=36", 0)]


def unfinished(evidence: Evidence) -> list[tuple[str, bool]]:
    """Return what was called and did not return, copies or questions, and whether a rule is the reason."""
    return [
        *((call.function, call.injected) for call in evidence.in_flight),
        *((row.function, row.injected) for row in evidence.lookups if row.code is None),
        *((row.function, row.injected) for row in evidence.version_queries if row.code is None),
    ]


UNFINISHED = {
    "batch": [("cudaMemcpyBatchAsync", False), ("cuMemcpyBatchAsync_v2", True)],
    "cudaMemcpyBatchAsync": [("cudaMemcpyBatchAsync", True)],
    "cuMemcpyBatchAsync_v2": [("cuMemcpyBatchAsync_v2", True)],
    "per-copy": [("cudaMemcpyAsync", True)],
    "cuGetProcAddress_v2": [("cuGetProcAddress_v2", True)],
    "cudaGetDriverEntryPoint": [("cudaGetDriverEntryPoint", True)],
    "lookup": [],  # a dlsym has no record of its own; the rule's counters tell
    "driver-version": [("cuDriverGetVersion", True)],
    "runtime-version": [("cudaRuntimeGetVersion", True)],
    "cudaStreamCreate": [],
}


@pytest.mark.parametrize("target", CALLS)
def test_crash_is_a_segmentation_fault_in_flight(programs: Programs, target: str) -> None:
    rule = f"{target}@1=crash"
    ended = programs.run(SIMULATED + with_call(target), {**simulated_libraries(programs), "rules": rule})
    assert (ended.status, ended.said) == (-signal.SIGSEGV, [{"ready": True}])
    assert unfinished(ended.evidence) == UNFINISHED[target]
    assert ended.evidence.injections == (AppliedInjection(rule, 1, 1),)


@pytest.mark.parametrize("target", CALLS)
def test_hang_ends_by_sigkill_only_and_is_in_flight(programs: Programs, target: str) -> None:
    rule = f"{target}@1=hang"
    programs.evidence_file.clear(0)
    settings = {**simulated_libraries(programs), "rules": rule}
    with programs.start(INTERRUPTED + SIMULATED + with_call(target), settings) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == '{"ready": true}\n'
        wait_until(programs, lambda evidence: evidence.injected == 1)
        wait_until(programs, lambda evidence: unfinished(evidence) == UNFINISHED[target])
        assert process.poll() is None
        process.kill()
    assert process.returncode == -signal.SIGKILL
    assert programs.evidence_file.read(0).injections == (AppliedInjection(rule, 1, 1),)


def wait_until(programs: Programs, holds: Callable[[Evidence], bool]) -> None:
    while not holds(programs.evidence_file.read(0)):
        pass


THROUGH_A_SIGNAL = """
import faulthandler, signal
faulthandler.register(signal.SIGUSR1, chain=False)
inject()
say(ready=True)
batch(driver.cuMemcpyBatchAsync_v2, 8)
"""


def test_handlers_run_while_a_call_hangs(programs: Programs) -> None:
    programs.evidence_file.clear(0)
    settings = {**simulated_libraries(programs), "rules": "batch=hang"}
    with programs.start(SIMULATED + THROUGH_A_SIGNAL, settings) as process:
        assert process.stderr is not None
        wait_until(programs, lambda evidence: evidence.last_call is not None)
        process.send_signal(signal.SIGUSR1)
        assert "most recent call first" in process.stderr.readline()
        assert process.poll() is None
        process.terminate()
    assert process.returncode == -signal.SIGTERM
