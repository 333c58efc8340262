"""Faults on request: they happen inside the simulated libcuda, to calls that are right."""

from __future__ import annotations

from typing import Any

import pytest

from .processes import run, value_of

ON_13: dict[str, Any] = {"driver": "13.0", "runtime": "13.0"}


def with_faults(scenario: str, faults: str, seed: str | None = None, **more: Any) -> Any:
    environment = {"CUDABATCH_SIM_FAULTS": faults}
    if seed is not None:
        environment["CUDABATCH_SIM_FAULT_SEED"] = seed
    return value_of(scenario, environment=environment, **ON_13, **more)


RIGHT, FLIPPED = [0, 0, 7, 0], [0, 0, 6, 0]


@pytest.mark.parametrize(
    ("faults", "found"),
    [
        ("batch=1", [[1, 0, 0, 1]] * 3),
        ("batch@2=801", [RIGHT, [801, 0, 0, 801], RIGHT]),
        ("batch@2+=1", [RIGHT, [1, 0, 0, 1], [1, 0, 0, 1]]),
        ("batch@1=1; batch@3=36", [[1, 0, 0, 1], RIGHT, [36, 0, 0, 36]]),
        ("batch>1=1", [RIGHT] * 3),
        ("batch@2=flip", [RIGHT, FLIPPED, RIGHT]),
        ("mixed-h2d=crash; per-copy=1", [RIGHT] * 3),
    ],
)
def test_codes_and_bytes_of_batches(faults: str, found: list[list[int]]) -> None:
    """Every rule counts every call that it is about, also one that an earlier rule has answered."""
    assert with_faults("codes_of_batches", faults, calls=3) == found


def test_single_copies_and_allocations() -> None:
    assert with_faults("codes_of_single_copies", "per-copy@2=1", calls=3) == [0, 1, 0]
    assert with_faults("codes_of_allocations", "allocate@2+=2") == [0, 2, 2]


def test_a_sticky_error_stays() -> None:
    assert with_faults("lost", "batch@2=719") == [0, 719, 719, 719, 719]


def test_mixed_batches_to_the_device_crash() -> None:
    """The twin of what driver 580.159.04 does: never up to 1,024 copies, of one size, or to the host."""
    found = with_faults("ends_of_kinds", "mixed-h2d=crash", counts=[1024, 1025])
    assert {name: end for name, end in found.items() if end != 0} == {"1025 mixed": "SIGSEGV"}
    found = with_faults("ends_of_kinds", "mixed-h2d>10=crash", counts=[10, 11])
    assert {name: end for name, end in found.items() if end != 0} == {"11 mixed": "SIGSEGV"}


def test_crashes_come_at_a_rate_and_by_seed() -> None:
    found = {
        seed: with_faults("crashes_at_a_rate", "mixed-h2d=crash:20", seed, forks=2, calls=40)
        for seed in ("0", "1", "2", "3")
    }
    for ended in found.values():
        assert ended[0] == ended[1]  # the same in each process
        assert ended[0][0] == "SIGSEGV"
    assert len({ended[0][1] for ended in found.values()}) > 1
    never = with_faults("crashes_at_a_rate", "mixed-h2d=crash:0", forks=1, calls=40)
    assert never == [[0, 40]]


@pytest.mark.parametrize(
    ("faults", "slow", "quick"), [("batch=delay:300", "call", "wait"), ("batch=late:300", "wait", "call")]
)
def test_delays_and_late_work(faults: str, slow: str, quick: str) -> None:
    found = with_faults("lateness", faults)
    assert found["code"] == 0
    assert found[slow] >= 300 > found[quick]


@pytest.mark.parametrize(
    "rule",
    [
        "batch",
        "batch=",
        "batch=0",
        "batch=x",
        "copy=1",
        "batch@0=1",
        "batch@=1",
        "per-copy>3=1",
        "batch=crash:101",
    ],
)
def test_what_is_no_rule(rule: str) -> None:
    ended = run("lost", environment={"CUDABATCH_SIM_FAULTS": rule}, **ON_13)
    assert ended.stderr.splitlines()[0] == (
        f"pytest-cudabatch: CUDABATCH_SIM_FAULTS: {rule} is no fault of the simulated driver: write "
        "batch=crash, like"
    )
