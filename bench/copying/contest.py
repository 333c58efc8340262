"""One run: plan after plan, all contenders take turns, and what each of them gave."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np

from copying.contenders import CONTIGUOUS, UNCHUNKED
from copying.crew import Host, Member
from copying.figures import Times
from copying.presets import PRESETS, Preset

__all__ = ["Contest", "Result", "Settings"]

_PREPARED_AT_ONCE = 4
"""Checking bytes takes a plan's memory several times over: not in all processes at once."""


@dataclass(frozen=True)
class Settings:
    """What the command line says.

    Of one plan at most ``rounds`` are measured, and none is started after ``seconds``. A worker that has
    not answered a command after ``limit`` seconds hangs.
    """

    presets: Sequence[str]
    contenders: Sequence[str]
    count: int | None
    seed: int
    chunk: int
    rounds: int
    seconds: float
    limit: float

    def preparation(self, preset: Preset) -> dict[str, object]:
        """Return the command that makes a worker ready for a plan."""
        return {
            "do": "prepare",
            "preset": preset.name,
            "count": self.count,
            "seed": self.seed,
            "chunk": self.chunk,
        }


@dataclass
class Result:
    """What one contender gave on one plan. ``apart``: it was measured by itself, after the others.

    ``status`` is measured, or what came in between: skipped, failed, wrong-bytes, crashed or hung. Times
    of the rounds before that stay.
    """

    plan: str
    contender: str
    apart: bool = False
    status: str = "measured"
    reason: str | None = None
    signal: str | None = None
    submit_ns: list[list[int]] = field(default_factory=list)
    completion_ns: list[list[int]] = field(default_factory=list)

    @property
    def submit(self) -> Times:
        """Time until the call returned, in microseconds."""
        return np.array(self.submit_ns) / 1e3

    @property
    def completion(self) -> Times:
        """Time until the stream was synchronised, in microseconds."""
        return np.array(self.completion_ns) / 1e3

    def take(self, answer: dict[str, Any]) -> bool:
        """Record a worker's answer; return whether it can go on."""
        if answer["status"] == "measured":
            self.submit_ns.append(answer["submit_ns"])
            self.completion_ns.append(answer["completion_ns"])
        elif answer["status"] != "ready":
            self.status, self.reason = answer["status"], answer["reason"]
            self.signal = answer.get("signal")
            return False
        return True


class Contest:
    """Runs the contenders of ``settings`` on ``host``; ``tell`` hears what is being done, for a terminal."""

    def __init__(self, host: Host, settings: Settings, tell: Callable[[str], None]) -> None:
        self._host = host
        self._settings = settings
        self._tell = tell
        self._order = random.Random(settings.seed)  # noqa: S311 - an order of turns
        self._members: dict[str, Member] = {}

    def run(self) -> list[Result]:
        """Return the results of all plans, in their order."""
        presets = [PRESETS[name] for name in self._settings.presets]
        together = [CONTIGUOUS, *(name for name in self._settings.contenders if name != UNCHUNKED)]
        results = []
        try:
            for preset in presets:
                self._tell(f"{preset.name}: {len(together)} contenders")
                results += self._race(preset, [Result(preset.name, name) for name in together])
            self._dismiss()
            if UNCHUNKED in self._settings.contenders:
                results += [self._run_apart(preset) for preset in presets]
        finally:
            self._dismiss()
        return sorted(results, key=lambda result: self._settings.presets.index(result.plan))

    def _race(self, preset: Preset, results: list[Result], *, share: float = 1.0) -> list[Result]:
        """Prepare all, then measure in rounds; each round has its own order."""
        running = [result for group in _groups(results) for result in self._prepare(preset, group)]
        end = time.monotonic() + self._settings.seconds * share
        for done in range(self._settings.rounds):
            if done and time.monotonic() >= end:
                break
            self._order.shuffle(running)
            running = [result for result in running if self._measure(preset, result)]
        return results

    def _prepare(self, preset: Preset, group: list[Result]) -> list[Result]:
        for result in group:
            self._member(result.contender).send(**self._settings.preparation(preset))
        answers = [
            (result, self._members[result.contender].receive(self._settings.limit)) for result in group
        ]
        return [result for result, answer in answers if result.take(answer)]

    def _measure(self, preset: Preset, result: Result) -> bool:
        member = self._members[result.contender]
        member.send(do="measure", repeats=preset.repeats)
        return result.take(member.receive(self._settings.limit))

    def _run_apart(self, preset: Preset) -> Result:
        """Run the one unchunked call, which may take its process and more with it, when all else is known."""
        self._tell(f"{preset.name}: {UNCHUNKED}, apart")
        [result] = self._race(preset, [Result(preset.name, UNCHUNKED, apart=True)], share=0.25)
        self._dismiss()
        return result

    def _member(self, name: str) -> Member:
        """Return the contender's process; a new one where there is none, or none any more."""
        member = self._members.get(name)
        if member is None or not member.alive:
            member = self._members[name] = Member(name, self._host)
        return member

    def _dismiss(self) -> None:
        for member in self._members.values():
            member.close()
        self._members.clear()


def _groups(results: list[Result]) -> Iterator[list[Result]]:
    remaining = iter(results)
    while group := list(islice(remaining, _PREPARED_AT_ONCE)):
        yield group
