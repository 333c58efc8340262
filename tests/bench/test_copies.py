"""bench/copies.py on simulated CUDA: what its JSON says, and that no contender takes the others down."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

BENCH = Path(__file__).parents[2] / "bench" / "copies.py"

BAD_IMPLEMENTATIONS = """
import signal

class Bad:
    def __init__(self, name, copy):
        self.name, self._copy = name, copy

    def expected_path(self, plan, pairing):
        return "batch"

    def open(self):
        return self

    def copy(self, plan, stream):
        return self._copy()

copies_nothing = Bad("copies nothing", lambda: 0)
answers_invalid = Bad("answers 1", lambda: 1)
raises = Bad("raises", lambda: 1 // 0)
never_returns = Bad("never returns", signal.pause)
"""


@dataclass(frozen=True)
class Run:
    """How the bench ended, and the JSON that it wrote."""

    exit_code: int
    stderr: str
    report: dict[str, Any]

    def results(self, plan: str) -> dict[str, dict[str, Any]]:
        [found] = [entry for entry in self.report["plans"] if entry["name"] == plan]
        return {result["contender"]: result for result in found["results"]}

    def statuses(self, plan: str) -> dict[str, tuple[str, str | None]]:
        return {name: (result["status"], result["reason"]) for name, result in self.results(plan).items()}


def bench(directory: Path, *arguments: str) -> Run:
    (directory / "bad_implementations.py").write_text(BAD_IMPLEMENTATIONS, encoding="utf-8")
    report = directory / "report.json"
    done = subprocess.run(
        [sys.executable, str(BENCH), "--json", str(report), *arguments],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": str(directory)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    content = json.loads(report.read_text(encoding="utf-8")) if report.exists() else {}
    return Run(done.returncode, done.stderr, content)


OURS = ("reference", "batch-chunked", "per-copy", "per-copy-coalesced", "batch-unchunked")


@pytest.fixture(scope="module")
def small_run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Three plans in three rounds, among them one that takes several calls."""
    presets = ("--preset", "kv-mixed", "kv-mixed-d2h", "call-64")
    limits = ("--count", "300", "--chunk", "128", "--rounds", "3", "--seed", "7")
    directory = tmp_path_factory.mktemp("small")
    return bench(directory, "--simulated", *presets, *limits, "--implementations", *OURS)


def test_report_says_what_was_run(small_run: Run) -> None:
    facts = {key: value for key, value in small_run.report.items() if key not in {"plans", "seconds"}}
    assert facts == {
        "schema": 1,
        "platform": "simulated",
        "runtime": "13.0",
        "driver": "13.0",
        "seed": 7,
        "chunk": 128,
    }
    plans = [(plan["name"], plan["direction"], plan["descriptors"]) for plan in small_run.report["plans"]]
    assert plans == [("kv-mixed", "h2d", 300), ("kv-mixed-d2h", "d2h", 300), ("call-64", "h2d", 64)]
    assert small_run.report["plans"][2]["bytes"] == 64 * 4096


@pytest.mark.parametrize(("plan", "repeats"), [("kv-mixed", 3), ("kv-mixed-d2h", 3), ("call-64", 50)])
def test_everybody_is_measured_in_every_round(small_run: Run, plan: str, repeats: int) -> None:
    counts = {
        name: (result["status"], result["rounds"], result["samples"], result["apart"])
        for name, result in small_run.results(plan).items()
    }
    assert counts == {
        name: ("measured", 3, 3 * repeats, name == "batch-unchunked") for name in ("contiguous", *OURS)
    }
    assert small_run.exit_code == 0


def test_figures_are_consistent(small_run: Run) -> None:
    for plan in small_run.report["plans"]:
        results = small_run.results(plan["name"])
        base, loop = (
            results[name]["completion_us"]["median"]["value"] for name in ("contiguous", "per-copy")
        )
        for result in results.values():
            median = result["completion_us"]["median"]["value"]
            assert result["submit_us"]["median"]["value"] <= median
            assert median <= result["completion_us"]["p99"]["value"]
            assert result["gb_per_s"] == pytest.approx(plan["bytes"] / median / 1e3)
            assert result["ratio_to_contiguous"]["value"] == pytest.approx(median / base)
            assert result["ratio_to_per_copy"]["value"] == pytest.approx(median / loop)


def test_ratio_to_itself_is_one_without_doubt(small_run: Run) -> None:
    results = small_run.results("kv-mixed")
    one = {"value": 1.0, "low": 1.0, "high": 1.0}
    assert results["contiguous"]["ratio_to_contiguous"] == one
    assert results["per-copy"]["ratio_to_per_copy"] == one


def test_a_crash_is_told_and_the_others_go_on(tmp_path: Path) -> None:
    implementations = ("--implementations", "specimen:dlsym-always-9", "batch-chunked")
    run = bench(tmp_path, "--simulated", "--preset", "call-1", "call-64", "--rounds", "2", *implementations)
    for plan in ("call-1", "call-64"):
        assert run.statuses(plan) == {
            "contiguous": ("measured", None),
            "specimen:dlsym-always-9": ("crashed", "SIGSEGV"),
            "batch-chunked": ("measured", None),
        }
        assert run.results(plan)["specimen:dlsym-always-9"]["signal"] == "SIGSEGV"
    assert run.exit_code == 1


def test_what_else_can_be_wrong_with_a_contender(tmp_path: Path) -> None:
    names = [f"bad_implementations:{name}" for name in ("copies_nothing", "answers_invalid", "raises")]
    run = bench(tmp_path, "--simulated", "--preset", "call-1", "--rounds", "1", "--implementations", *names)
    nothing, invalid, raises = (run.statuses("call-1")[name] for name in names)
    assert nothing[0] == "wrong-bytes"
    assert (invalid, raises) == (
        ("failed", "CUDA error 1"),
        ("failed", "ZeroDivisionError: integer division or modulo by zero"),
    )
    assert run.exit_code == 1


def test_a_hang_ends_at_the_limit(tmp_path: Path) -> None:
    name = "bad_implementations:never_returns"
    options = ("--preset", "call-1", "--rounds", "1", "--limit", "8", "--implementations", name)
    run = bench(tmp_path, "--simulated", *options)
    assert run.statuses("call-1") == {
        "contiguous": ("measured", None),
        name: ("hung", "no answer within 8 s"),
    }


def test_a_runtime_without_the_batch_function_is_a_skip(tmp_path: Path) -> None:
    options = ("--preset", "call-1", "--rounds", "1", "--implementations", "batch-chunked", "batch-unchunked")
    run = bench(tmp_path, "--simulated", "cu12.6-d13.0", *options)
    skipped = ("skipped", "the 12.6 runtime has no cudaMemcpyBatchAsync")
    assert run.statuses("call-1") == {
        "contiguous": ("measured", None),
        "batch-chunked": skipped,
        "batch-unchunked": skipped,
    }
    assert run.exit_code == 0


@pytest.mark.parametrize("pairing", ["cu12.9-d13.0", "cu13.0-d13.0"])
def test_the_plain_batch_call_has_the_runtimes_abi(tmp_path: Path, pairing: str) -> None:
    options = ("--preset", "call-64", "--rounds", "1", "--implementations", "batch-chunked")
    run = bench(tmp_path, "--simulated", pairing, *options)
    assert run.statuses("call-64")["batch-chunked"] == ("measured", None)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--simulated", "cu1.0-d1.0"), "copies.py: there is no pairing 'cu1.0-d1.0'; known: cu12.6-d12.4"),
        (
            ("--implementations", "specimen:nothing"),
            "copies.py: there is no implementation 'specimen:nothing'",
        ),
    ],
)
def test_bad_arguments_are_one_clear_line(tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    run = bench(tmp_path, *arguments)
    assert (run.exit_code, run.report) == (4, {})
    assert run.stderr[: len(message)] == message
    assert run.stderr.count("\n") == 1


@pytest.mark.skipif(shutil.which("cc") is None, reason="cc builds the driver that does nothing")
def test_own_cost_of_the_reference(tmp_path: Path) -> None:
    run = bench(tmp_path, "--own-cost")
    cost = run.report["own_cost"]
    assert cost["implementation"] == "reference"
    assert list(cost["total_us"]) == ["1", "64", "1024", "8192", "51828"]
    added = (cost["total_us"]["51828"] - cost["total_us"]["1"]) / 51_827
    assert cost["descriptor_ns"] == pytest.approx(1e3 * added)
    assert cost["call_us"] == cost["total_us"]["1"]
    assert cost["call_us"] <= 5  # the most that the reference may cost a call, and
    assert 0 < cost["descriptor_ns"] <= 20  # a descriptor: an empty loop over them is not free
