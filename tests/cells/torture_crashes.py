"""Tests that end their process by a signal. Not collected: they run in cells, as torture.py does."""

# ruff: noqa: T201 - printing is part of what they do

from __future__ import annotations

import atexit
import ctypes
import faulthandler
import mmap
import os
import platform
import resource
import signal
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

libc = ctypes.CDLL(None)

ENDLESS_CALL = {"x86_64": "e8fbffffff", "aarch64": "fd7bbfa9ffffff97"}
"""Machine code of a function that calls itself: call -5; stp x29, x30, [sp, #-16]! and bl -4."""

UNDEFINED = {"x86_64": "0f0b", "aarch64": "00000000"}
"""An instruction that is none, for ever: ud2; udf #0."""


def crash() -> None:
    ctypes.memset(0, 1, 1)


def execute(codes: dict[str, str]) -> None:
    code = bytes.fromhex(codes[platform.machine()])
    page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(code)
    ctypes.CFUNCTYPE(None)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()


def test_segfaults() -> None:
    print("unfinished line, ", end="")
    libc.printf(b"of printf\n")
    crash()


@pytest.mark.xfail(reason="a known crash")
def test_xfails_by_a_crash() -> None:
    print("before it")
    crash()


def test_aborts() -> None:
    os.abort()


def test_reads_beyond_a_mapped_file() -> None:
    with tempfile.TemporaryFile() as file:
        file.truncate(mmap.PAGESIZE)
        view = mmap.mmap(file.fileno(), mmap.PAGESIZE)
        file.truncate(0)
        print(view[0])


def test_divides_by_zero() -> None:
    if platform.machine() == "x86_64":
        libc.div(1, 0)
    signal.raise_signal(signal.SIGFPE)  # other processors answer 0


def test_executes_what_is_no_instruction() -> None:
    execute(UNDEFINED)


def test_overflows_its_stack() -> None:
    execute(ENDLESS_CALL)


def test_kills_itself() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_gets_a_signal_without_a_name() -> None:
    os.kill(os.getpid(), signal.SIGRTMIN + 3)


def test_runs_out_of_address_space() -> None:
    used = int(Path("/proc/self/statm").read_text().split()[0]) * mmap.PAGESIZE
    resource.setrlimit(resource.RLIMIT_AS, (used + (64 << 20),) * 2)
    bytearray(1 << 30)


def test_is_killed_for_its_memory() -> None:
    """Join the memory cgroup that the caller could make, and use more than it may have."""
    group = os.environ.get("TORTURE_CGROUP")
    if group is None:
        print("no cgroup can be made here: SIGKILL, which is what it looks like, in its place")
        os.kill(os.getpid(), signal.SIGKILL)
    print("in a cgroup")
    (Path(str(group)) / "cgroup.procs").write_text(str(os.getpid()))
    bytearray(b"x") * (1 << 30)


def test_uses_up_its_processor_time() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (1, 2))
    while True:
        pass


def test_segfaults_under_a_faulthandler_of_its_own() -> None:
    faulthandler.enable(sys.stderr)
    crash()


def test_segfaults_after_it_disabled_the_faulthandler() -> None:
    faulthandler.disable()
    crash()


@pytest.fixture
def property_in_setup(record_property: Callable[[str, object], None]) -> None:
    record_property("early", "kept")


def test_keeps_properties_of_setup_and_segfaults(property_in_setup: None) -> None:
    crash()


@pytest.fixture
def crashing_setup() -> None:
    print("in the fixture")
    crash()


def test_segfaults_in_setup(crashing_setup: None) -> None:
    pass


@pytest.fixture
def crashing_teardown() -> Iterator[None]:
    yield
    print("in the teardown")
    crash()


def test_segfaults_in_teardown(crashing_teardown: None) -> None:
    print("in the call")


def test_fails_and_segfaults_in_teardown(crashing_teardown: None) -> None:
    raise LookupError


@pytest.fixture(scope="session")
def crashing_session_setup() -> None:
    crash()


def test_segfaults_in_session_setup(crashing_session_setup: None) -> None:
    pass


@pytest.fixture(scope="session")
def crashing_session() -> Iterator[None]:
    yield
    crash()


def test_segfaults_in_session_teardown(crashing_session: None) -> None:
    pass


def test_segfaults_in_atexit() -> None:
    atexit.register(crash)


def test_fails_and_segfaults_in_atexit() -> None:
    atexit.register(crash)
    raise LookupError


class Resource:
    """Holds what is given back when the interpreter ends, at the latest."""


kept = Resource()


def test_segfaults_in_a_finalizer_at_exit() -> None:
    weakref.finalize(kept, crash)


def at_exit_of_c(register: Callable[..., object], *more: object) -> None:
    """Have libc's exit crash by a handler, after Python's own."""
    handler = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(lambda *_: crash())
    kept_for_c.append(handler)
    register(handler, *more)


kept_for_c: list[object] = []


def test_segfaults_in_exit_handler_of_c() -> None:
    at_exit_of_c(libc.on_exit, None)


def test_segfaults_in_a_destructor_at_exit() -> None:
    """As a C++ compiler registers the destructor of a static object."""
    at_exit_of_c(libc.__cxa_atexit, None, None)


def test_leaves_a_daemon_and_segfaults() -> None:
    subprocess.Popen(["sleep", "3600"], start_new_session=True)
    crash()
