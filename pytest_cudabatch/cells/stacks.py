"""Faulthandler's dumps without the frames that are of no use to the owner of a test."""

from __future__ import annotations

import re

__all__ = ["without_runner", "without_runner_between"]

_RUNNER_FRAME = re.compile(
    r'(?:  File|    \(Python\) File) "(?:.*/(?:_pytest|pluggy|pytest|pytest_cudabatch/cells)/'
    r'|.*/runpy\.py"|<frozen runpy>'  # a file up to Python 3.10
    r'|<string>")'  # the start of a zygote, outermost of all
)


def without_runner_between(stacks: str) -> str:
    """Leave out pystack's frames that are pytest's or ours, each with its line of source."""
    kept, leaving = [], False
    for line in stacks.split("\n"):
        leaving = bool(_RUNNER_FRAME.match(line)) or (leaving and line.startswith("        "))
        if not leaving:
            kept.append(line)
    return "\n".join(kept)


def without_runner(dump: str) -> str:
    """Cut each thread's outermost frames that are pytest's or ours; keep a stack that has no others."""
    return "\n\n".join(map(_without_runner, dump.split("\n\n")))


def _without_runner(stack: str) -> str:
    lines = stack.rstrip("\n").split("\n")
    kept = len(lines)
    while kept and _RUNNER_FRAME.match(lines[kept - 1]):
        kept -= 1
    return "\n".join(lines[:kept]) if kept > 1 else stack
