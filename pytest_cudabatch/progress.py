"""How far a run is: on a terminal one live line instead of pytest's dots, elsewhere a plain line at times.

Quiet under ``-q``, and beside the lines of ``-v`` on a terminal.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from typing import IO, TYPE_CHECKING, Any, cast

import pytest

from pytest_cudabatch.ledger import Ledger
from pytest_cudabatch.verdicts import Verdict

if TYPE_CHECKING:
    from rich.live import Live

__all__ = ["Progress", "ProgressLine"]

PLAIN_SECONDS = 30.0
"""Between two plain lines: a log shows that the run lives, and stays short."""

BAD = frozenset({Verdict.FAILED, Verdict.CRASHED, Verdict.HUNG})


class ProgressLine:
    """The words: what runs, is done, failed and left, and how long that will take."""

    def __init__(self, ledger: Ledger, clock: Callable[[], float] = time.monotonic) -> None:
        self._ledger = ledger
        self._clock = clock
        self._start = clock()

    @property
    def complete(self) -> bool:
        """Whether every planned cell has come to its end."""
        return len(self._ledger.ended) >= len(self._ledger.planned)

    def text(self) -> str:
        """Return the line as it is now."""
        planned, done = len(self._ledger.planned), len(self._ledger.ended)
        bad = sum(cell.verdict in BAD for cell in self._ledger.cells)
        running = len(self._ledger.started - self._ledger.ended)
        parts = [f"{done} of {planned} cells done", f"{bad} failed", f"{running} running"]
        left = planned - done
        if done and left:
            parts.append(f"about {_duration((self._clock() - self._start) / done * left)} left")
        return ", ".join(parts)


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min"


class Progress:
    """Shows the line; a plugin of the controller."""

    def __init__(self, config: pytest.Config, ledger: Ledger) -> None:
        self._config = config
        self._line = ProgressLine(ledger)
        self._said = time.monotonic()
        self._live: Live | None = None

    def pytest_runtestloop(self) -> None:
        """Begin to draw, where there is a terminal to draw on."""
        reporter = self._reporter
        if reporter is not None and reporter.isatty and self._config.option.verbose == 0:
            reporter.showfspath = False
            self._live = _live_line(reporter)
            self._live.start()

    @pytest.hookimpl(wrapper=True)
    def pytest_report_teststatus(self) -> Generator[None, Any, Any]:
        """Leave pytest's letters out while the line is shown; what they count is counted."""
        result = yield
        return (result[0], "", "") if self._live is not None else result

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logstart(self) -> None:
        """Show that a cell runs."""
        self._show()

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self) -> None:
        """Show what has come of a cell."""
        self._show()

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """Give the terminal back."""
        self._stop()

    @property
    def _reporter(self) -> Any:
        return self._config.pluginmanager.get_plugin("terminalreporter")

    def _show(self) -> None:
        if self._live is not None:
            if self._line.complete:
                self._stop()
            else:
                self._live.update(self._line.text(), refresh=True)
        elif time.monotonic() - self._said >= PLAIN_SECONDS and self._config.option.verbose >= 0:
            self._said = time.monotonic()
            if (reporter := self._reporter) is not None:
                reporter.ensure_newline()
                reporter.write_line(self._line.text())

    def _stop(self) -> None:
        live, self._live = self._live, None
        if live is not None:
            live.stop()


def _live_line(reporter: Any) -> Live:
    """Return a live line on pytest's own terminal, refreshed by us alone: no thread is started."""
    from rich.console import Console  # noqa: PLC0415 - only on a terminal
    from rich.live import Live  # noqa: PLC0415 - only on a terminal

    terminal = cast("IO[str]", _Terminal(reporter))  # rich calls nothing but what it has
    console = Console(file=terminal, force_terminal=True, color_system=None, markup=False)
    return Live(
        console=console, auto_refresh=False, transient=True, redirect_stdout=False, redirect_stderr=False
    )


class _Terminal:
    """pytest's terminal as a file to write to: its own stream goes on while sys.stdout is captured."""

    def __init__(self, reporter: Any) -> None:
        self._reporter = reporter

    def write(self, text: str) -> int:
        """Write ``text`` through."""
        self._reporter.write(text, flush=True)
        return len(text)

    def flush(self) -> None:
        """Nothing is held back."""

    def isatty(self) -> bool:
        """Whether it is a terminal, which it is."""
        return True
