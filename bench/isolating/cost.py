"""What isolation costs a test: wall time by the number of tests, in interleaved rounds."""

from __future__ import annotations

import os
import random
import statistics
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from isolating.contenders import CONTENDERS, Contender, pytest_command

__all__ = ["measure", "ratios"]

FILE = """
import pytest

pytestmark = pytest.mark.cuda_cell

@pytest.mark.parametrize("number", range({count}))
def test_trivial(number):
    pass
"""
INI = "[pytest]\nmarkers = cuda_cell: a cell\n"

LITTLE = 2
"""Tests of the short run, whose time is taken off the long one's: start-up, and what the first test costs."""

DEAR = 12
"""Tests of the long run of those that take most of a second for each."""

LIMIT = 600


def measure(python: Path, directory: Path, count: int, rounds: int) -> dict[str, list[float]]:
    """Return each contender's milliseconds a test, one value a round; their order in a round is drawn."""
    figures: dict[str, list[float]] = {contender.name: [] for contender in CONTENDERS}
    for _ in range(rounds):
        for contender in random.sample(CONTENDERS, len(CONTENDERS)):
            many = DEAR if contender.dear else count
            seconds = {number: _run(python, directory, contender, number) for number in (LITTLE, many)}
            figures[contender.name].append(1e3 * (seconds[many] - seconds[LITTLE]) / (many - LITTLE))
    return figures


def _run(python: Path, directory: Path, contender: Contender, count: int) -> float:
    """Return the seconds of one run, all tests of which must pass."""
    place = directory / f"trivial-{count}"
    place.mkdir(exist_ok=True)
    (place / "pytest.ini").write_text(INI, encoding="utf-8")
    (place / "test_trivial.py").write_text(FILE.format(count=count), encoding="utf-8")
    command, environment = pytest_command(python, contender, ["-q", "test_trivial.py"], os.environ)
    start = time.perf_counter()
    done = subprocess.run(
        command, cwd=place, env=environment, capture_output=True, text=True, timeout=LIMIT, check=False
    )
    seconds = time.perf_counter() - start
    reports_nothing = contender.name == "bare fork"
    if not reports_nothing and (done.returncode != 0 or f"{count} passed" not in done.stdout):
        raise RuntimeError(f"{contender.name}: {' '.join(command)}\n{done.stdout}{done.stderr}")
    return seconds


def ratios(figures: Mapping[str, Sequence[float]], mine: str) -> dict[str, float]:
    """Return the median of the rounds' ratios of ``mine`` to each other contender."""
    return {
        name: statistics.median(own / other for own, other in zip(figures[mine], values, strict=True))
        for name, values in figures.items()
        if name != mine
    }
