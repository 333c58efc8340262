"""The adversarial schedule: what CUDA leaves open is chosen by seed, what it promises is kept."""

from __future__ import annotations

from typing import Any

import pytest

from .processes import run, value_of

ON_13: dict[str, Any] = {"driver": "13.0", "runtime": "13.0"}
SEEDS = range(4)
ROUNDS = 24


def value_by(scenario: str, schedule: str, **more: Any) -> Any:
    return value_of(scenario, environment={"CUDABATCH_SIM_SCHEDULE": schedule}, **ON_13, **more)


def adversarial(scenario: str, seed: int, **more: Any) -> Any:
    return value_by(scenario, f"adversarial:{seed}", **more)


def test_some_work_runs_at_once_and_some_is_held() -> None:
    found = [adversarial("what_ran_at_once", seed) for seed in SEEDS]
    for at_once, in_the_end in found:
        assert 2 <= sum(at_once) <= 20
        assert in_the_end == [1] * 40
    assert len({tuple(at_once) for at_once, _ in found}) == len(SEEDS)


def test_a_seed_says_all() -> None:
    """The same seed gives the same choices in another process; 0 is the seed where none is given."""
    for scenario, more in (("what_ran_at_once", {}), ("overlapping_copies", {"rounds": ROUNDS})):
        first = value_by(scenario, "adversarial", **more)
        assert first == adversarial(scenario, 0, **more)
        assert first != adversarial(scenario, 1, **more)


def test_held_work_runs_in_time_although_nobody_waits() -> None:
    assert adversarial("nobody_waits", 3) == [1] * 10


def test_queries_make_work_run() -> None:
    counts = adversarial("queries", 5)
    assert set(counts) == {0, 1, 2, 3}


def test_copies_of_a_batch_come_in_any_order() -> None:
    assert len(set(adversarial("overlapping_copies", 2, rounds=ROUNDS))) >= 5
    assert set(value_by("overlapping_copies", "fair", rounds=ROUNDS)) == {7}


@pytest.mark.parametrize("schedule", ["fair", "adversarial:6"])
def test_a_source_is_read_when_its_order_allows(schedule: str) -> None:
    found = value_by("access_orders", schedule, rounds=ROUNDS)
    assert found["stream"] == [2] * ROUNDS
    assert found["during the call"] == [1] * ROUNDS
    assert set(found["any"]) == ({2} if schedule == "fair" else {1, 2})


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_promised_is_kept(seed: int) -> None:
    """Stream order, events across streams, and the legacy stream's own waits."""
    assert adversarial("waits_reach_other_streams", seed, rounds=ROUNDS) == [[1, 1]] * ROUNDS
    assert adversarial("legacy_stream_orders", seed, rounds=ROUNDS) == [[2, 2]] * ROUNDS


def test_synchronous_calls_wait_for_no_more_than_they_must() -> None:
    always = dict.fromkeys(("fill", "within the device", "from pageable memory", "to the host"), ROUNDS)
    assert value_by("calls_that_need_not_wait", "fair", rounds=ROUNDS) == always
    found = adversarial("calls_that_need_not_wait", 1, rounds=ROUNDS)
    assert found.pop("to the host") == ROUNDS
    assert all(0 < count < ROUNDS for count in found.values()), found


@pytest.mark.parametrize(
    "setting", ["", "unfair", "adversarial:", "adversarial:x", "adversarial:-1", "fair:1"]
)
def test_a_setting_that_is_none(setting: str) -> None:
    ended = run("starts", driver="13.0", environment={"CUDABATCH_SIM_SCHEDULE": setting})
    assert ended.value == [1, 1]
    assert ended.stderr == (
        f"pytest-cudabatch: CUDABATCH_SIM_SCHEDULE={setting} is no schedule: set it to fair, adversarial or "
        "adversarial:SEED\n"
    )
