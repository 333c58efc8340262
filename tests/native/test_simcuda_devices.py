"""Several simulated devices in one process."""

from __future__ import annotations

from typing import Any

import pytest

from .processes import run, value_of

TWO: dict[str, Any] = {"environment": {"CUDABATCH_SIM_DEVICES": "2"}}
PAIRINGS = pytest.mark.parametrize(("driver", "runtime"), [("12.8", "12.8"), ("13.0", "13.0")])
NOT_READY = 600


@PAIRINGS
def test_a_thread_chooses_its_device(driver: str, runtime: str) -> None:
    assert value_of("devices", driver=driver, runtime=runtime, **TWO) == {
        "names": ["0000:00:00.0", "0000:01:00.0"],
        "chosen": [0, 0, 1],
        "no such": [101, 101],
        "still": 1,
        "in a new thread": 0,
    }


@PAIRINGS
def test_each_device_has_memory_of_its_own(driver: str, runtime: str) -> None:
    assert value_of("memory_of_devices", driver=driver, runtime=runtime, **TWO) == {
        "ordinals": [0, 1],
        "contexts": [True, True],
        "used": [1 << 20, 1 << 20],
        "codes": [0, 0, 0],
        "copied": "05050505",
        "a host access": "SIGSEGV",
    }


@pytest.mark.parametrize("schedule", ["fair", "adversarial:1"])
def test_devices_do_not_wait_for_each_other(schedule: str) -> None:
    environment = {"CUDABATCH_SIM_DEVICES": "2", "CUDABATCH_SIM_SCHEDULE": schedule}
    assert value_of("streams_of_devices", driver="13.0", runtime="13.0", environment=environment) == {
        "foreign event": 400,
        "held": 0,
        "query": NOT_READY,
        "free": [0, 0],
        "the first device": 0,
        "before": "0001",
        "across": [0, 0],
        "the second device": 0,
        "after": "0101",
    }


def test_a_reset_leaves_other_devices_alone() -> None:
    assert value_of("a_reset_is_of_one_device", driver="13.0", runtime="13.0", **TWO) == [0, 1, 0, 0]


@pytest.mark.parametrize("setting", ["", "0", "9", "10", "two"])
def test_a_number_of_devices_that_cannot_be(setting: str) -> None:
    ended = run("starts", driver="13.0", environment={"CUDABATCH_SIM_DEVICES": setting})
    assert ended.value == [1, 1]
    assert ended.stderr == (
        f"pytest-cudabatch: CUDABATCH_SIM_DEVICES={setting} is no number of devices: set it to 1 ... 8\n"
    )
