"""The process in which questions are asked; a script, run by path with one argument, a JSON request.

It writes one JSON object a line to the file descriptor ``fd``: ``{"ready": true}`` once the bench stands,
``{"asking": i}`` before and ``{"answer": {...}}`` after the i-th question. It stops when all are asked, or
when the libraries are in no state to answer another one; ``{"unready": why}`` says that there is no bench.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from pathlib import Path
from typing import Any

if __name__ == "__main__":  # the script's own directory is no place for imports; its package is
    sys.path[0] = str(Path(__file__).parents[2])

from pytest_cudabatch.contract.bench import Bench
from pytest_cudabatch.contract.questions import Question
from pytest_cudabatch.contract.replies import reply
from pytest_cudabatch.cuda import Runtime
from pytest_cudabatch.errors import CudaBatchError


def _tell(fd: int, **facts: Any) -> None:
    os.write(fd, json.dumps(facts).encode() + b"\n")


def _usable(bench: Bench) -> bool:
    """Whether nothing that was asked has left an error behind."""
    return bench.runtime.call("cudaDeviceSynchronize") == 0 and bench.runtime.last_error() == 0


def _main(request: dict[str, Any]) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # crashes are answers here; nobody wants their cores
    fd = int(request["fd"])
    driver = Path(request["driver"]) if request["driver"] else None
    try:
        bench = Bench(Runtime.open(Path(request["runtime"]), driver))
    except CudaBatchError as error:
        _tell(fd, unready=str(error))
        return
    _tell(fd, ready=True)
    for index, names in enumerate(request["questions"]):
        _tell(fd, asking=index)
        try:
            answer = reply(bench, Question(*names)).to_json()
        except CudaBatchError as error:  # a call of ours, in setting the question up or tidying up after it
            answer = {"lost": str(error)}
        _tell(fd, answer=answer)
        if "lost" in answer or not _usable(bench):
            break


if __name__ == "__main__":
    _main(json.loads(sys.argv[1]))
    os._exit(0)  # the answers are told; what the libraries do at exit is not asked
