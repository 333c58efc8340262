"""What a crash leaves in the evidence; and that the program, its handlers and its core file are the same."""

from __future__ import annotations

import dataclasses
import re
import signal
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.segments import NoteSegment

from pytest_cudabatch import native
from pytest_cudabatch.errors import EvidenceError
from pytest_cudabatch.interposer import Evidence, Fault, Location
from pytest_cudabatch.interposer.decoding import decode
from pytest_cudabatch.interposer.layout import EVIDENCE_NO_OBJECT, EVIDENCE_PUBLISHED, EvidenceSlot

from .faulty import FAULTY, both, faulty
from .programs import Programs, symbol_offset
from .simulated import SIMULATED, simulated_libraries

CRASH = (
    FAULTY
    + """
claim()
say(ready=True)
fail(value)
"""
)


@pytest.mark.parametrize(
    ("how", "value", "expected", "address", "at"),
    [
        ("fail_read", 0, "SIGSEGV", 0, "at_read"),
        ("fail_read", 0x1234, "SIGSEGV", 0x1234, "at_read"),
        ("fail_write", 0x1234, "SIGSEGV", 0x1234, "at_write"),
        ("fail_read", 0xDEAD << 48, "SIGSEGV", None, "at_read"),  # not canonical: the kernel says no address
        ("fail_illegal", 0, "SIGILL", None, "at_illegal"),
        ("fail_divide", 0, "SIGFPE", None, "at_divide"),
        ("fail_jump", 0x2345, "SIGSEGV", 0x2345, None),  # the instruction itself lies nowhere
        ("fail_abort", 0, "SIGABRT", None, None),
        ("fail_raise", int(signal.SIGBUS), "SIGBUS", None, None),
    ],
)
def test_fault_says_signal_address_and_place(
    programs: Programs, how: str, value: int, expected: str, address: int | None, at: str | None
) -> None:
    settings = faulty(programs, how=how, value=value)
    ended = programs.run(CRASH, settings)
    assert ended.status == -signal.Signals[expected]
    fault = ended.evidence.fault
    assert fault is not None
    library = Path(str(settings["faulty"]))
    place = None if at is None else Location(str(library), symbol_offset(library, at))
    assert (fault.signal, fault.address, fault.place) == (expected, address, place)


PAST_THE_END = (
    FAULTY
    + """
claim()
faulty.page_past_the_end.restype = c_uint64
page = faulty.page_past_the_end(b"shortened")
say(page=page)
fail(page + 5)
"""
)


def test_bus_error_past_the_end_of_a_file(programs: Programs) -> None:
    settings = faulty(programs)
    ended = programs.run(PAST_THE_END, settings)
    assert ended.status == -signal.SIGBUS
    fault = ended.evidence.fault
    library = Path(str(settings["faulty"]))
    assert fault is not None
    assert (fault.signal, fault.address) == ("SIGBUS", ended.said[0]["page"] + 5)
    assert fault.place == Location(str(library), symbol_offset(library, "at_read"))


WRONG_CALL = """
claim()
runtime, caller = load("TEST_RUNTIME"), load("TEST_CALLER")
import threading
stream = new_stream(runtime)
thread = threading.Thread(target=lambda: caller.caller_copy(words(0, 0, 0, 3, 0, 0, 1, stream, 8, 8)))
thread.start()
thread.join()
"""


def test_fault_of_a_wrong_call_lies_in_the_callee_and_in_the_calls_thread(programs: Programs) -> None:
    runtime = programs.compiler.runtime(12)
    settings = {
        "runtime": runtime,
        "caller": programs.compiler.caller("linked", programs.compiler.runtime(12)),
    }
    ended = programs.run(WRONG_CALL, settings)
    assert ended.status == -signal.SIGSEGV
    fault, [call] = ended.evidence.fault, ended.evidence.in_flight
    assert fault is not None
    assert fault.place is not None
    assert (fault.place.file, fault.thread, fault.address) == (str(runtime), call.thread, 8)


def test_injected_crash_lies_in_the_interposer(programs: Programs) -> None:
    settings = {**simulated_libraries(programs), "rules": "batch=crash"}
    ended = programs.run(SIMULATED + "inject()\nbatch()\n", settings)
    assert ended.status == -signal.SIGSEGV
    fault = ended.evidence.fault
    assert fault is not None
    assert fault.place is not None
    assert (fault.signal, fault.address) == ("SIGSEGV", 0)
    assert fault.place.file == str(native.library("libcudabatch_interposer.so"))
    assert {call.thread for call in ended.evidence.in_flight} == {fault.thread}


