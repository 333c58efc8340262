"""The build for aarch64 under qemu-user: every way in, arities, faults and rules, and simulated CUDA."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_cudabatch.interposer import (
    AppliedInjection,
    CopyPath,
    EvidenceFile,
    Location,
    Owner,
    read_notes,
)

from .guests import COMPILER, MISSING, Build, Guests, build, built_once, configure
from .programs import Compiler, Ended, symbol_offset
from .test_killed_in_a_call import LAYER, WAYS, assert_nothing_is_lost, in_its_second_call
from .test_self_claimed import WAYS as STARTS
from .test_self_claimed import program
from .test_ways_in import caller_by

pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"needs {', '.join(MISSING)}")

UNMAPPED = 0x1238
"""What a wrong call finds behind its last argument: no address, below all that can be mapped."""


@pytest.fixture(scope="session")
def aarch64_build(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Build:
    base = tmp_path_factory.getbasetemp()
    return built_once((base if worker_id == "master" else base.parent) / "aarch64")


@pytest.fixture(scope="session")
def aarch64_compiler(tmp_path_factory: pytest.TempPathFactory) -> Compiler:
    return Compiler(tmp_path_factory.mktemp("aarch64-libraries"), COMPILER)


@pytest.fixture
def guests(aarch64_build: Build, aarch64_compiler: Compiler, tmp_path: Path) -> Iterator[Guests]:
    made = Guests(aarch64_build, aarch64_compiler, tmp_path)
    yield made
    made.evidence_file.close()


@pytest.mark.parametrize("name", WAYS)
def test_nothing_of_a_way_is_lost(guests: Guests, name: str) -> None:
    way, compiler = WAYS[name], guests.compiler
    runtime = compiler.runtime(way.major)
    caller = caller_by(compiler, way.obtains, runtime)
    settings = {"driver": compiler.driver(), "runtime": runtime, "caller": caller}
    settings |= {"libcudart": runtime, "version_node": runtime.name}
    asked = [f"ask={way.asked['ask']},{way.asked['flags']}"] if way.asked else []
    layer = compiler.library("liblayer.so", str(LAYER)) if way.layer else None
    steps = [*asked, f"batch={way.given},3", "hang", f"batch={way.given},4"]
    with guests.start_steps(*steps, settings=settings, preload=layer) as process:
        while not in_its_second_call(guests.evidence_file.read(0)):
            assert process.poll() is None, process.communicate()
        process.kill()
    assert process.returncode == -signal.SIGKILL
    assert_nothing_is_lost(guests.evidence_file.read(0), way, caller)


def small_libraries(guests: Guests, major: int, way: str = "linked") -> dict[str, object]:
    runtime = guests.compiler.runtime(major)
    linked = runtime if way == "linked" else None
    return {"runtime": runtime, "caller": guests.compiler.caller(way, linked), "litter": UNMAPPED}


@pytest.mark.parametrize("major", [12, 13])
def test_call_is_the_same_call(guests: Guests, major: int) -> None:
    """The callee compares all its parameters; the ninth lies on the stack."""
    parameters = 9 if major == 12 else 8
    settings = small_libraries(guests, major)
    plain = guests.run_plain("answer=719", f"batch={parameters},5", "frames", settings=settings)
    ended = guests.run("answer=719", f"batch={parameters},5", "frames", settings=settings)
    assert (ended.status, ended.errors) == (plain.status, plain.errors) == (0, "")
    said = ended.said[0]
    assert (said["code"], said["errno"]) == (plain.said[0]["code"], plain.said[0]["errno"]) == (719, 4711)

    [call] = ended.evidence.batch_calls()
    assert (call.given, call.taken, call.stream) == (parameters, parameters, said["stream"])
    assert (call.count, call.returned, call.owner) == (5, 719, Owner.RUNTIME)
    runtime = Path(str(settings["runtime"]))
    offset = symbol_offset(runtime, "cudaMemcpyBatchAsync")
    assert call.callee == Location(str(runtime), offset, "cudaMemcpyBatchAsync")
    assert ended.evidence.lost == 0

    frames, plain_frames = ended.said[1]["frames"], plain.said[1]["frames"]
    assert frames[:2] == plain_frames[:2]
    assert len(frames) == len(plain_frames) + 1
    assert frames[3:] == plain_frames[2:]


@pytest.mark.parametrize(("layout", "seen"), [("separate-code", 2), ("noseparate-code", 1)])
def test_constructors_call_by_pointer_is_seen_where_the_table_lies_apart_from_code(
    guests: Guests, layout: str, seen: int
) -> None:
    """The linker's default is noseparate-code. A call after the constructor is seen in either layout."""
    runtime = guests.compiler.runtime(13)
    flags = ("-fno-plt", "-DCALL_WHEN_LOADED", f"-Wl,-z,{layout}")
    caller = guests.compiler.caller("linked", runtime, *flags)
    ended = guests.run("batch=8,7", settings={"runtime": runtime, "caller": caller})
    assert (ended.status, ended.errors) == (0, "")
    assert [call.count for call in ended.evidence.batch_calls()] == [0, 7][-seen:]


