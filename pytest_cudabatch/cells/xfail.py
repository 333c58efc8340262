"""Whether pytest would call a failure of an item expected.

A process that crashed has no exception for pytest's own evaluation, so the child announces the answer ahead
of each phase. The rules are those of the documented xfail marker; pytest offers them under no public name.
"""

from __future__ import annotations

import os
import platform
import sys
from typing import Any

import pytest

__all__ = ["expected_failure"]


def expected_failure(item: pytest.Item) -> str | None:
    """Return the reason of the xfail marker that covers a crash of ``item``, or None.

    A marker with ``raises`` covers exceptions of that type only: a crash is none.
    """
    if item.config.getoption("runxfail"):
        return None
    for marker in item.iter_markers("xfail"):
        reason = _reason_if_true(item, marker)
        if reason is not None:
            return reason if marker.kwargs.get("raises") is None else None
    return None


def _reason_if_true(item: pytest.Item, marker: pytest.Mark) -> str | None:
    conditions = (marker.kwargs["condition"],) if "condition" in marker.kwargs else marker.args
    reason = str(marker.kwargs.get("reason") or "")
    if not conditions:
        return reason
    true = [condition for condition in conditions if _holds(item, condition)]
    if not true:
        return None
    return reason or (f"condition: {true[0]}" if isinstance(true[0], str) else "")


def _holds(item: pytest.Item, condition: object) -> bool:
    try:
        return _evaluate(item, condition)
    except Exception:  # noqa: BLE001 - it is the test's own text, and pytest reports its error a moment later
        return False


def _evaluate(item: pytest.Item, condition: object) -> bool:
    if not isinstance(condition, str):
        return bool(condition)
    names: dict[str, Any] = {"os": os, "sys": sys, "platform": platform, "config": item.config}
    for more in reversed(item.ihook.pytest_markeval_namespace(config=item.config)):
        names.update(more)
    names.update(getattr(getattr(item, "obj", None), "__globals__", {}))
    # The test's own text, which pytest itself evaluates in the same process a moment later.
    return bool(eval(condition, names))  # noqa: S307