def test_no_fault_in_a_program_that_ends_well(programs: Programs) -> None:
    ended = programs.run("claim()\nsay(ready=True)\n", {})
    assert (ended.status, ended.evidence.recorded, ended.evidence.fault) == (0, True, None)


FORKED = (
    FAULTY
    + """
claim(0)

def child(slot):
    pid = os.fork()
    if pid == 0:
        if slot is not None:
            claim(slot)
        fail(value)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

say(statuses=[child(1), child(None)])
"""
)


def test_forked_child_has_a_fault_of_its_own(programs: Programs) -> None:
    programs.evidence_file.clear(1)
    ended = programs.run(FORKED, faulty(programs))
    assert (ended.status, ended.errors) == (0, "")
    assert ended.said == [{"statuses": [-signal.SIGSEGV] * 2}]
    assert ended.evidence.fault is None
    fault = programs.evidence_file.read(1).fault
    assert fault is not None
    assert (fault.signal, fault.address) == ("SIGSEGV", 0x1234)


def plain(errors: str) -> str:
    return re.sub(r"0x[0-9a-f]+", "0x…", errors)


TRACEBACK = {
    "before": "import faulthandler; faulthandler.enable()\n" + CRASH,
    "after": CRASH.replace("claim()", "claim(); import faulthandler; faulthandler.enable()"),
}


@pytest.mark.parametrize(
    ("when", "how"),
    [
        ("before", "fail_read"),
        ("before", "fail_divide"),
        ("before", "fail_illegal"),
        ("before", "fail_abort"),
        ("after", "fail_read"),
        ("after", "fail_abort"),
    ],
)
def test_faulthandler_prints_the_same(programs: Programs, when: str, how: str) -> None:
    recorded, alone = both(programs, TRACEBACK[when], faulty(programs, how=how, value=0))
    assert (recorded.status, plain(recorded.errors)) == (alone.status, plain(alone.errors))
    assert "most recent call first" in recorded.errors
    if when == "before":
        assert recorded.evidence.fault is not None


HANDLER = {
    "before": FAULTY
    + "faulty[os.environ['TEST_HANDLER']](int(os.environ['TEST_NUMBER']))\nclaim()\nfail(value)\n",
    "after": FAULTY
    + "claim()\nfaulty[os.environ['TEST_HANDLER']](int(os.environ['TEST_NUMBER']))\nfail(value)\n",
}


SAYING, ALTERNATE = "handle_by_saying", "handle_on_alternate_stack"


@pytest.mark.parametrize(
    ("when", "handler", "how", "value", "number", "code"),
    [
        ("before", SAYING, "fail_read", 0x1234, signal.SIGSEGV, 1),
        ("before", SAYING, "fail_read", 0xDEAD << 48, signal.SIGSEGV, 0x80),
        ("before", SAYING, "fail_divide", 0, signal.SIGFPE, 1),
        ("before", SAYING, "fail_illegal", 0, signal.SIGILL, 2),
        ("before", SAYING, "fail_raise", int(signal.SIGABRT), signal.SIGABRT, -6),
        ("before", SAYING, "fail_raise", int(signal.SIGSEGV), signal.SIGSEGV, -6),
        ("before", ALTERNATE, "fail_read", 0x1234, signal.SIGSEGV, 1),
        ("before", ALTERNATE, "fail_raise", int(signal.SIGABRT), signal.SIGABRT, -6),
        ("after", SAYING, "fail_read", 0x1234, signal.SIGSEGV, 1),
        ("after", SAYING, "fail_raise", int(signal.SIGABRT), signal.SIGABRT, -6),
    ],
)
def test_programs_own_handler_gets_the_same(
    programs: Programs, when: str, handler: str, how: str, value: int, number: int, code: int
) -> None:
    settings = faulty(programs, how=how, value=value, number=int(number), handler=handler)
    recorded, alone = both(programs, HANDLER[when], settings)
    assert (recorded.status, alone.status) == (42, 42)
    [said] = recorded.said
    if code > 0:
        assert said == alone.said[0]
    # Where the signal was sent the instruction is one of libc's, whose distance differs from run to run.
    assert (said["signal"], said["code"], said["by_us"]) == (number, code, int(code <= 0))
    assert said["alternate"] == int(handler == ALTERNATE)
    assert (recorded.evidence.fault is not None) == (when == "before")


OVERFLOW = (
    FAULTY
    + """
faulty.handle_on_alternate_stack(11)
claim()
fail(value)
"""
)


def test_stack_overflow_is_handled_on_the_alternate_stack(programs: Programs) -> None:
    recorded, alone = both(programs, OVERFLOW, faulty(programs, how="fail_overflow"))
    assert (recorded.status, alone.status) == (42, 42)
    for ended in (recorded, alone):
        assert (ended.said[0]["signal"], ended.said[0]["alternate"]) == (signal.SIGSEGV, 1)
    fault = recorded.evidence.fault
    assert fault is not None
    assert fault.place is not None
    assert (fault.signal, fault.address) == ("SIGSEGV", recorded.said[0]["address"])
    assert Path(fault.place.file).name == "libfaulty.so"


