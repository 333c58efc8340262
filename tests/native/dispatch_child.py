"""Runs one scenario in a process of its own: loads fakes, calls an implementation, prints what happened.

Takes one JSON object: ``libraries`` (name -> path, loaded in that order), ``set`` (name -> variable ->
value, written before the first call), ``implementation`` (path), ``calls`` (each: ``sizes``, ``stream``,
and ``load``: more libraries to load first), ``threads`` (how many threads make the calls at once).
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
import threading
from typing import Any

COUNTERS = (
    "fake_batch_calls",
    "fake_copies",
    "fake_last_error",
    "fake_lookup_version",
    "fake_contexts_borrowed",
    "fake_contexts_returned",
)


def load(libraries: dict[str, str], loaded: dict[str, ctypes.CDLL]) -> None:
    for name, path in libraries.items():
        loaded[name] = ctypes.CDLL(path, mode=os.RTLD_NOW | os.RTLD_GLOBAL)


def copy(function: Any, sizes: list[int], stream: int) -> tuple[int, bool]:
    """Make one call over fresh memory; return its code, and whether exactly the right bytes were written."""
    count, total = len(sizes), sum(sizes) + 1
    source = (ctypes.c_uint8 * total)(*(i % 251 + 1 for i in range(total)))
    destination = (ctypes.c_uint8 * total)()
    starts = [sum(sizes[:i]) for i in range(count)] if count < 2000 else [i * sizes[0] for i in range(count)]
    srcs = (ctypes.c_void_p * count)(*(ctypes.addressof(source) + start for start in starts))
    dsts = (ctypes.c_void_p * count)(*(ctypes.addressof(destination) + start for start in starts))
    code = function(
        dsts, srcs, (ctypes.c_size_t * count)(*sizes), ctypes.c_size_t(count), ctypes.c_void_p(stream)
    )
    return code, bytes(destination) == bytes(source)[:-1] + b"\0"


def run(scenario: dict[str, Any]) -> dict[str, Any]:
    loaded: dict[str, ctypes.CDLL] = {}
    load(scenario["libraries"], loaded)
    for name, variables in scenario["set"].items():
        for variable, value in variables.items():
            ctypes.c_int.in_dll(loaded[name], variable).value = value
    function = ctypes.CDLL(scenario["implementation"], mode=os.RTLD_NOW | os.RTLD_LOCAL).cudabatch_copy
    results: list[tuple[int, bool]] = []

    def make_calls() -> None:
        for call in scenario["calls"]:
            load(call.get("load", {}), loaded)
            results.append(copy(function, call["sizes"], call["stream"]))

    threads = [threading.Thread(target=make_calls) for _ in range(scenario["threads"])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seen = {
        name: {key: ctypes.c_int.in_dll(library, key).value for key in COUNTERS}
        for name, library in loaded.items()
    }
    for name, library in loaded.items():
        seen[name]["fake_stream"] = ctypes.c_size_t.in_dll(library, "fake_stream").value
        seen[name]["fake_largest_batch"] = ctypes.c_size_t.in_dll(library, "fake_largest_batch").value
    return {"results": results, "seen": seen}


if __name__ == "__main__":
    json.dump(run(json.loads(sys.argv[1])), sys.stdout)
