"""``--cuda-schedule``: checked, printed, handed to every cell, and repeated by the rerun line."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

ONE_PAIRING = ("--cuda-platform=simulated", "--cuda-select=runtime==12.9 on driver==13.0", "--cuda-no-suite")

OWN_TEST = """
import ctypes, os

def test_own(cuda_runtime, cuda_stream, cuda_pairing):
    target = cuda_runtime.malloc_host(40)
    target.bytes.fill(0)
    for index in range(40):
        cuda_runtime.enqueue_memcpy(target.address + index, cuda_runtime.malloc(1).address, 1, cuda_stream)
    assert os.environ["CUDABATCH_SIM_SCHEDULE"] == "fair"
"""


def run(pytester: pytest.Pytester, *arguments: str) -> tuple[pytest.RunResult, dict[str, Any]]:
    result = pytester.runpytest_subprocess(
        "--cuda-matrix", *ONE_PAIRING, "--cuda-report=report.json", *arguments
    )
    return result, json.loads((pytester.path / "report.json").read_text())


def test_fair_where_nothing_is_said(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(OWN_TEST)
    result, data = run(pytester)
    assert result.ret == 0
    assert "schedule" not in result.stdout.str()
    assert (data["run"]["schedule"], data["run"]["seed"]) == ("fair", None)


@pytest.mark.parametrize("by", ["option", "ini", "worker"])
def test_a_seed_reaches_the_cell(pytester: pytest.Pytester, by: str) -> None:
    pytester.makepyfile(OWN_TEST)
    if by == "ini":
        pytester.makeini("[pytest]\ncuda_schedule = adversarial:7\n")
    arguments = {"option": ["--cuda-schedule=adversarial:7"], "ini": [], "worker": ["-n1"]}[by]
    result, data = run(pytester, *arguments, *(["--cuda-schedule=adversarial:7"] if by == "worker" else []))
    assert result.ret == 1
    assert (data["run"]["schedule"], data["run"]["seed"]) == ("adversarial", 7)
    result.stdout.fnmatch_lines(
        [
            "cuda matrix: simulated CUDA, schedule adversarial:7; *",
            "*AssertionError: assert 'adversarial:7' == 'fair'*",
        ]
    )


def test_a_seed_is_drawn_and_can_be_repeated(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(OWN_TEST)
    result, data = run(pytester, "--cuda-schedule=adversarial")
    (seed,) = set(re.findall(r"adversarial:(\d+)", result.stdout.str()))
    assert data["run"]["seed"] == int(seed)


def test_the_rerun_line_repeats_the_seed(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest_subprocess(
        "--cuda-matrix",
        *ONE_PAIRING[:2],
        "--cuda-schedule=adversarial:9",
        "--cuda-implementation=specimen:off-by-one",
        "-k",
        "test_callee",
    )
    result.stdout.fnmatch_lines(["  rerun one: pytest *--cuda-schedule=adversarial:9 *"])


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("unfair", "'unfair' is none of fair, adversarial and adversarial:SEED"),
        ("adversarial:-1", "'adversarial:-1' is none of fair, adversarial and adversarial:SEED"),
        (f"adversarial:{1 << 64}", f"'adversarial:{1 << 64}': a seed is a number below 2**64"),
    ],
)
def test_what_is_no_schedule(pytester: pytest.Pytester, setting: str, says: str) -> None:
    result = pytester.runpytest_subprocess("--cuda-matrix", *ONE_PAIRING, f"--cuda-schedule={setting}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert [line for line in result.errlines if line] == [f"ERROR: --cuda-schedule: {says}"]


def test_only_simulated_cuda_has_a_schedule(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest_subprocess(
        "--cuda-matrix", "--cuda-platform=no-driver", "--cuda-schedule=adversarial:3"
    )
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert [line for line in result.errlines if line] == [
        "ERROR: --cuda-schedule: adversarial:3 is for simulated CUDA, not for no-driver"
    ]
