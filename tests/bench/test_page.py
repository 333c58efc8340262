"""docs/copies.md is the committed result as a page."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
RESULT = ROOT / "matrix" / "observed" / "copies" / "h200-580.159.04-2026-11-30.json"


def results() -> dict[str, Any]:
    data: dict[str, Any] = json.loads(RESULT.read_text(encoding="utf-8"))
    return data


def test_the_committed_page_is_the_generated_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(ROOT / "bench"), *sys.path])
    from copying.page import page  # noqa: PLC0415 - the bench is no installed package

    assert (ROOT / "docs" / "copies.md").read_text(encoding="utf-8") == page(results(), RESULT.name)


def test_reference_is_faster_than_the_loop_and_no_slower_than_the_best_other() -> None:
    """What is asked of the reference, on the mixed plan: 1.3 times the loop, 1.05 times the best at most."""
    plan = results()["plans"][0]
    assert (plan["name"], plan["descriptors"], plan["direction"]) == ("kv-mixed", 51828, "h2d")
    medians = {
        result["contender"]: result["completion_us"]["median"]["value"]
        for result in plan["results"]
        if result["status"] == "measured"
    }
    reference = medians.pop("reference")
    assert medians["per-copy"] / reference >= 1.3
    del medians["contiguous"]  # one copy of the same bytes is the bound, not a contender
    assert reference / min(medians.values()) <= 1.05


def test_the_references_own_cost_is_small() -> None:
    """At most 5 us a call and 20 ns a descriptor, on a driver whose batch function does nothing."""
    path = RESULT.parents[1] / "own-cost" / RESULT.name
    cost = json.loads(path.read_text(encoding="utf-8"))["own_cost"]
    assert 0 < cost["call_us"] <= 5
    assert 0 < cost["descriptor_ns"] <= 20


def test_one_unchunked_call_of_the_mixed_plan_crashes() -> None:
    (unchunked,) = [r for r in results()["plans"][0]["results"] if r["contender"] == "batch-unchunked"]
    assert (unchunked["status"], unchunked["signal"], unchunked["apart"]) == ("crashed", "SIGSEGV", True)