def test_registers_are_untouched(guests: Guests) -> None:
    settings = {
        "runtime": guests.compiler.runtime(12),
        "more": guests.compiler.library("libvectors.so", "vectors.c"),
    }
    ended = guests.run("vectors", "wide", settings=settings)
    assert (ended.status, ended.errors) == (0, "")
    assert ended.said == [{"changed": 0}, {"value": 0x1122334455667788}]
    assert [call.function for call in ended.evidence.calls] == ["cudaMemcpyAsync_ptsz"] * 2


def test_local_fail_index_says_nine_parameters(guests: Guests) -> None:
    ended = guests.run("failing=2", settings=small_libraries(guests, 12, "dlsym-default"))
    assert (ended.status, ended.said) == (0, [{"code": 0, "fail": 2**64 - 1}])
    [call] = ended.evidence.batch_calls()
    assert (call.given, call.taken, call.count) == (9, 9, 2)


def test_threads_lose_no_call(guests: Guests) -> None:
    threads = guests.compiler.library("libthreads.so", "threads.c", "-pthread")
    settings = {"runtime": guests.compiler.runtime(13), "more": threads}
    ended = guests.run("threads=2000", settings=settings)
    assert (ended.errors, ended.said) == ("", [{"errors": 0}])
    counts = {site.function: (site.calls, site.returned, site.given) for site in ended.evidence.sites}
    assert counts == {"cudaMemcpyBatchAsync": (16_000, 16_000, 8), "cudaMemcpyAsync": (16_000, 16_000, None)}
    assert (ended.evidence.in_flight, len(ended.evidence.calls)) == ((), 256)


def assert_died_in_flight(ended: Ended, given: int, taken: int, count: int) -> None:
    assert ended.status == -signal.SIGSEGV
    [call] = ended.evidence.batch_calls()
    assert call == ended.evidence.in_flight[0]
    assert (call.given, call.taken, call.count, call.returned) == (given, taken, count, None)
    [mismatch] = ended.evidence.mismatches
    assert mismatch == call
    fault = ended.evidence.fault
    assert fault is not None
    assert (fault.signal, fault.thread) == ("SIGSEGV", call.thread)


def test_eight_into_nine_dies_in_flight(guests: Guests) -> None:
    settings = small_libraries(guests, 12)
    ended = guests.run("batch=8,6", settings=settings)
    assert_died_in_flight(ended, 8, 9, 6)
    fault = ended.evidence.fault
    assert fault is not None
    assert fault.place is not None
    assert (fault.address, fault.place.file) == (UNMAPPED, str(settings["runtime"]))


def test_nine_into_eight_dies_in_flight(guests: Guests) -> None:
    ended = guests.run("failing=6", settings=small_libraries(guests, 13))
    assert_died_in_flight(ended, 9, 8, 6)


@pytest.mark.parametrize(
    ("how", "number", "address", "at"),
    [
        ("fail_read", signal.SIGSEGV, 0x1234, "at_read"),
        ("fail_write", signal.SIGSEGV, 0x1234, "at_write"),
        ("fail_illegal", signal.SIGILL, None, "at_illegal"),
    ],
)
def test_fault_says_signal_address_and_place(
    guests: Guests, how: str, number: signal.Signals, address: int | None, at: str
) -> None:
    faulty = guests.compiler.library("libfaulty.so", "faulty.c")
    ended = guests.run(f"fail={how},0x1234", settings={"more": faulty})
    assert ended.status == -number
    fault = ended.evidence.fault
    assert fault is not None
    assert (fault.signal, fault.address) == (number.name, address)
    assert fault.place == Location(str(faulty), symbol_offset(faulty, at))


def simulated(guests: Guests, driver: str, runtime: str, implementation: str) -> dict[str, object]:
    major = runtime.partition(".")[0]
    return {
        "driver": guests.build.simulated(f"driver-{driver}/libcuda.so.1"),
        "runtime": guests.build.simulated(f"runtime-{runtime}/libcudart.so.{major}"),
        "implementation": guests.build.implementation(implementation),
    }


@pytest.mark.parametrize("implementation", ["reference", "per-copy", "specimen-no-plt"])
@pytest.mark.parametrize(("driver", "runtime"), [("12.8", "12.8"), ("13.0", "12.8"), ("13.0", "13.0")])
def test_bytes_arrive_on_simulated_cuda(
    guests: Guests, driver: str, runtime: str, implementation: str
) -> None:
    settings = simulated(guests, driver, runtime, implementation)
    ended = guests.run("copy=5000", settings=settings)
    assert (ended.status, ended.errors) == (0, "")
    [said] = ended.said
    assert (said["code"], said["ready"], said["done"], said["wrong"]) == (0, 0, 0, 0)
    by_batch = implementation != "per-copy"
    assert ended.evidence.path is (CopyPath.BATCH if by_batch else CopyPath.FALLBACK)
    assert (ended.evidence.mismatches, ended.evidence.lost) == ((), 0)


def test_wrong_arity_dies_in_flight_on_simulated_cuda(guests: Guests) -> None:
    ended = guests.run("copy=5000", settings=simulated(guests, "13.0", "13.0", "specimen-dlsym-always-9"))
    assert_died_in_flight(ended, 9, 8, 3)


