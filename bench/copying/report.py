"""The results as JSON data and as tables on the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from copying.contenders import CONTIGUOUS
from copying.contest import Result, Settings
from copying.figures import quantile, ratio
from copying.presets import PRESETS

__all__ = ["describe", "print_own_cost", "print_plan"]

_PER_COPY = "per-copy"


def describe(results: Sequence[Result], settings: Settings) -> list[dict[str, Any]]:
    """Return one object a plan, with one object a contender in it; see bench/copies.py for their keys."""
    plans = []
    for name in settings.presets:
        plan = PRESETS[name].plan(settings.count, settings.seed)
        members = {result.contender: result for result in results if result.plan == name}
        plans.append(
            {
                "name": name,
                "direction": plan.direction.value,
                "descriptors": plan.count,
                "bytes": plan.payload,
                "results": [
                    _result(result, members, plan.payload, settings.seed) for result in members.values()
                ],
            }
        )
    return plans


def _result(result: Result, members: dict[str, Result], payload: int, seed: int) -> dict[str, Any]:
    described: dict[str, Any] = {
        "contender": result.contender,
        "status": result.status,
        "reason": result.reason,
        "signal": result.signal,
        "apart": result.apart,
        "rounds": len(result.completion_ns),
        "samples": sum(map(len, result.completion_ns)),
    }
    if result.completion_ns:
        times = {"submit_us": result.submit, "completion_us": result.completion}
        for key, values in times.items():
            described[key] = {
                "median": quantile(values, 0.5, seed).to_json(),
                "p99": quantile(values, 0.99, seed).to_json(),
            }
        described["gb_per_s"] = payload / described["completion_us"]["median"]["value"] / 1e3
        described["ratio_to_contiguous"] = _ratio(result, members.get(CONTIGUOUS), seed)
        described["ratio_to_per_copy"] = _ratio(result, members.get(_PER_COPY), seed)
    return described


def _ratio(result: Result, base: Result | None, seed: int) -> dict[str, float] | None:
    if base is None or not base.completion_ns:
        return None
    paired = result.apart == base.apart
    return ratio(result.completion, base.completion, seed, paired=paired).to_json()


def print_plan(plan: dict[str, Any], console: Console) -> None:
    """Draw one plan's table."""
    title = (
        f"{plan['name']}: {plan['descriptors']:,} copies, {plan['bytes'] / 1e6:,.1f} MB {plan['direction']}"
    )
    table = Table(title=title, title_justify="left", caption_justify="left")
    table.add_column("contender", no_wrap=True)
    for heading in ("submit", "submit p99", "complete", "complete p99", "GB/s", "x contiguous", "x per-copy"):
        table.add_column(heading, justify="right")
    table.add_column("n", justify="right")
    for result in plan["results"]:
        table.add_row(*_row(result))
    console.print(table)
    for result in plan["results"]:
        if result["status"] != "measured":
            console.print(f"  {result['contender']}: {result['status']}: {result['reason']}", markup=False)


def _row(result: dict[str, Any]) -> list[str]:
    name = result["contender"] + (" (apart)" if result["apart"] else "")
    if not result["samples"]:
        return [name, result["status"]]
    submit, completion = result["submit_us"], result["completion_us"]
    return [
        name if result["status"] == "measured" else f"{name} ({result['status']})",
        _time(submit["median"]),
        _time(submit["p99"]),
        _time(completion["median"]),
        _time(completion["p99"]),
        f"{result['gb_per_s']:.2f}",
        _factor(result["ratio_to_contiguous"]),
        _factor(result["ratio_to_per_copy"]),
        str(result["samples"]),
    ]


def _time(estimate: dict[str, float]) -> str:
    """Write microseconds, or milliseconds from one on, and the interval below."""
    scale, digits, unit = (1e3, 2, "ms") if estimate["value"] >= 1e3 else (1.0, 1, "µs")
    value, low, high = (f"{estimate[key] / scale:.{digits}f}" for key in ("value", "low", "high"))
    return f"{value} {unit}\n{low}..{high}"


def _factor(estimate: dict[str, float] | None) -> str:
    if estimate is None:
        return "-"
    return f"{estimate['value']:.2f}\n{estimate['low']:.2f}..{estimate['high']:.2f}"


def print_own_cost(cost: dict[str, Any], console: Console) -> None:
    """Write the own cost in one line."""
    if "skipped" in cost:
        console.print(f"own cost of {cost['implementation']}: skipped: {cost['skipped']}", markup=False)
    else:
        console.print(
            f"own cost of {cost['implementation']}, on a driver that does nothing: "
            f"{cost['call_us']:.2f} µs a call and {cost['descriptor_ns']:.2f} ns a descriptor",
            highlight=False,
        )
