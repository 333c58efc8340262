"""The bench's statistics, by value."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

FIGURES = Path(__file__).parents[2] / "bench" / "copying" / "figures.py"


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module by its file: bench/ is no installed package."""
    spec = importlib.util.spec_from_file_location("bench_figures", FIGURES)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "bench_figures", module)  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def rounds(seed: int, count: int = 40) -> np.ndarray:
    """Times of ``count`` rounds, which differ far more between rounds than within one."""
    random = np.random.default_rng(seed)
    return 10 * random.lognormal(size=(count, 1)) + random.random((count, 3))


def test_constant_times_leave_no_doubt(figures: ModuleType) -> None:
    times = np.full((5, 3), 7.0)
    assert figures.quantile(times, 0.99, seed=0).to_json() == {"value": 7.0, "low": 7.0, "high": 7.0}


def test_quantile_is_of_all_times(figures: ModuleType) -> None:
    times = np.arange(101.0).reshape(101, 1)
    median = figures.quantile(times, 0.5, seed=0)
    assert median.value == 50
    assert 30 < median.low < 45  # sqrt(101) / 2 ranks are one standard deviation
    assert 55 < median.high < 70
    assert figures.quantile(times, 0.99, seed=0).value == 99


def test_equal_seeds_give_equal_intervals(figures: ModuleType) -> None:
    times = rounds(1)
    assert figures.quantile(times, 0.5, seed=3) == figures.quantile(times, 0.5, seed=3)
    assert figures.quantile(times, 0.5, seed=3) != figures.quantile(times, 0.5, seed=4)


def test_pairing_takes_what_rounds_share_out_of_a_ratio(figures: ModuleType) -> None:
    base = rounds(2)
    paired = figures.ratio(2 * base, base, seed=0, paired=True)
    apart = figures.ratio(2 * base, base, seed=0, paired=False)
    assert (paired.value, paired.low, paired.high) == (2, 2, 2)
    assert apart.value == 2
    assert apart.low < 1.9
    assert apart.high > 2.1


def test_a_ratio_of_one_that_ended_early_is_over_the_rounds_that_both_have(figures: ModuleType) -> None:
    base = np.array([[1.0], [1.0], [100.0], [100.0]])
    assert figures.ratio(np.array([[3.0], [3.0]]), base, seed=0, paired=True).value == 3
