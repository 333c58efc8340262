"""Memory pools on the simulated driver, and what cuda.core asks for beside them."""

from __future__ import annotations

import pytest

from .processes import run, value_of

DEVICE, HOST = 1, 2


@pytest.mark.parametrize("location", [DEVICE, HOST])
@pytest.mark.parametrize("driver", ["12.4", "12.8", "13.0"])
@pytest.mark.parametrize("schedule", ["fair", "adversarial:3"])
def test_memory_ends_when_the_stream_comes_to_it(location: int, driver: str, schedule: str) -> None:
    environment = {"CUDABATCH_SIM_SCHEDULE": schedule}
    assert value_of("stream_ordered", driver=driver, location=location, environment=environment) == {
        "fill": 0,
        "copy": 0,
        "free": 0,
        "freed twice": 1,
        "copied after": 1,
        "used before": [0, 4096],
        "reused early": False,
        "bytes": True,
        "used after": [0, 4096],
        "most used": [0, 8192],
        "freed at once": 0,
    }


def test_pools() -> None:
    assert value_of("pools", driver="13.0") == {
        "no such device": 1,
        "no such node": 1,
        "no location": 1,
        "no kind": 1,
        "handle types": 801,
        "limit": [0, 4 << 20],
        "beyond the limit": 2,
        "pool of the pointer": True,
        "current": True,
        "set": 0,
        "now current": True,
        "of no bytes": 1,
        "destroyed": 0,
        "destroyed twice": 1,
        "default destroyed": 1,
        "current again": True,
        "kept": 0,
        "freed": 0,
        "at last": 0,
    }


def test_free_in_order_of_what_no_pool_has_given() -> None:
    assert value_of("unordered_free", driver="13.0") == [1, 1, 0, 0, 0, 1]


def test_fills_by_element() -> None:
    assert value_of("element_fills", driver="13.0") == {
        "codes": [0, 0, 0],
        "misaligned": [1, 1],
        "beyond": [1, 1],
        "bytes": "11113322332233227766554477665544" + "1111",
    }


def test_a_capture_tells_its_graph_and_what_comes_last() -> None:
    ended = run("growing_capture", driver="13.0")
    assert ended.value == {
        "outside": [0, 0, 0, None],
        "begun": [1, True, 0, None],
        "grown": [1, True, 1, True],
        "destroyed": 1,
        "allocated": 801,
        "ended": 0,
    }
    assert ended.stderr == (
        "simulated CUDA: to allocate or free in a captured stream is not supported (simulated device)\n"
    )
