"""Shipped extensions with unmodified torch on simulated CUDA, where torch and a package are installed."""

from __future__ import annotations

import json
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from pytest_cudabatch.implementations.adapters.torch_bridge import torch_cuda_major

pytest_plugins = ["pytester"]

PACKAGES = {"sgl-kernel": "sglang-kernel", "vllm": "vllm"}
"""Adapters by the distribution that they drive."""


def installed(distribution: str) -> bool:
    try:
        return bool(version(distribution))
    except PackageNotFoundError:
        return False


def adapters(*names: str) -> pytest.MarkDecorator:
    """Parametrize over adapters; one is skipped where its package or a torch of CUDA 13 is missing."""
    missing = "torch" if find_spec("torch") is None else ""
    if not missing and torch_cuda_major() != 13:
        missing = "a torch of CUDA 13"
    return pytest.mark.parametrize(
        "adapter",
        [
            pytest.param(
                name,
                marks=pytest.mark.skipif(
                    bool(missing) or not installed(PACKAGES[name]),
                    reason=f"{missing or PACKAGES[name]} is not installed; nox -s shipped brings it",
                ),
            )
            for name in names
        ],
    )


def cells(pytester: pytest.Pytester, adapter: str, select: str, cases: str) -> dict[str, dict[str, Any]]:
    pytester.runpytest_subprocess(
        *("--cuda-matrix", "--cuda-suite-only", "--cuda-platform=simulated", f"--cuda-select={select}"),
        *(f"--cuda-implementation={adapter}", "--cuda-report=report.json", "-k", cases),
    )
    report = json.loads((Path(pytester.path) / "report.json").read_text())
    return {cell["case"].rpartition("::")[2]: cell for cell in report["cells"]}


@adapters("sgl-kernel", "vllm")
def test_right_bytes_both_ways_on_the_batch_path(pytester: pytest.Pytester, adapter: str) -> None:
    found = cells(
        pytester,
        adapter,
        "gate runtime>=13,<13.1 on driver==13.0",
        "every_pairing and uniform and (h2d or d2h)",
    )
    assert {case: (cell["verdict"], cell["path"]) for case, cell in found.items()} == {
        f"test_a_batch_on_every_pairing[{direction}-uniform]": ("passed", "batch")
        for direction in ("h2d", "d2h")
    }


@adapters("sgl-kernel")
def test_a_second_runtime_loaded_first_splits_version_and_function(
    pytester: pytest.Pytester, adapter: str
) -> None:
    found = cells(pytester, adapter, "gate runtime>=12.9,<13.1 on driver==13.0", "other_major and global")
    (cell,) = (cell for cell in found.values() if cell["verdict"] != "skipped")
    finding = cell["finding"]
    assert (cell["verdict"], cell["signal"]) == ("crashed", "SIGSEGV")
    assert (finding["code"], finding["given"], finding["taken"]) == ("split-owner", 8, 9)
    assert finding["caller"]["file"].endswith("common_ops.abi3.so")


@adapters("sgl-kernel")
def test_the_default_stream_is_diagnosed(pytester: pytest.Pytester, adapter: str) -> None:
    found = cells(pytester, adapter, "gate runtime>=13,<13.1 on driver==13.0", "special_streams")
    assert {case: (cell["verdict"], (cell["finding"] or {}).get("code")) for case, cell in found.items()} == {
        "test_special_streams[null]": ("failed", "legacy-stream"),
        "test_special_streams[legacy]": ("skipped", None),
        "test_special_streams[per-thread]": ("passed", None),
    }


@adapters("vllm")
def test_no_function_to_be_had_leads_to_single_copies(pytester: pytest.Pytester, adapter: str) -> None:
    found = cells(pytester, adapter, "gate runtime>=13,<13.1 on driver==13.0", "test_a_failed_lookup")
    assert {(cell["verdict"], cell["path"]) for cell in found.values()} == {("passed", "fallback")}
    assert len(found) == 2
