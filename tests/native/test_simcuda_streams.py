"""Streams and events on simulated CUDA: work runs later, in the order that the contract demands."""

from __future__ import annotations

from typing import Any

import pytest

from .processes import run, value_of

ON_13: dict[str, Any] = {"driver": "13.0", "runtime": "13.0"}
NOT_READY = 600
PAIRINGS = pytest.mark.parametrize(
    ("driver", "runtime"), [("12.8", "12.8"), ("13.0", "12.8"), ("13.0", "13.0")], ids=lambda value: value
)


@PAIRINGS
def test_a_copy_happens_after_the_call(driver: str, runtime: str) -> None:
    assert value_of("asynchrony", driver=driver, runtime=runtime) == {
        "codes": [0, 0],
        "before": [NOT_READY, NOT_READY],
        "after": [0, 0, 0],
        "bytes": [True, True],
    }


def test_streams_do_not_wait_for_each_other() -> None:
    expected = {"codes": [0, 0], "held": NOT_READY, "free": 0, "end": 0}
    assert value_of("streams_are_independent", **ON_13) == expected


@pytest.mark.parametrize(("flags", "before"), [(0, NOT_READY), (1, 0)], ids=["blocking", "non-blocking"])
def test_the_legacy_stream_waits_for_blocking_streams_only(flags: int, before: int) -> None:
    assert value_of("legacy_stream_waits", flags=flags, **ON_13) == [before, 0, 0, 0]


def test_a_stream_waits_for_an_event_of_another() -> None:
    expected = {"codes": [0, 0, 0, 0], "before": NOT_READY, "after": [0, 0]}
    assert value_of("wait_event", **ON_13) == expected


def test_work_of_a_destroyed_stream_still_runs() -> None:
    assert value_of("destroyed_with_work", **ON_13) == [0, 0, 0, 0, 9]


def test_events() -> None:
    assert value_of("events", **ON_13) == {
        "unrecorded": [0, 400],
        "codes": [0, 0, 0, 0, 0],
        "forwards": True,
        "untimed": 400,
        "flags": [1, 1],
        "destroyed": [0, 400, 400],
    }


def test_a_write_through_a_handle_faults() -> None:
    assert value_of("handles_are_read_only", **ON_13) == "SIGSEGV"


def test_a_handle_is_not_used_again_for_long() -> None:
    assert value_of("many_streams", **ON_13) == {"distinct": 16384, "first seen again at": 16384}


@pytest.mark.parametrize(
    ("driver", "runtime", "own", "version"),
    [("12.8", "12.8", 12080, 12090), ("13.0", "12.8", 13000, 13050), ("13.0", "13.0", 13000, 13020)],
)
def test_fork_before_the_first_use(driver: str, runtime: str, own: int, version: int) -> None:
    """Parent and child can both go on, and the child's version is the one that was set in it."""
    found = value_of("fork_before_use", driver=driver, runtime=runtime, version=version)
    assert found == {"child": [0, True, version], "parent": [0, True, own]}


def test_fork_after_use_leaves_a_child_without_cuda() -> None:
    assert value_of("fork_after_use", **ON_13) == {"child": [3, 3, 3], "parent": [0, 0, 0]}


def test_no_thread_starts_before_asynchronous_work() -> None:
    assert value_of("threads_after_load", **ON_13) == [1, 1, 2]


def test_a_process_ends_while_work_is_under_way() -> None:
    ended = run("exit_with_work", **ON_13)
    assert (ended.exit_code, ended.signal, ended.value, ended.stderr) == (0, None, "left", "")


def test_work_goes_on_in_the_memory_that_an_interpreter_leaves() -> None:
    """The scenarios' memory stays until the process ends: work that nobody waited for never faults in it."""
    assert value_of("exit_with_work_that_goes_on", **ON_13) == "left"


def test_both_libraries_load_within_five_milliseconds() -> None:
    assert value_of("load_seconds", **ON_13) < 5e-3
