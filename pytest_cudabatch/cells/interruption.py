"""What becomes of a test in a cell that would end its session, by pytest.exit or KeyboardInterrupt."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NoReturn

import pytest

__all__ = ["report_interruption"]

_When = Literal["setup", "call", "teardown"]


def report_interruption(item: pytest.Item, phase: _When, error: BaseException) -> None:
    """Report ``error`` as the failure of ``phase``, and tear the item down, as a session's end would."""

    def again() -> NoReturn:
        __tracebackhide__ = True
        raise error

    def tear_down() -> None:
        item.ihook.pytest_runtest_teardown(item=item, nextitem=None)

    _report(item, phase, again)
    if phase != "teardown":
        _report(item, "teardown", tear_down)


def _report(item: pytest.Item, phase: _When, action: Callable[[], None]) -> None:
    call = pytest.CallInfo.from_call(action, when=phase)
    report = item.ihook.pytest_runtest_makereport(item=item, call=call)
    item.ihook.pytest_runtest_logreport(report=report)
