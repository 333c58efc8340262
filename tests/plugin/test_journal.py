"""``--cuda-report=FILE.jsonl``: what a run had finished outlives its controller."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from junitparser import Error
from junitparser.xunit2 import JUnitXml

from pytest_cudabatch.commands import main

MATRIX = (
    "--cuda-matrix",
    "--cuda-platform=simulated",
    "--cuda-select=runtime==12.9 on driver==13.0",
    "--cuda-no-suite",
    "--cuda-report=run.jsonl",
)
CELLS = """
import os, signal
import pytest

def test_good(cuda_pairing):
    pass

def test_crash(cuda_pairing):
    os.kill(os.getpid(), signal.SIGSEGV)

def test_skip(cuda_pairing):
    pytest.skip("not today")

@pytest.mark.cuda_cell(tier="unheard")
def test_refused(cuda_pairing):
    pass

def test_wrong(cuda_pairing):
    assert cuda_pairing is None
"""


def events(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["one process", "two workers"])
def test_the_journal_holds_what_the_report_holds(pytester: pytest.Pytester, workers: Sequence[str]) -> None:
    pytester.makepyfile(CELLS)
    result = pytester.runpytest_subprocess(*MATRIX, "--cuda-report=run.json", "--junitxml=own.xml", *workers)
    assert result.ret == 1
    journal = events(pytester.path / "run.jsonl")
    assert [event["event"] for event in journal][:2] == ["run", "planned"]
    assert sorted(event["event"] for event in journal[2:-1]) == ["cell"] * 4 + ["error"] + ["started"] * 5
    assert (journal[-1]["event"], journal[-1]["status"]) == ("finished", 1)
    paths = {name: str(pytester.path / name) for name in ("run.jsonl", "merged.json", "merged.xml")}
    assert (
        main(["merge", paths["run.jsonl"], "--json", paths["merged.json"], "--junit", paths["merged.xml"]])
        == 0
    )
    assert json.loads((pytester.path / "merged.json").read_text()) == json.loads(
        (pytester.path / "run.json").read_text()
    )
    ours, pytests = (junit_cases(pytester.path / name) for name in ("merged.xml", "own.xml"))
    assert ours == pytests


def junit_cases(path: Path) -> dict[tuple[str, str], Any]:
    """What a reader of JUnit sees of each test: names, properties, and each result with its message."""
    return {
        (case.classname, case.name): (
            sorted((one.name, one.value) for one in case.properties()),
            [(type(result).__name__, result.message.partition(": ")[2]) for result in case.result],
        )
        for suite in JUnitXml.fromfile(str(path))
        for case in suite
        if "test_refused" not in case.name  # it has no cell, and pytest prefixes its fault with the phase
    }


@pytest.mark.parametrize("workers", [(), ("-n1",)], ids=["one process", "one worker"])
def test_kill_9_of_the_controller_loses_nothing_finished(
    pytester: pytest.Pytester, workers: Sequence[str]
) -> None:
    ready, hold = pytester.path / "ready", pytester.path / "hold"
    os.mkfifo(ready)
    os.mkfifo(hold)
    pytester.makepyfile(
        CELLS
        + f"""
def test_blocks(cuda_pairing):
    open({str(ready)!r}, "w").close()
    open({str(hold)!r}).read()

def test_never(cuda_pairing):
    pass
"""
    )
    command = [sys.executable, "-m", "pytest", *MATRIX, *workers]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as controller:
        ready.open().close()  # blocks until the cell opens it, which is when it runs
        controller.send_signal(signal.SIGKILL)
    journal = pytester.path / "run.jsonl"
    merged, junit = pytester.path / "merged.json", pytester.path / "merged.xml"
    assert main(["merge", str(journal), "--json", str(merged), "--junit", str(junit)]) == 0
    data = json.loads(merged.read_text())
    assert {cell["case"].partition("::test_")[2]: cell["verdict"] for cell in data["cells"]} == {
        "good": "passed",
        "crash": "crashed",
        "skip": "skipped",
        "wrong": "failed",
    }
    unfinished = {error["unfinished"]: error["cells"] for error in data["errors"] if "unfinished" in error}
    assert [cell["case"].partition("::test_")[2] for cell in unfinished["running"]] == ["blocks"]
    assert [cell["case"].partition("::test_")[2] for cell in unfinished["not-started"]] == ["never"]
    (suite,) = JUnitXml.fromfile(str(junit))
    results = {case.name.partition("[")[0]: case.result for case in suite}
    for name in ("test_blocks", "test_never"):
        assert isinstance(results[name][0], Error)
        assert results[name][0].message.startswith("not finished: ")
    assert suite.tests == 7


def test_a_journal_that_cannot_be_written_fails_the_run_and_nothing_else(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_it(cuda_pairing):\n    pass\n")
    (pytester.path / "full.jsonl").symlink_to("/dev/full")
    result = pytester.runpytest_subprocess(*MATRIX, "--cuda-report=full.jsonl")
    assert result.ret == 1
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["FAILED --cuda-report: cannot write *full.jsonl: No space left on device"])
    assert events(pytester.path / "run.jsonl")[-1]["status"] == 1


def test_collecting_writes_no_journal(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_it(cuda_pairing):\n    pass\n")
    assert pytester.runpytest_subprocess(*MATRIX, "--collect-only").ret == 0
    assert not (pytester.path / "run.jsonl").exists()
