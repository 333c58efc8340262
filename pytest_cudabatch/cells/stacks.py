"""Faulthandler's dumps without the frames that are of no use to the owner of a test."""

from __future__ import annotations

import re

__all__ = ["without_runner"]

_RUNNER_FRAME = re.compile(
    r'  File "(?:.*/(?:_pytest|pluggy|pytest|pytest_cudabatch/cells)/'
    r'|.*/runpy\.py"|<frozen runpy>'  # a file up to Python 3.10
    r'|<string>")'  # the start of a zygote, outermost of all
)


def without_runner(dump: str) -> str:
    """Cut each thread's outermost frames that are pytest's or ours; keep a stack that has no others."""
    return "\n\n".join(map(_without_runner, dump.split("\n\n")))


def _without_runner(stack: str) -> str:
    lines = stack.rstrip("\n").split("\n")
    kept = len(lines)
    while kept and _RUNNER_FRAME.match(lines[kept - 1]):
        kept -= 1
    return "\n".join(lines[:kept]) if kept > 1 else stack