def test_stack_overflow_without_a_stack_for_handlers_ends_the_process(programs: Programs) -> None:
    recorded, alone = both(programs, CRASH, faulty(programs, how="fail_overflow"))
    assert recorded.status == alone.status == -signal.SIGSEGV
    assert recorded.evidence.fault is None  # no handler can run


IGNORED = """
import signal
signal.signal(signal.SIGABRT, signal.SIG_IGN)
claim()
for _ in range(3):
    os.kill(os.getpid(), signal.SIGABRT)
say(alive=True)
"""


def test_ignored_signal_stays_ignored_and_is_no_fault(programs: Programs) -> None:
    ended = programs.run(IGNORED, {})
    assert (ended.status, ended.said, ended.evidence.fault) == (0, [{"alive": True}], None)


KILLED = """
claim()
say(pid=os.getpid())
import time
while True:
    time.sleep(1)
"""


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGABRT, signal.SIGFPE])
def test_signal_from_outside_ends_the_process_and_has_no_place(programs: Programs, number: int) -> None:
    programs.evidence_file.clear(0)
    with programs.start(KILLED, {}) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(number)
        process.communicate(timeout=60)
    assert process.returncode == -number
    fault = programs.evidence_file.read(0).fault
    assert fault is not None
    assert (fault.signal, fault.address, fault.place) == (signal.Signals(number).name, None, None)


DUMPED = (
    FAULTY
    + """
import resource
claim()
os.chdir(os.environ["TEST_DIRECTORY"])
resource.setrlimit(resource.RLIMIT_CORE, (resource.getrlimit(resource.RLIMIT_CORE)[1],) * 2)
Path("at_read").write_text(str(ctypes.cast(faulty.at_read, c_void_p).value))
fail(value)
"""
)

PR_REG_RIP = 112 + 16 * 8
"""Offset of rip in struct elf_prstatus, x86-64 (<sys/procfs.h>, <sys/user.h>)."""


def test_core_file_shows_the_fault_where_it_was(programs: Programs, tmp_path: Path) -> None:
    places = {}
    for audited in (False, True):
        directory = tmp_path / f"audited-{audited}"
        directory.mkdir()
        with programs.start(DUMPED, faulty(programs, directory=directory), audited=audited) as process:
            pass
        assert process.returncode == -signal.SIGSEGV
        if not audited and not list(directory.glob("core*")):
            pytest.skip("this machine writes no core files into the working directory (core_pattern, ulimit)")
        [core] = directory.glob("core*")
        places[audited] = (instruction_of(core), int((directory / "at_read").read_text()))
        core.unlink()
    assert all(instruction == at_read for instruction, at_read in places.values())


def instruction_of(core: Path) -> int:
    with core.open("rb") as file:
        segments = ELFFile(file).iter_segments("PT_NOTE")
        notes = [note for part in segments if isinstance(part, NoteSegment) for note in part.iter_notes()]
    [status] = [note["n_descdata"] for note in notes if note["n_type"] == "NT_PRSTATUS"]
    return int.from_bytes(status[PR_REG_RIP : PR_REG_RIP + 8], "little")


def test_fault_crosses_processes() -> None:
    fault = Fault("SIGBUS", None, Location("/lib/libcuda.so.1", 0x10), 7)
    assert Evidence.from_json({**EMPTY.to_json(), "fault": dataclasses.asdict(fault)}).fault == fault
    assert Evidence.from_json(EMPTY.to_json()).fault is None


EMPTY = Evidence(recorded=True, lost=0, objects=(), bindings=(), lookups=(), calls=(), sites=())


@pytest.mark.parametrize(("state", "fault"), [(1, None), (2, Fault("SIGSEGV", 16, None, 9))])
def test_only_a_published_fault_is_read(state: int, fault: Fault | None) -> None:
    slot = EvidenceSlot()
    slot.fault.entry.state = state
    slot.fault.signal, slot.fault.code, slot.fault.address, slot.fault.thread = signal.SIGSEGV, 1, 16, 9
    slot.fault.object = EVIDENCE_NO_OBJECT
    assert decode(slot).fault == fault


def test_damaged_fault_is_refused() -> None:
    slot = EvidenceSlot()
    slot.fault.entry.state, slot.fault.signal = EVIDENCE_PUBLISHED, 99
    with pytest.raises(EvidenceError, match="it has a fault by a signal 99"):
        decode(slot)
