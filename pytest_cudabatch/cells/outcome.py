"""What a supervisor knows of a zygote's collection and of one cell's end: plain data."""

from __future__ import annotations

import enum
import sys
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from pytest_cudabatch.cells.protocol import Phase
from pytest_cudabatch.cells.signals import describe_signal

__all__ = [
    "CapturedText",
    "CollectedItem",
    "CollectedMarker",
    "CollectionError",
    "End",
    "Location",
    "Outcome",
    "RecordedWarning",
    "Stop",
]

Location: TypeAlias = "tuple[str, int | None, str]"
"""pytest's location of an item: file relative to rootdir, line counted from 0, name."""


@dataclass(frozen=True)
class CollectedMarker:
    """A marker of an item; values that JSON cannot carry are given as their repr, and ``exact`` is False."""

    name: str
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    exact: bool


@dataclass(frozen=True)
class CollectedItem:
    """A test that a zygote collected. Node id and location are relative to the zygote's own rootdir.

    ``markers`` holds its own and the inherited ones, closest first.
    """

    nodeid: str
    location: Location
    keywords: tuple[str, ...]
    markers: tuple[CollectedMarker, ...]


@dataclass(frozen=True)
class CollectionError:
    """A collector that failed, such as a module that does not import; ``text`` is pytest's own report."""

    nodeid: str
    text: str


class End(enum.Enum):
    """How a child ended. FINISHED alone was announced in full; all others are failures."""

    FINISHED = "finished"
    SIGNALLED = "signalled"
    EXITED = "exited"
    TIMED_OUT = "timed-out"


@dataclass(frozen=True)
class CapturedText:
    """What one phase wrote to file descriptor 1 or 2; of much output the head and the tail."""

    phase: Phase
    stream: str
    text: str


@dataclass(frozen=True)
class RecordedWarning:
    """A warning of the child: the arguments of pytest_warning_recorded as data."""

    category_module: str
    category_name: str
    text: str
    filename: str
    lineno: int
    when: str
    nodeid: str
    location: tuple[str, int, str] | None

    def warning_message(self) -> warnings.WarningMessage:
        """Rebuild the object that pytest_warning_recorded takes.

        The category is looked up among loaded modules only, since a child's module may do anything on
        import; an unknown category is replaced by a class of the same name.
        """
        return warnings.WarningMessage(self.text, self._category(), self.filename, self.lineno)

    def _category(self) -> type[Warning]:
        module = sys.modules.get(self.category_module)
        found = getattr(module, self.category_name, None)
        if isinstance(found, type) and issubclass(found, Warning):
            return found
        return type(self.category_name, (Warning,), {"__module__": self.category_module})


@dataclass(frozen=True)
class Stop:
    """A test's wish, by pytest.exit, that the whole session end; None leaves the exit status to pytest."""

    reason: str
    returncode: int | None


@dataclass(frozen=True)
class Outcome:
    """How one cell's process ended and everything that it said.

    ``phase`` is the last one that began. ``signal`` is a name such as ``"SIGSEGV"``; after a
    deadline there is neither signal nor exit code, since the end was ours. ``violation`` says what
    was wrong with its announcements, if anything. ``reports`` are the data of pytest_report_to_serializable,
    in order. ``stop`` is set where the test called pytest.exit; its reports have that as a failure.
    ``expected_failure`` is the reason of the xfail marker under which a crash counts as expected.
    ``stacks`` is what faulthandler wrote at a crash or a hang, ``native_stacks`` what a debugger did.
    ``seconds`` run from the request to the end of the process, ``started`` is seconds since the epoch.
    ``survivors`` counts the processes that the test left behind and that had to be killed.
    """

    nodeid: str
    end: End
    phase: Phase
    signal: str | None
    exit_code: int | None
    violation: str | None
    reports: tuple[dict[str, Any], ...]
    warnings: tuple[RecordedWarning, ...]
    expected_failure: str | None
    captured: tuple[CapturedText, ...]
    stacks: str
    started: float
    seconds: float
    survivors: int
    pid: int
    stop: Stop | None = None
    native_stacks: str = ""

    @property
    def finished(self) -> bool:
        """Whether the child announced everything up to its end and left with status 0."""
        return self.end is End.FINISHED

    @property
    def output(self) -> str:
        """All captured text, phase by phase, standard output before standard error."""
        return "".join(captured.text for captured in self.captured)

    def text_of(self, phase: Phase, stream: str) -> str:
        """Return what ``phase`` wrote to ``stream`` (``"stdout"`` or ``"stderr"``)."""
        return "".join(c.text for c in self.captured if (c.phase, c.stream) == (phase, stream))

    def describe(self) -> str:
        """Say in one line how the process ended, for people."""
        where = "at exit" if self.phase == "exit" else f"in {self.phase}"
        said = f" (its announcements broke off: {self.violation})" if self.violation else ""
        if self.end is End.FINISHED:
            return f"finished after {self.seconds:.3f} s"
        if self.end is End.TIMED_OUT:
            return f"still running {where} after {self.seconds:.1f} s, then killed{said}"
        if self.signal is not None:
            return f"{describe_signal(self.signal)} {where}{said}"
        return f"exited with status {self.exit_code} {where} without announcing its end{said}"
