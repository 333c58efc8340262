"""All libcudarts of this host, searched for in a process of its own with a time limit."""

from __future__ import annotations

import sys
from pathlib import Path

from pytest_cudabatch.runtimes.inquiry import ask
from pytest_cudabatch.runtimes.search import Found

__all__ = ["discover"]

SEARCH_SECONDS = 30.0
"""A search of a full host takes under one second; directories on a slow network take longer."""

_CHILD = Path(__file__).with_name("search_child.py")


def discover(limit: float = SEARCH_SECONDS) -> tuple[Found, ...]:
    """Search this host's usual places (search.py lists them) for at most ``limit`` seconds.

    Never raises: what was found before a crash or the limit is kept, and the fault is told as the problem
    of the file at which it happened.
    """
    answers = ask(_CHILD, [entry for entry in sys.path if entry], limit=limit)
    found = [Found.from_json(data) for key, data in answers.facts.items() if key.startswith("found ")]
    if answers.fault:
        at = answers.facts.get("at", {"path": ".", "found_via": "search"})
        found.append(Found(Path(at["path"]), at["found_via"], None, answers.fault))
    return tuple(found)
