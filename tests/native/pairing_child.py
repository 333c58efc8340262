"""Runs one implementation on simulated pairings, each in a fork of its own, and prints how each ended.

Takes one JSON object: ``implementation``, and ``pairings``: id -> runtime and driver, each version and path.
Prints a JSON object: id -> "right", the name of the signal that ended it, or what was wrong.
"""

from __future__ import annotations

import functools
import json
import os
import resource
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pytest_cudabatch.abi import CudaVersion
from pytest_cudabatch.copies import BoundPlan, Direction, Mixture, make_plan
from pytest_cudabatch.cuda import Runtime, SimulatedVersions
from pytest_cudabatch.implementations import BoundImplementation, load

COUNTS = (1, 100, 1025)


def open_runtime(pairing: dict[str, str]) -> Runtime:
    driver, runtime = CudaVersion.parse(pairing["driver"]), CudaVersion.parse(pairing["runtime"])
    SimulatedVersions(driver, runtime).apply()
    opened = Runtime.open(Path(pairing["runtime_path"]), driver=Path(pairing["driver_path"]))
    assert (opened.version, opened.driver_version) == (runtime, driver)
    return opened


def copy(
    runtime: Runtime, implementation: BoundImplementation, direction: Direction, mixture: Mixture
) -> None:
    stream = runtime.stream_create()
    for count in COUNTS:
        with BoundPlan(make_plan(direction, mixture, count, seed=count), runtime) as bound:
            bound.fill()
            code = implementation.copy(bound, stream)
            runtime.stream_synchronize(stream)
            assert (code, runtime.last_error()) == (0, 0)
            assert bound.verify() == []
    runtime.stream_destroy(stream)


def copy_from_new_thread(runtime: Runtime, implementation: BoundImplementation) -> None:
    """The driver, unlike the runtime, gives a new thread no context of itself."""
    stream = runtime.stream_create()
    codes: list[int] = []
    with BoundPlan(make_plan(Direction.H2D, Mixture.MIXED, 10, seed=0), runtime) as bound:
        bound.fill()
        thread = threading.Thread(target=lambda: codes.append(implementation.copy(bound, stream)))
        thread.start()
        thread.join()
        runtime.stream_synchronize(stream)
        assert (codes, bound.verify()) == ([0], [])


def run(name: str, pairing: dict[str, str]) -> str:
    runtime = open_runtime(pairing)
    implementation = load(name).open()
    for direction in Direction:
        for mixture in Mixture:
            copy(runtime, implementation, direction, mixture)
    copy_from_new_thread(runtime, implementation)
    return "right"


def in_fork(act: Callable[[], str]) -> str:
    """Return what ``act`` returns in a fork, the exception that it raised, or the signal that ended it."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        answer = "unfinished"
        try:
            answer = act()
        except Exception as error:  # noqa: BLE001 - whatever it is, the test compares its text
            answer = f"{type(error).__name__}: {error}"
        finally:
            os.write(writing, answer.encode()[:4000])
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answers:
        text = answers.read()
    _, status = os.waitpid(child, 0)
    return signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else text


def main(request: dict[str, Any]) -> dict[str, str]:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    name = request["implementation"]
    return {
        identity: in_fork(functools.partial(run, name, pairing))
        for identity, pairing in request["pairings"].items()
    }


if __name__ == "__main__":
    json.dump(main(json.loads(sys.argv[1])), sys.stdout)
