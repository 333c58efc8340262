"""Test modules that end the process that imports them: tried in a forked copy of it first.

pytest imports the modules under test into the process that collects them. What a native library does to a
process when it is loaded (a crash, an exit, a hang) would end the session there, with all its results.
"""

from __future__ import annotations

import faulthandler
import os
import select
import signal
import time
import warnings
from contextlib import ExitStack, suppress
from typing import NoReturn

import pytest

from pytest_cudabatch.cells import processes
from pytest_cudabatch.cells.files import clip, unlinked_file
from pytest_cudabatch.cells.protocol import STACKS_SIGNAL
from pytest_cudabatch.cells.reports import failure_representation
from pytest_cudabatch.cells.signals import describe_signal, signal_name
from pytest_cudabatch.cells.stacks import without_runner

__all__ = ["ImportGuard"]

STACKS_LIMIT = 0.3
"""Seconds for faulthandler to write the stacks of an import that hangs."""

_THROUGH = b"through"


class ImportGuard:
    """A plugin that fails the collection of a module whose import ends its process, and goes on.

    An import may take ``limit`` seconds. One that raises is left to pytest, which does it again and says so.
    """

    def __init__(self, limit: float) -> None:
        self._limit = limit

    @pytest.hookimpl(tryfirst=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> pytest.CollectReport | None:
        """Report a module that cannot be imported and survived; leave all others to pytest."""
        if not isinstance(collector, pytest.Module):
            return None
        problem = _try(collector, self._limit)
        if problem is None:
            return None
        location = (os.fspath(collector.path), 0, collector.name)
        return pytest.CollectReport(
            collector.nodeid, "failed", failure_representation(problem, location), result=[]
        )


def _try(module: pytest.Module, limit: float) -> str | None:
    """Import ``module`` in a copy of this process; say what became of the copy where it did not survive."""
    with ExitStack() as resources:
        output, stacks = unlinked_file(resources), unlinked_file(resources)
        result, theirs = os.pipe()
        resources.callback(os.close, result)
        try:
            copy = _fork(module, theirs, output, stacks)
        finally:
            os.close(theirs)
        in_time = _wait(copy, limit)
        with suppress(ProcessLookupError):
            os.killpg(copy, signal.SIGKILL)  # it too, where it hangs
        _, status = os.waitpid(copy, 0)
        os.set_blocking(result, False)
        if in_time and _announced(result):
            return None
        how = _how(os.waitstatus_to_exitcode(status)) if in_time else f"still running after {limit:g} s"
        text = f"{how} when it was imported\n\n{without_runner(clip(stacks))}\n{clip(output)}"
        return text.rstrip()


def _fork(module: pytest.Module, result: int, output: int, stacks: int) -> int:
    parent = os.getpid()
    with warnings.catch_warnings():
        # Since 3.12 Python warns where there are threads; an xdist worker has those of its connection.
        warnings.simplefilter("ignore", DeprecationWarning)
        copy = os.fork()
    if copy == 0:
        try:
            _import(module, parent, result, output, stacks)
        finally:
            os._exit(os.EX_SOFTWARE)
    return copy


def _import(module: pytest.Module, parent: int, result: int, output: int, stacks: int) -> NoReturn:
    os.setsid()
    processes.die_with_parent(parent)
    # Also what the session's streams still hold goes where nobody reads it twice.
    os.dup2(output, 1)
    os.dup2(output, 2)
    faulthandler.enable(stacks, all_threads=True)
    faulthandler.register(STACKS_SIGNAL, stacks, all_threads=True)
    with suppress(BaseException):
        module.obj  # noqa: B018 - reading it imports the module
    os.write(result, _THROUGH)
    os._exit(0)


def _wait(copy: int, limit: float) -> bool:
    """Wait for the end of the copy. After ``limit`` seconds have its stacks written and return False."""
    process = os.pidfd_open(copy)
    try:
        if _ends(process, limit):
            return True
        signal.pidfd_send_signal(process, STACKS_SIGNAL)
        _ends(process, STACKS_LIMIT)
        return False
    finally:
        os.close(process)


def _ends(process: int, limit: float) -> bool:
    poll = select.poll()
    poll.register(process, select.POLLIN)
    end = time.monotonic() + limit
    while (left := end - time.monotonic()) > 0:
        if poll.poll(left * 1000):
            return True
    return False


def _announced(result: int) -> bool:
    try:
        return os.read(result, len(_THROUGH)) == _THROUGH
    except BlockingIOError:  # what the import left behind holds the other end open
        return False


def _how(exit_code: int) -> str:
    return describe_signal(signal_name(-exit_code)) if exit_code < 0 else f"exited with status {exit_code}"
