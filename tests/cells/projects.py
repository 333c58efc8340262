"""Small projects whose tests run in cells, and what the tests here ask of them."""

from __future__ import annotations

import os
import select
import textwrap
import time
from collections.abc import Mapping
from pathlib import Path

from pytest_cudabatch.cells import Environment, Zygote

PLENTY = 60.0
"""Seconds for a cell that is expected to end by itself."""

HERMETIC = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""}


def write_project(directory: Path, files: Mapping[str, str]) -> Path:
    directory.mkdir(exist_ok=True)
    (directory / "pytest.ini").write_text("[pytest]\n")
    for name, source in files.items():
        (directory / name).write_text(textwrap.dedent(source))
    return directory


def zygote_of(
    directory: Path,
    *arguments: str,
    variables: Mapping[str, str] | None = None,
    start_limit: float = PLENTY,
    native_stacks: bool = False,
) -> Zygote:
    environment = Environment(
        name="under test",
        arguments=("-p", "no:cacheprovider", *arguments),
        variables={**HERMETIC, **(variables or {})},
        directory=directory,
        native_stacks=native_stacks,
    )
    return Zygote(environment, start_limit=start_limit)


def processes_with(variable: str, value: str) -> list[int]:
    """Return the processes that were started with this in their environment, and what they forked."""
    entry, found = f"{variable}={value}".encode(), []
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                variables = (process / "environ").read_bytes().split(b"\0")
            except OSError:  # it has ended, or belongs to somebody else
                continue
            if entry in variables:
                found.append(int(process.name))
    return found


class Watched:
    """Processes that live now, by pidfd: their numbers may be given to others once they have ended."""

    def __init__(self, processes: list[int]) -> None:
        self._alive = {os.pidfd_open(process): process for process in processes}

    def alive_after(self, seconds: float) -> list[int]:
        """Wait for their ends; return those that have not ended ``seconds`` from now."""
        poll = select.poll()
        for descriptor in self._alive:
            poll.register(descriptor, select.POLLIN)
        limit = time.monotonic() + seconds
        while self._alive and (ended := poll.poll(max(0.0, limit - time.monotonic()) * 1000)):
            for descriptor, _ in ended:
                poll.unregister(descriptor)
                os.close(descriptor)
                del self._alive[descriptor]
        return list(self._alive.values())
