"""What bench/shipped.py holds cells against, by value."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

FILE = Path(__file__).parents[2] / "bench" / "shipped.py"


@pytest.fixture
def shipped(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module by its file: bench/ is no installed package."""
    spec = importlib.util.spec_from_file_location("bench_shipped", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "bench_shipped", module)
    spec.loader.exec_module(module)
    return module


def cell(
    implementation: str, case: str, verdict: str, code: str | None = None, **more: Any
) -> dict[str, Any]:
    finding = {"code": code, "summary": "why", "given": more.get("given"), "taken": more.get("taken")}
    return {
        "nodeid": case,
        "case": f"cudabatch/{case}",
        "implementation": implementation,
        "platform": more.get("platform", "device"),
        "pairing": more.get("pairing", "cu13.0-d13.0"),
        "verdict": verdict,
        "finding": finding if code else None,
    }


SPLIT = "test_two_runtimes.py::test_the_other_major_was_loaded_first[global]"
REPORTED = "test_large.py::test_the_reported_batch[h2d]"
LARGE = "test_large.py::test_counts_to_the_device[51828-mixed]"
SAME = "test_fallback.py::test_the_fallback_does_the_same_as_the_batch"
NEW_THREAD = "test_contexts.py::test_a_thread_that_has_made_no_call"
NULL = "test_streams.py::test_special_streams[null]"


@pytest.mark.parametrize(
    "known",
    [
        cell("sgl-kernel", "test_bytes.py::anything[h2d-uniform]", "passed"),
        cell("sgl-kernel", "test_bytes.py::anything[d2d-uniform]", "skipped"),
        cell("sgl-kernel", NULL, "failed", "legacy-stream"),
        cell("sgl-kernel", SPLIT, "crashed", "split-owner", given=8, taken=9),
        cell("sgl-kernel", SPLIT, "crashed", "wrong-abi", given=8, taken=9, platform="simulated"),
        cell("sgl-kernel", SPLIT, "skipped", pairing="cu12.9-d13.0"),
        cell("sgl-kernel", f"{SAME}[null-801]", "failed", "legacy-stream"),
        cell("sgl-kernel", f"{SAME}[non-blocking-801]", "passed"),
        cell("vllm", f"{SAME}[null-801]", "passed"),
        cell("vllm", f"{SAME}[non-blocking-36]", "failed", "no-driver-guard"),
        cell("vllm", NULL, "passed"),
        cell("vllm", REPORTED, "crashed", "driver-fault"),
        cell("vllm", REPORTED, "passed", platform="simulated"),
        cell("vllm", LARGE, "passed"),
        cell("vllm", LARGE, "crashed", "driver-fault"),
        cell("vllm", LARGE, "crashed", "crash"),
        cell("vllm", NEW_THREAD, "failed", "wrong-context"),
        cell("vllm", NEW_THREAD, "passed", platform="simulated"),
        cell(None, "test_runtime.py::test_anything", "passed"),
    ],
)
def test_what_is_known_is_no_difference(shipped: ModuleType, known: dict[str, Any]) -> None:
    assert list(shipped.differences([known])) == []


@pytest.mark.parametrize(
    "other",
    [
        cell("sgl-kernel", "test_bytes.py::anything[h2d-uniform]", "failed", "wrong-bytes"),
        cell("sgl-kernel", "test_bytes.py::anything[h2d-uniform]", "unavailable"),
        cell("sgl-kernel", NULL, "passed"),
        cell("sgl-kernel", NULL, "skipped"),
        cell("sgl-kernel", SPLIT, "crashed", "split-owner", given=9, taken=8),
        cell("sgl-kernel", SPLIT, "crashed", "crash"),
        cell("sgl-kernel", SPLIT, "skipped"),
        cell("vllm", NULL, "failed", "legacy-stream"),
        cell("vllm", REPORTED, "passed"),
        cell("vllm", REPORTED, "crashed", "crash"),
        cell("vllm", LARGE, "failed", "wrong-bytes"),
        cell("vllm", LARGE, "crashed", "driver-fault", platform="simulated"),
    ],
)
def test_anything_else_is(shipped: ModuleType, other: dict[str, Any]) -> None:
    (line,) = shipped.differences([other])
    assert line.startswith(f"{other['nodeid']}: expected ")


@pytest.mark.parametrize(
    "report", ["gate-sgl-kernel", "gate-vllm", "shipped-two-runtimes", "shipped-reported-batch"]
)
def test_what_the_h200_gave_is_what_is_known(shipped: ModuleType, report: str) -> None:
    (path,) = (FILE.parents[1] / "matrix" / "observed" / report).glob("h200-*.json")
    assert list(shipped.differences(json.loads(path.read_text(encoding="utf-8"))["cells"])) == []


def test_each_run_writes_its_own_report(shipped: ModuleType, tmp_path: Path) -> None:
    commands = [task.command(["run.sh"], "device", 4, tmp_path) for task in shipped.TASKS]
    assert [task.name for task in shipped.TASKS] == [
        "gate-sgl-kernel",
        "gate-vllm",
        "two-runtimes",
        "reported-batch",
    ]
    assert all(command[0] == "run.sh" and "--cuda-platform=device" in command for command in commands)
    assert [next(word for word in command if "--cuda-report" in word) for command in commands] == [
        f"--cuda-report={tmp_path}/{task.name}.json" for task in shipped.TASKS
    ]
