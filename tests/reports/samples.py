"""Reports and journals as the plugin writes them, made by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

HOST = {
    "platform": "device",
    "driver": "13.0",
    "driver_release": "580.159.04",
    "gpus": [{"name": "NVIDIA H200"}],
    "flags": {"mps": False},
    "libraries": [],
    "image": None,
    "python": "3.12.1",
    "plugin": "0.1.0",
}
CRASH = {"code": "crash", "summary": "killed by SIGSEGV"}


def cell(name: str = "test_a", verdict: str = "passed", **more: Any) -> dict[str, Any]:
    failed = verdict not in ("passed", "skipped", "unavailable")
    return {
        "nodeid": f"here/test_x.py::{name}[reference-cu12.9-d13.0]",
        "case": f"test_x.py::{name}",
        "kind": None,
        "implementation": "reference",
        "pairing": "cu12.9-d13.0",
        "runtime": {"version": "12.9.79", "abi": "v12080", "source": "wheel"},
        "driver": {"version": "13.0"},
        "platform": "device",
        "basis": "observed",
        "verdict": verdict,
        "phase": "call" if failed else "exit",
        "pytest": "failed" if failed else "passed" if verdict == "passed" else "skipped",
        "path": "batch",
        "abi_called": "v12080",
        "calls": {"batch": 1, "per_copy": 0},
        "signal": "SIGSEGV" if verdict == "crashed" else None,
        "exit_code": None if verdict == "crashed" else 0,
        "rate": None,
        "finding": CRASH if verdict == "crashed" else None,
        "known_issue": None,
        "seconds": 0.25,
        **more,
    }


def planned(name: str) -> dict[str, Any]:
    full = cell(name)
    return {field: full[field] for field in ("nodeid", "case", "implementation", "pairing")}


def report(*cells: dict[str, Any], started: str = "2026-11-30T10:00:00+00:00", **more: Any) -> dict[str, Any]:
    return {
        "schema": "pytest-cudabatch/report/1",
        "run": {"id": "1", "started": started, "isolation": "cell", "seed": None, "selection": "gate"},
        "host": HOST,
        "cells": list(cells),
        "errors": [],
        **more,
    }


def write_report(path: Path, *cells: dict[str, Any], **more: Any) -> Path:
    path.write_text(json.dumps(report(*cells, **more)))
    return path


def event(kind: str, **fields: Any) -> str:
    return json.dumps({"event": kind, "time": 1.0, **fields})


def begun(*names: str) -> list[str]:
    """The first lines of a journal that plans these cells."""
    data = report()
    return [
        event("run", schema="pytest-cudabatch/journal/1", run=data["run"], host=data["host"]),
        event("planned", cells=[planned(name) for name in names]),
    ]


def ended(name: str, verdict: str = "passed", **more: Any) -> list[str]:
    """The lines of a cell that ran."""
    full = cell(name, verdict)
    texts: dict[str, Any] = {"failures": [], "reason": None, "properties": [], **more}
    return [event("started", nodeid=full["nodeid"]), event("cell", cell=full, **texts)]