@pytest.mark.parametrize(
    ("rule", "path"),
    [
        ("batch=801", CopyPath.FALLBACK),
        ("cuGetProcAddress_v2=null", CopyPath.BATCH),
        ("batch=delay:60", CopyPath.BATCH),
    ],
)
def test_rule_takes_effect(guests: Guests, rule: str, path: CopyPath) -> None:
    settings = simulated(guests, "13.0", "13.0", "reference")
    ended = guests.run("copy=5000", settings=settings, rules=rule)
    assert (ended.status, ended.errors) == (0, "")
    [said] = ended.said
    assert (said["code"], said["wrong"]) == (0, 0)
    assert ended.evidence.path is path
    [applied] = ended.evidence.injections
    assert (applied.rule, applied.fired > 0) == (rule, True)
    assert said["seconds"] >= 0.06 or "delay" not in rule


def test_injected_crash_lies_in_the_interposer(guests: Guests) -> None:
    settings = simulated(guests, "13.0", "13.0", "reference")
    ended = guests.run("copy=5000", settings=settings, rules="batch=crash")
    assert ended.status == -signal.SIGSEGV
    [call] = ended.evidence.in_flight
    fault = ended.evidence.fault
    assert fault is not None
    assert fault.place is not None
    assert (fault.address, fault.place.file) == (0, str(guests.build.interposer))
    assert (call.injected, call.thread) == (True, fault.thread)


def test_injected_hang_is_in_flight_when_killed(guests: Guests) -> None:
    settings = simulated(guests, "13.0", "13.0", "reference")
    with guests.start_steps("copy=5000", settings=settings, rules="batch=hang") as process:
        while not guests.evidence_file.read(0).in_flight:
            assert process.poll() is None, process.communicate()
        process.kill()
    [call] = guests.evidence_file.read(0).in_flight
    assert (call.injected, call.count) == (True, 3)
    assert guests.evidence_file.read(0).injections == (AppliedInjection("batch=hang", 1, 1),)


def test_other_abi_ends_in_a_wrong_call(guests: Guests) -> None:
    settings = simulated(guests, "13.0", "13.0", "reference")
    ended = guests.run("copy=5000", settings=settings, rules="cuGetProcAddress_v2=other-abi")
    assert ended.status == -signal.SIGSEGV
    [call] = ended.evidence.in_flight
    assert (call.function, call.given, call.taken) == ("cuMemcpyBatchAsync_v2", 9, 8)


@pytest.fixture
def recorded(tmp_path: Path) -> Iterator[EvidenceFile]:
    with EvidenceFile.create(tmp_path / "recorded", slots=4, self_claimed=True) as made:
        yield made


def test_forked_child_has_a_slot_of_its_own(guests: Guests, recorded: EvidenceFile) -> None:
    settings = small_libraries(guests, 13)
    steps = ["batch=8,1", "fork", "batch=8,2"]
    process = guests.start(guests.program, *steps, settings=settings, evidence=recorded)
    _, errors = process.communicate("go\n", timeout=60)
    assert (process.returncode, errors) == (0, "")
    parent, child = recorded.processes()
    counts = [[call.count for call in each.evidence.batch_calls()] for each in (parent, child)]
    assert (counts, child.parent, parent.pid) == ([[1], [2]], parent.pid, process.pid)
    [image] = read_notes(recorded.path).images
    assert (image.pid, image.program) == (process.pid, str(guests.program))


@pytest.mark.parametrize("way", sorted(STARTS.keys() - {"fexecve", "execveat", "execveat-descriptor"}))
def test_started_program_is_noted(guests: Guests, recorded: EvidenceFile, way: str) -> None:
    """A program of the host, which the kernel runs without the emulator; execveat is not emulated."""
    starter = guests.compiler.library("starter", "starter.c")
    static = program(guests.directory, "counts_arguments.c", "-static")
    process = guests.start(starter, way, static, evidence=recorded)
    assert (process.communicate(timeout=60), process.returncode) == (("", ""), 40 + STARTS[way])
    [unfollowed] = read_notes(recorded.path).unfollowed
    assert (unfollowed.program, unfollowed.unaudited) == (str(static), False)


def test_libraries_fit_pages_of_every_size_and_branch_protection(aarch64_build: Build) -> None:
    described = subprocess.run(
        ["aarch64-linux-gnu-readelf", "--notes", "--segments", "--wide", str(aarch64_build.interposer)],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert "AArch64 feature: BTI" in described
    loaded = [line.split() for line in described.splitlines() if line.split()[:1] == ["LOAD"]]
    assert loaded
    assert {int(fields[-1], 16) for fields in loaded} == {64 * 1024}


@pytest.mark.nightly
def test_everything_builds(tmp_path: Path) -> None:
    built = build(tmp_path)
    assert built.simulated("driver-12.4/libcuda.so.1").exists()


def test_other_architecture_builds_no_interposer_and_says_so(tmp_path: Path) -> None:
    said = configure(tmp_path, "riscv64", "cc")
    assert "interposer: not built, it has no call stubs for riscv64" in said
