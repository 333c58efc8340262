"""Makes an implementation's calls on simulated pairings, each in a fork of its own; prints how each ended.

Takes one JSON object: ``implementation``, ``pairings`` as pairing_child.py has them, and ``calls``, names of:

    mixed, uniform   plans of 40 copies of different sizes, or of one, on a non-blocking stream
    thread           the plan "mixed" from a thread that has made no CUDA call
    stream 0 ...     the plan "mixed" on that default stream
    empty            the plan "mixed" with two copies of no bytes
    bad              the plan "uniform", with no destination for the sixth copy

Prints a JSON object: pairing -> call -> "right", a signal, or the return code, how many copies came right,
and what else was wrong.
"""

from __future__ import annotations

import functools
import json
import resource
import sys
import threading
from typing import Any

from pairing_child import in_fork, open_runtime

from pytest_cudabatch.copies import BoundPlan, Direction, GuardOverrun, Mixture, Plan, WrongBytes, make_plan
from pytest_cudabatch.cuda import Runtime
from pytest_cudabatch.implementations import BoundImplementation, load

COUNT = 40
EMPTY = {3, 17}
BAD_INDEX = 5


class WithoutOneDestination:
    """A bound plan as an implementation sees it, but for one destination."""

    def __init__(self, bound: BoundPlan) -> None:
        self.srcs, self.sizes, self.count = bound.srcs, bound.sizes, bound.count
        self.dsts = bound.dsts.copy()
        self.dsts[BAD_INDEX] = 0


def plan_of(call: str) -> Plan:
    mixture = Mixture.UNIFORM if call in {"uniform", "bad"} else Mixture.MIXED
    return make_plan(Direction.MIXED, mixture, COUNT, seed=2, empty=EMPTY if call == "empty" else 0.0)


def make_call(call: str, runtime: Runtime, implementation: BoundImplementation, bound: BoundPlan) -> int:
    """Make the call, wait for it, and return the implementation's code."""
    stream = int(call.split()[1], 0) if call.startswith("stream") else runtime.stream_create()
    arguments: Any = WithoutOneDestination(bound) if call == "bad" else bound
    codes: list[int] = []
    if call == "thread":
        thread = threading.Thread(target=lambda: codes.append(implementation.copy(arguments, stream)))
        thread.start()
        thread.join()
    else:
        codes.append(implementation.copy(arguments, stream))
    runtime.device_synchronize()
    return codes[0]


def describe(code: int, last_error: int, bound: BoundPlan) -> str:
    problems = bound.verify()
    wrong = {problem.buffer: problem.copies for problem in problems if isinstance(problem, WrongBytes)}
    overruns = {problem.buffer: problem.places for problem in problems if isinstance(problem, GuardOverrun)}
    parts = [] if code == 0 and not problems else [str(code), f"{COUNT - sum(wrong.values())} copied"]
    if overruns:
        parts.append(f"{sum(overruns.values())} overrun")
    if last_error != 0:
        parts.append(f"{last_error} left behind")
    return ", ".join(parts) or "right"


def run(name: str, pairing: dict[str, str], call: str) -> str:
    runtime = open_runtime(pairing)
    implementation = load(name).open()
    with BoundPlan(plan_of(call), runtime) as bound:
        bound.fill()
        code = make_call(call, runtime, implementation, bound)
        return describe(code, runtime.last_error(), bound)


def main(request: dict[str, Any]) -> dict[str, dict[str, str]]:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    name = request["implementation"]
    return {
        identity: {call: in_fork(functools.partial(run, name, pairing, call)) for call in request["calls"]}
        for identity, pairing in request["pairings"].items()
    }


if __name__ == "__main__":
    json.dump(main(json.loads(sys.argv[1])), sys.stdout)
