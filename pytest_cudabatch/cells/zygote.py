"""The pytest plugin of a zygote: collects, then forks one child per request until its supervisor goes.

Loaded by a supervisor only (``-p pytest_cudabatch.cells.zygote``). The zygote runs no test and no fixture
itself, so what a child inherits is imported modules and collected items. It adopts what a test leaves
behind, kills and counts it.
"""

from __future__ import annotations

import gc
import json
import os
import select
import socket
import sys
import tempfile
from dataclasses import asdict
from typing import Any, TextIO

import pytest

from pytest_cudabatch.cells import child, processes, protocol
from pytest_cudabatch.cells.outcome import CollectedItem, CollectedMarker, CollectionError
from pytest_cudabatch.cells.service import Service

__all__ = ["pytest_load_initial_conftests"]


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Take the socket from the environment before any file of the user's is imported."""
    number = os.environ.pop(protocol.ZYGOTE_FD, None)
    if number is None:
        raise pytest.UsageError(f"{__name__} is loaded by a supervisor; {protocol.ZYGOTE_FD} is not set")
    conversation = socket.socket(fileno=int(number))
    conversation.set_inheritable(False)
    # Nobody here watches the socket while modules are imported.
    processes.die_with_parent()
    if _has_hung_up(conversation):
        os._exit(os.EX_UNAVAILABLE)  # the supervisor ended before it was this process's to watch
    early_config.pluginmanager.register(_Plugin(conversation))


def _has_hung_up(conversation: socket.socket) -> bool:
    poll = select.poll()
    poll.register(conversation, 0)  # whatever is asked for, the other side's end is told
    return bool(poll.poll(0))


class _Plugin:
    def __init__(self, conversation: socket.socket) -> None:
        self._conversation = conversation
        self._errors: list[CollectionError] = []
        self._stdout: TextIO = sys.stdout
        self._log: TextIO = sys.stdout

    @pytest.hookimpl(tryfirst=True)
    def pytest_configure(self) -> None:
        """Show the terminal reporter the zygote's log as stdout: descriptor 1 is the test's in a child."""
        self._stdout = sys.stdout
        self._log = os.fdopen(os.dup(1), "w", buffering=1, encoding="utf-8", errors="backslashreplace")
        sys.stdout = self._log

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        sys.stdout = self._stdout

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._errors.append(CollectionError(report.nodeid, report.longreprtext))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Serve instead of running tests."""
        items = {item.nodeid: item for item in reversed(session.items)}
        plugins, announcer = session.config.pluginmanager, child.Announcer()
        plugins.register(announcer)
        if plugins.has_plugin("terminalreporter") and not session.config.getoption("setupshow", False):
            # Nobody reads what it would write for each test; an xdist worker has none either.
            plugins.unregister(name="terminalreporter")
        gc.collect()
        gc.freeze()
        processes.adopt_orphans()
        service = Service(self._conversation, items, announcer)
        with tempfile.TemporaryFile() as collection:
            collection.write(_describe(session.items, self._errors))
            collection.flush()
            service.open(collection.fileno())
        service.serve()


def _describe(items: list[pytest.Item], errors: list[CollectionError]) -> bytes:
    collection = {
        "items": [asdict(_collected(item)) for item in items],
        "errors": [asdict(error) for error in errors],
    }
    return json.dumps(collection).encode()


def _collected(item: pytest.Item) -> CollectedItem:
    markers = tuple(_marker(marker) for marker in item.iter_markers())
    return CollectedItem(item.nodeid, item.location, tuple(item.keywords), markers)


def _marker(marker: pytest.Mark) -> CollectedMarker:
    values = [*marker.args, *marker.kwargs.values()]
    args = tuple(value if _is_json(value) else repr(value) for value in marker.args)
    kwargs = {name: value if _is_json(value) else repr(value) for name, value in marker.kwargs.items()}
    return CollectedMarker(marker.name, args, kwargs, all(map(_is_json, values)))


def _is_json(value: Any) -> bool:
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return False
    return True
