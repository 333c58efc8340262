"""Stream capture on simulated CUDA.

The batch call's answers under capture were measured on driver 580.159.04 (CUDA 13.0); the rest follows
cuda.h's words on capture.
"""

from __future__ import annotations

from typing import Any

import pytest

from .processes import value_of

ON_13: dict[str, Any] = {"driver": "13.0", "runtime": "13.0"}
SIZE_MAX, UNTOUCHED = 2**64 - 1, 5
UNSUPPORTED, INVALIDATED = 900, 901
NONE, ACTIVE, BROKEN = 0, 1, 2
GLOBAL, THREAD_LOCAL, RELAXED = 0, 1, 2


@pytest.mark.parametrize("mode", [GLOBAL, THREAD_LOCAL, RELAXED], ids=["global", "thread-local", "relaxed"])
@pytest.mark.parametrize(
    ("runtime", "entry", "nine"),
    [
        ("12.8", "runtime", True),
        ("13.0", "runtime", False),
        ("13.0", "cuMemcpyBatchAsync", True),
        ("13.0", "cuMemcpyBatchAsync_v2", False),
    ],
)
def test_a_batch_is_refused_and_the_capture_goes_on(runtime: str, entry: str, nine: bool, mode: int) -> None:
    found = value_of("batch_under_capture", driver="13.0", runtime=runtime, entry=entry, nine=nine, mode=mode)
    fail_index = SIZE_MAX if nine else UNTOUCHED
    assert found == {
        "begun": [0, 0, ACTIVE],
        "answer": [UNSUPPORTED, fail_index],
        "last errors": [UNSUPPORTED if entry == "runtime" else 0, 0],
        "ended": [0, 0],
        "again": [0, fail_index],
        "arrived": True,
    }


def test_captured_work_becomes_nodes_and_does_not_run() -> None:
    assert value_of("captured_work", **ON_13) == {
        "codes": [0, 0, 0, 0, 1, 0, 0],
        "nodes": [4, 4, 4, 0, 0],
        "few": 2,
        "did not run": True,
        "destroyed": [0, 1],
        "dead": 1,
    }


def test_beginnings_and_ends() -> None:
    assert value_of("beginnings_and_ends", **ON_13) == {
        "idle": [0, NONE],
        "end without begin": 401,
        "no such mode": [1, 1],
        "legacy": [UNSUPPORTED, UNSUPPORTED],
        "begin": 0,
        "begin twice": 401,
        "end elsewhere": [908, None],
        "end": [0, 0],
        "relaxed": 0,
        "relaxed, end elsewhere": [0, 0],
        "per thread": [0, 0, 0],
        "per-thread entry": [0, 0, 0],
        "destroyed while it captures": [0, 0],
    }


BREAKS = [UNSUPPORTED, BROKEN, INVALIDATED]
PASSES = [0, ACTIVE, 0]
ALWAYS = {
    "synchronise it": BREAKS,
    "query it": BREAKS,
    "synchronise another": PASSES,
    "copy on another": PASSES,
    "record": [801, ACTIVE, 0],
    "after all": [0, 0],
}
UNSAFE = ("allocate", "allocate elsewhere", "allocate, pinned", "copy", "synchronise the device")


@pytest.mark.parametrize(
    ("mode", "forbidden"),
    [(GLOBAL, set(UNSAFE)), (THREAD_LOCAL, set(UNSAFE) - {"allocate elsewhere"}), (RELAXED, set())],
    ids=["global", "thread-local", "relaxed"],
)
def test_unsafe_calls_break_the_captures_that_forbid_them(mode: int, forbidden: set[str]) -> None:
    expected = {name: BREAKS if name in forbidden else PASSES for name in UNSAFE}
    assert value_of("unsafe_calls", mode=mode, **ON_13) == expected | ALWAYS


def test_a_thread_in_relaxed_mode_may_allocate() -> None:
    assert value_of("guarded_by_relaxed_mode", **ON_13) == [[0, 0, 0, 0], GLOBAL, RELAXED, [0, 0]]


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (0, {"status": [906, 99], "fill": 906, "end": INVALIDATED, "fill again": 0}),
        (1, {"status": [0, NONE], "fill": 0, "end": 0, "fill again": 0}),
    ],
    ids=["blocking", "non-blocking"],
)
def test_the_legacy_stream_beside_a_capture(flags: int, expected: dict[str, Any]) -> None:
    assert value_of("legacy_beside_capture", flags=flags, **ON_13) == expected


def test_a_reset_ends_captures_and_graphs() -> None:
    assert value_of("reset_under_capture", **ON_13) == [0, 1]


def test_a_graph_does_what_was_captured_each_time() -> None:
    assert value_of("replayed", **ON_13) == {
        "codes": [0] * 9,
        "before": "0000000000000000",
        "seen": ["0202020207070707", "0303030307070707"],
        "host functions": 2,
        "dead": [1, 1, 1],
    }


def test_a_graph_in_a_capture_is_captured() -> None:
    assert value_of("launched_into_a_capture", **ON_13) == [0, 0, 0, 0, 3]


@pytest.mark.parametrize(("driver", "runtime"), [("12.8", "12.8"), ("13.0", "13.0")])
def test_each_capture_has_a_number(driver: str, runtime: str) -> None:
    found = value_of("capture_info", driver=driver, runtime=runtime)
    assert found == {"idle": [0, NONE, 0], "captures": [[0, ACTIVE, 1], [0, ACTIVE, 2]]}


def test_a_capture_does_not_wait_for_what_is_outside() -> None:
    assert value_of("waits_from_outside", **ON_13) == [905, INVALIDATED]


@pytest.mark.parametrize(
    ("version", "switch", "expected"),
    [
        ("13040", "1", {"code": UNSUPPORTED, "nodes": 0, "codes": [0, 0], "arrived": 0}),
        ("13050", "0", {"code": UNSUPPORTED, "nodes": 0, "codes": [0, 0], "arrived": 0}),
        ("13050", "1", {"code": 0, "nodes": 1, "codes": [0, 0], "arrived": 9}),
    ],
)
def test_a_driver_may_be_told_to_capture_batches(version: str, switch: str, expected: dict[str, Any]) -> None:
    environment = {"CUDABATCH_SIM_DRIVER": version, "CUDABATCH_SIM_CAPTURED_BATCHES": switch}
    assert value_of("batch_in_a_graph", environment=environment, nine=False, **ON_13) == expected
