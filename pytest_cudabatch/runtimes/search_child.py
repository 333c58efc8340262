"""Searches this host for libcudarts; a script of inquiry.py, run by path.

``search_child.py FD MODULE_PATH...`` writes each one to the file descriptor FD as soon as it is read, under
a key of its own (``found 0``, ``found 1``), and before that where it is ``at``. Unlike the other scripts it
uses the package that it belongs to. It loads no library, but a file on a network may hang.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path


def _main(descriptor: int, module_path: list[str]) -> None:
    sys.path.insert(0, str(Path(__file__).parents[2]))
    import pytest_cudabatch.runtimes.search as package  # noqa: PLC0415 - found from here on

    del sys.path[0]

    def report(**facts: object) -> None:
        os.write(descriptor, json.dumps(facts).encode() + b"\n")

    places = package.Places(tuple(map(Path, module_path)), os.environ)
    number = 0
    for found_via, path in package.candidates(places):
        step = f"reading {path}" if path else f"searching {found_via}"
        report(step=step, at={"path": str(path or "."), "found_via": found_via})
        if path is not None:
            report(**{f"found {number}": package.examine(path, found_via).to_json()})
            number += 1
    report(end=True)


if __name__ == "__main__":
    _main(int(sys.argv[1]), sys.argv[2:])
