"""One contender's process: opens CUDA, and then obeys commands, one JSON object a line, on a socket.

``{"do": "prepare", "preset": ..., "count": ..., "seed": ..., "chunk": ...}`` makes the plan, copies it once
and compares all bytes; ``{"do": "measure", "repeats": n}`` times n copies. Each is answered by one line with
a ``status``. The end of the socket ends the process. Whatever a contender raises ends it too, with the
traceback on stderr, and whoever started it sees the exit.
"""

from __future__ import annotations

import argparse
import json
import socket
import time
from pathlib import Path
from typing import Any

from copying.contenders import CONTIGUOUS, Submit, Unavailable, prepare
from copying.presets import PRESETS
from pytest_cudabatch.copies import BoundPlan
from pytest_cudabatch.cuda import Runtime

__all__: list[str] = []


class Worker:
    """The contender ``name`` on ``runtime``; at most one plan is in memory at a time."""

    def __init__(self, name: str, runtime: Runtime) -> None:
        self._name = name
        self._runtime = runtime
        self._stream = runtime.stream_create()
        self._bound: BoundPlan | None = None
        self._submit: Submit = lambda: 0

    def prepare(self, preset: str, count: int | None, seed: int, chunk: int) -> dict[str, Any]:
        """Bind the plan, run it once, and check its bytes."""
        if self._bound is not None:
            self._bound.close()
        bound = self._bound = BoundPlan(PRESETS[preset].plan(count, seed), self._runtime)
        bound.fill()
        try:
            self._submit = prepare(self._name, bound, self._stream, chunk)
        except Unavailable as reason:
            return {"status": "skipped", "reason": str(reason)}
        if code := self._submit():
            return {"status": "failed", "reason": f"CUDA error {code}"}
        self._runtime.stream_synchronize(self._stream)
        problem = _contiguous_problem(bound) if self._name == CONTIGUOUS else _first_problem(bound)
        if problem:
            return {"status": "wrong-bytes", "reason": problem}
        return {"status": "ready", "descriptors": bound.count, "bytes": bound.plan.payload}

    def measure(self, repeats: int) -> dict[str, Any]:
        """Time ``repeats`` copies, in nanoseconds, after one that wakes up what has slept since the last."""
        submitted, completed = [], []
        for repeat in range(-1, repeats):
            start = time.perf_counter_ns()
            code = self._submit()
            returned = time.perf_counter_ns()
            self._runtime.stream_synchronize(self._stream)
            done = time.perf_counter_ns()
            if code:
                return {"status": "failed", "reason": f"CUDA error {code}"}
            if repeat >= 0:
                submitted.append(returned - start)
                completed.append(done - start)
        return {"status": "measured", "submit_ns": submitted, "completion_ns": completed}

    def obey(self, command: dict[str, Any]) -> dict[str, Any]:
        """Do what one line of the socket says."""
        return self.prepare(**command) if command.pop("do") == "prepare" else self.measure(**command)


def _first_problem(bound: BoundPlan) -> str:
    return next(map(str, bound.verify()), "")


def _contiguous_problem(bound: BoundPlan) -> str:
    """Compare the stretch that the contiguous copy moved, which is none of the plan's ranges."""
    import numpy as np  # noqa: PLC0415 - only this contender needs it here

    length = bound.plan.payload
    images = np.empty((2, length), dtype=np.uint8)
    for image, address in zip(images, (bound.srcs.min(), bound.dsts.min()), strict=True):
        bound.memory.memcpy(image.ctypes.data, int(address), length)
    return "" if np.array_equal(*images) else "the destination differs from the source"


def main() -> None:
    """Serve until the socket ends."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name")
    parser.add_argument("--socket", type=int, required=True)
    parser.add_argument("--runtime", type=Path, required=True)
    parser.add_argument("--driver", type=Path)
    options = parser.parse_args()
    worker = Worker(options.name, Runtime.open(options.runtime, driver=options.driver))
    with socket.socket(fileno=options.socket) as channel, channel.makefile("rw", encoding="utf-8") as lines:
        for line in lines:
            lines.write(json.dumps(worker.obey(json.loads(line))) + "\n")
            lines.flush()


if __name__ == "__main__":
    main()
