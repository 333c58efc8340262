"""Tests that mistreat their process. Not collected: test_torture.py runs a copy of this file in cells."""

# ruff: noqa: T201 - printing is part of what they do

from __future__ import annotations

import atexit
import ctypes
import json
import os
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

libc = ctypes.CDLL(None)
libc_with_gil = ctypes.PyDLL(None)


def test_passes() -> None:
    print("to stdout")
    print("to stderr", file=sys.stderr)


def test_fails() -> None:
    print("before the assertion")
    assert sys.platform == "right"


def test_raises() -> None:
    raise LookupError("of the test")


def test_skips() -> None:
    pytest.skip("not today")


@pytest.fixture
def skipping() -> None:
    pytest.skip("not in this fixture")


def test_skips_in_setup(skipping: None) -> None:
    pass


@pytest.mark.xfail(reason="known")
def test_xfails() -> None:
    raise LookupError


@pytest.mark.xfail(reason="fixed by now", strict=False)
def test_xpasses() -> None:
    pass


def test_has_subtests(request: pytest.FixtureRequest) -> None:
    subtests = request.getfixturevalue("subtests")
    with subtests.test("good"):
        pass
    with subtests.test("bad"):
        print("in a subtest")
        raise LookupError
    print("after the subtests")


def test_exits_python() -> None:
    sys.exit(0)


def test_warns() -> None:
    warnings.warn("mind the gap", DeprecationWarning, stacklevel=1)


def test_keeps_its_properties(record_property: Callable[[str, object], None]) -> None:
    record_property("number", 12)
    record_property("path", Path("/a/b"))


def at_exit_of_c(action: Callable[[], object]) -> None:
    """Have libc's exit call ``action``, after Python's own handlers."""
    handler = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_void_p)(lambda _status, _argument: action())
    kept_for_c.append(handler)
    libc.on_exit(handler, None)


kept_for_c: list[object] = []


def test_leaves_with_3_in_exit_handler_of_c() -> None:
    at_exit_of_c(lambda: os._exit(3))


def test_leaves_with_0_in_atexit() -> None:
    atexit.register(os._exit, 0)


def test_leaves_with_0() -> None:
    os._exit(0)


def test_leaves_with_7() -> None:
    os._exit(7)


def test_leaves_with_0_in_teardown(request: pytest.FixtureRequest) -> None:
    request.addfinalizer(lambda: os._exit(0))


def test_interrupts() -> None:
    raise KeyboardInterrupt


def test_exits_pytest_in_setup(exits_pytest: None) -> None:
    pass


@pytest.fixture
def exits_pytest() -> None:
    pytest.exit("enough")


@pytest.fixture
def torn_down() -> Iterator[None]:
    yield
    print("torn down")


def test_exits_pytest(torn_down: None) -> None:
    print("before the exit")
    pytest.exit("enough", returncode=9)


def test_exits_pytest_in_teardown(torn_down: None, request: pytest.FixtureRequest) -> None:
    request.addfinalizer(lambda: pytest.exit("enough"))


def test_closes_every_descriptor() -> None:
    os.closerange(0, 4096)


def test_loops() -> None:
    while True:
        pass


def test_hangs_in_c() -> None:
    libc.sleep(3600)


def test_hangs_in_c_with_the_gil() -> None:
    libc_with_gil.sleep(3600)


def test_hangs_in_c_until_any_signal() -> None:
    libc_with_gil.pause()


@pytest.fixture
def hanging() -> None:
    libc.sleep(3600)


def test_hangs_in_fixture(hanging: None) -> None:
    pass


def hang() -> None:
    libc.sleep(3600)


def test_hangs_in_atexit() -> None:
    atexit.register(hang)


def test_blocks_every_signal() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    threading.Event().wait()


def test_ignores_sigterm() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    threading.Event().wait()


def test_hangs_with_a_handler_of_its_own() -> None:
    signal.signal(signal.SIGUSR1, lambda *_: print("handled"))
    while True:
        threading.Event().wait(60)


def test_stops_itself() -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def test_leaves_a_child() -> None:
    subprocess.Popen(["sleep", "3600"])


def test_leaves_a_daemon() -> None:
    subprocess.Popen(["sleep", "3600"], start_new_session=True)


def test_leaves_a_family() -> None:
    script = "sleep 3600 & sleep 3600 & echo ready; wait"
    shell = subprocess.Popen(["sh", "-c", script], start_new_session=True, stdout=subprocess.PIPE)
    assert shell.stdout is not None
    assert shell.stdout.readline() == b"ready\n"


def test_leaves_a_fork_that_holds_every_descriptor() -> None:
    if os.fork() == 0:
        os.setsid()
        libc.pause()


def test_lets_a_fork_run_on_into_pytest() -> None:
    copy = os.fork()
    if copy:
        _, status = os.waitpid(copy, 0)
        assert os.waitstatus_to_exitcode(status) == os.EX_SOFTWARE


def test_leaks_a_thread() -> None:
    threading.Thread(target=libc.sleep, args=(3600,)).start()


def test_writes_much() -> None:
    os.write(1, b"<head>")
    for _ in range(100):
        os.write(1, b"x" * (1 << 20))
    os.write(1, b"<tail>")


def channel() -> int:
    """Find the file of the announcements among this process's descriptors."""
    found = [entry.name for entry in Path("/proc/self/fd").iterdir() if "cudabatch-channel" in target(entry)]
    assert len(found) == 1
    return int(found[0])


def target(entry: Path) -> str:
    try:
        return str(entry.readlink())
    except OSError:  # the descriptor of the directory itself
        return ""


def announce(sequence: int, kind: str, body: dict[str, object]) -> None:
    """Write what the child itself would: begin, phase, report of set-up and phase have been 0 to 3."""
    os.write(channel(), json.dumps([sequence, kind, body]).encode() + b"\n")


def test_writes_garbage_into_the_channel() -> None:
    os.write(channel(), b"\x00\xff not an announcement\n")


def test_writes_half_an_announcement_at_the_end() -> None:
    at_exit_of_c(lambda: os.write(channel(), b"[9, "))


def test_floods_the_channel() -> None:
    pipe, line = channel(), b"garbage" * 1000 + b"\n"
    while True:
        os.write(pipe, line)


def test_repeats_a_sequence_number() -> None:
    announce(3, "phase", {"phase": "call", "stdout": 0, "stderr": 0, "expected_failure": None})


def test_reports_for_another_test() -> None:
    data = {"$report_type": "TestReport", "nodeid": "other.py::test", "when": "call", "outcome": "passed"}
    announce(4, "report", {"data": data})


def test_announces_its_own_end() -> None:
    announce(4, "done", {"stdout": 0, "stderr": 0})
    announce(5, "end", {})
    os._exit(0)
