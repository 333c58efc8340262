"""The process of one cell: runs one item under pytest's own protocol and announces all that happens."""

from __future__ import annotations

import atexit
import ctypes
import faulthandler
import io
import os
import sys
import time
import warnings
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NoReturn

import pytest

from pytest_cudabatch.cells.attaching import wait_in_fatal_signals
from pytest_cudabatch.cells.interruption import report_interruption
from pytest_cudabatch.cells.payload import PAYLOAD, SPENT
from pytest_cudabatch.cells.protocol import STACKS_SIGNAL, Json, encode_line
from pytest_cudabatch.cells.xfail import expected_failure

__all__ = ["Request", "run"]


# Looked up in the zygote, once for all its children.
_libc = ctypes.CDLL(None)
_setvbuf, _fflush = _libc.setvbuf, _libc.fflush
_exit = ctypes.PyDLL(None).exit
_LINE_BUFFERED = 1
"""_IOLBF of <stdio.h>."""


@dataclass(frozen=True)
class Cell:
    """An item and the payload that its run is given."""

    item: pytest.Item
    payload: dict[str, Any]


@dataclass(frozen=True)
class Request:
    """What to run, and the descriptors of the announcements, the output and the stacks."""

    cells: tuple[Cell, ...]
    waits: bool
    """Whether a supervisor with a debugger watches: the process then waits for it in fatal signals."""
    channel: int
    stdout: int
    stderr: int
    stacks: int


def run(request: Request, variables: Mapping[str, str | None], announcer: Announcer) -> NoReturn:
    """Run the items in this process, just forked, and leave. ``variables`` are restored first (None: unset).

    ``announcer`` is a registered plugin of the items' config. A test that finds the process unfit for another
    one (``SPENT``) is the last of them.
    Leaves through libc's exit and not through the interpreter's end, which would wait for threads that the
    test left behind: Python's and C's exit handlers and the destructors of libraries still run, so that a
    crash in them is seen.
    """
    _take_place(request, variables)
    for cell in request.cells:
        announcer.begin(request, cell.item)
        _run_cell(cell, announcer)
        spent = cell.item.config.stash.get(SPENT, None)
        if spent is not None and cell is not request.cells[-1]:
            announcer.say("spent", reason=spent)
            os._exit(os.EX_SOFTWARE)
    atexit._run_exitfuncs()
    announcer.say("end")
    # PyDLL: the GIL stays held, so no thread of the test runs Python while libraries are torn down.
    _exit(0)
    os._exit(os.EX_SOFTWARE)


def _run_cell(cell: Cell, announcer: Announcer) -> None:
    """Run one item as if it were the only one: all fixtures end with it, those of the session too."""
    cell.item.config.stash[PAYLOAD] = cell.payload
    _run_protocol(cell.item, announcer)
    announcer.say("done", **announcer.output_sizes())


def _run_protocol(item: pytest.Item, announcer: Announcer) -> None:
    try:
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
    except pytest.exit.Exception as error:
        report_interruption(item, announcer.phase, error)
        announcer.say("stop", reason=error.msg, returncode=error.returncode)
    except KeyboardInterrupt as error:
        # The user's own Ctrl-C reaches the supervisor alone, so the test has raised this one.
        report_interruption(item, announcer.phase, error)


def _take_place(request: Request, variables: Mapping[str, str | None]) -> None:
    os.setsid()
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    os.dup2(request.stdout, 1)
    os.dup2(request.stderr, 2)
    _write_through()
    if request.waits:
        wait_in_fatal_signals(request.stacks)
    faulthandler.enable(request.stacks, all_threads=True)
    faulthandler.register(STACKS_SIGNAL, request.stacks, all_threads=True)


def _write_through() -> None:
    """Hold no output back: a crash would take it along. Python's streams are unbuffered from the start."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="replace")  # as pytest's own capturing has it
    _setvbuf(ctypes.c_void_p.in_dll(_libc, "stdout"), None, _LINE_BUFFERED, ctypes.c_size_t(0))


class Announcer:
    """A plugin that forwards phases, reports and warnings to the supervisor, in the order they happen.

    Registered in the zygote, where it has nothing to say: what was recorded there is no cell's.
    """

    def __init__(self) -> None:
        self._request: Request | None = None
        self._process = 0
        self._sequence = 0
        self.phase: Literal["setup", "call", "teardown"] = "setup"

    def begin(self, request: Request, item: pytest.Item) -> None:
        """Speak of ``item``, which this process runs on ``request``, from now on."""
        self._request, self._process, self._sequence, self.phase = request, os.getpid(), 0, "setup"
        self.say("begin", nodeid=item.nodeid, at=time.monotonic())

    def say(self, kind: str, /, **body: Json) -> None:
        """Write one announcement, whole."""
        assert self._request is not None  # only a child has anything to say
        if os.getpid() != self._process:
            _end_copy()
        line = memoryview(encode_line(self._sequence, kind, body))
        self._sequence += 1
        while line:
            line = line[os.write(self._request.channel, line) :]

    def output_sizes(self) -> dict[str, int]:
        """Return how much has been written to each output file, in bytes."""
        assert self._request is not None
        _fflush(None)
        files = {"stdout": self._request.stdout, "stderr": self._request.stderr}
        return {name: os.fstat(descriptor).st_size for name, descriptor in files.items()}

    def _begin(self, phase: Literal["setup", "call", "teardown"], item: pytest.Item) -> None:
        self.phase = phase
        self.say("phase", phase=phase, expected_failure=expected_failure(item), **self.output_sizes())

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, None, None]:
        """Announce set-up."""
        self._begin("setup", item)
        yield

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, None, None]:
        """Announce the call."""
        self._begin("call", item)
        yield

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, None, None]:
        """Announce teardown."""
        self._begin("teardown", item)
        yield

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Forward every report: subtests send more than three."""
        assert self._request is not None
        config = self._request.cells[0].item.config
        # pytest fails a test for its subtests when it asks for the status to show.
        config.hook.pytest_report_teststatus(config=config, report=report)
        data = config.hook.pytest_report_to_serializable(config=config, report=report)
        self.say("report", data=data)

    def pytest_warning_recorded(
        self,
        warning_message: warnings.WarningMessage,
        when: str,
        nodeid: str,
        location: tuple[str, int, str] | None,
    ) -> None:
        """Forward a warning as data."""
        if self._request is None:
            return
        self.say(
            "warning",
            category_module=warning_message.category.__module__,
            category_name=warning_message.category.__name__,
            text=str(warning_message.message),
            filename=str(warning_message.filename),
            lineno=warning_message.lineno,
            when=when,
            nodeid=nodeid,
            location=location,
        )


def _end_copy() -> NoReturn:
    """End a process that the test forked and that ran on into pytest; the test itself is the other one."""
    os.write(2, b"a process forked by the test ran on into pytest and was ended\n")
    os._exit(os.EX_SOFTWARE)
