"""``--cuda-isolation=pairing``: which cells share a process, and which of its answers count.

Whatever a shared process says is provisional until it has ended as it should. A cell that crashes, hangs or
leaves a sticky error spoils it: that cell gets a process of its own, and the others run again without it.
A cell that does not pass in company gets one too: every verdict but a pass is one of ``cell`` isolation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

import pytest

from pytest_cudabatch.cells import Batch, Outcome
from pytest_cudabatch.interposer import Evidence

__all__ = ["BATCH_LIMIT", "SharedProcesses"]

BATCH_LIMIT = 64
"""Cells of one process at most: each has an evidence slot of its own until all have ended."""


class BatchRunner(Protocol):
    """Runs items in one process; returns what became of it, and each item's evidence by node id."""

    def __call__(self, items: Sequence[pytest.Item]) -> tuple[Batch, Mapping[str, Evidence]]:
        """Run ``items``, all of one key."""


class SharedProcesses:
    """Runs a cell's whole company when its first member is asked for, and keeps the answers of the others."""

    def __init__(self, run: BatchRunner, key_of: Callable[[pytest.Item], tuple[object, ...] | None]) -> None:
        """Run companies by ``run``; ``key_of`` says what a cell's company is, None where it has none."""
        self._run = run
        self._key_of = key_of
        self._waiting: dict[tuple[object, ...], dict[str, pytest.Item]] = {}
        self._answers: dict[str, tuple[Outcome, Evidence]] = {}
        self._spoiled: dict[str, str] = {}

    def expect(self, items: Iterable[pytest.Item]) -> None:
        """Say which cells will be asked for."""
        for item in items:
            key = self._key_of(item)
            if key is not None:
                self._waiting.setdefault(key, {})[item.nodeid] = item

    def answer(self, item: pytest.Item) -> tuple[Outcome, Evidence] | None:
        """Return what a shared process says of ``item``; None where it is to have a process of its own."""
        key = self._key_of(item)
        waiting = self._waiting.get(key, {}) if key is not None else {}
        if item.nodeid in waiting:
            company = [item, *(other for other in waiting.values() if other is not item)][:BATCH_LIMIT]
            for member in company:
                del waiting[member.nodeid]
            if len(company) > 1:
                self._run_company(company)
        return self._answers.pop(item.nodeid, None)

    def spoiled_by(self, item: pytest.Item) -> str | None:
        """Say how ``item`` spoiled the process that it shared, if it did."""
        return self._spoiled.get(item.nodeid)

    def _run_company(self, company: Sequence[pytest.Item]) -> None:
        """Run the cells together; each time without the one that has just spoiled their process."""
        pending = list(company)
        while len(pending) > 1:
            batch, evidence = self._run(pending)
            if batch.outcomes:
                answers = {name: (outcome, evidence[name]) for name, outcome in batch.outcomes.items()}
                self._answers.update(answers)
                return
            number = next((n for n, item in enumerate(pending) if item.nodeid == batch.spoiled_by), None)
            if number is None:  # its exit was bad, and nobody can say whose fault that is
                return
            self._spoiled[pending[number].nodeid] = batch.spoiled or "unknown"
            # Those that have not run yet come first, so that one guilty cell costs the others one more run.
            pending = pending[number + 1 :] + pending[:number]
