"""Device and pinned memory on simulated CUDA: where it lies, what may touch it, what is checked."""

from __future__ import annotations

from typing import Any

import pytest

from .processes import value_of

ON_13: dict[str, Any] = {"driver": "13.0", "runtime": "13.0"}
LITTER_FREE_WORDS = {"12.8": 3, "13.0": 11}
"""How many 64-bit words cudaPointerGetAttributes writes: 13.0 added eight."""


@pytest.mark.parametrize("access", ["read", "write"])
def test_the_host_cannot_dereference_device_memory(access: str) -> None:
    assert value_of("dereference", access=access, **ON_13) == "SIGSEGV"


def test_allocations() -> None:
    assert value_of("allocations", **ON_13) == {
        "overlaps": 0,
        "misaligned": 0,
        "used": 0,
        "freed twice": [0, 1],
        "inside": 1,
        "null": [0, 0],
        "too large": 2,
        "zero bytes": 0,
    }


@pytest.mark.parametrize("runtime", ["12.8", "13.0"])
def test_pointer_attributes(runtime: str) -> None:
    words = LITTER_FREE_WORDS[runtime]
    assert value_of("pointer_attributes", driver="13.0", runtime=runtime) == {
        "device": [2, 0, "same", 0, words],
        "pinned": [1, 0, "same", "same", words],
        "pageable": [0, -2, 0, "same", words],
    }


def test_single_copies() -> None:
    assert value_of("single_copies", **ON_13) == {
        "pageable to device": 0,
        "pinned to device": 0,
        "device to device": 0,
        "device to pinned": 0,
        "device to pageable": 0,
        "default": 0,
        "host to host": 0,
        "nothing": 0,
        "past the end": 1,
        "from past the end": 1,
        "null": 1,
        "wrong kind": 1,
        "device as host": 1,
        "no such kind": 21,
        "bytes": [True, True],
    }


def test_fills() -> None:
    assert value_of("fills", **ON_13) == {"codes": [0, 0, 1, 0], "right": True}


def test_reset_ends_everything_and_the_device_can_be_used_again() -> None:
    assert value_of("reset", **ON_13) == [1, 400, "SIGSEGV", True]


def test_states_of_the_driver_api() -> None:
    assert value_of("driver_states", driver="13.0") == {
        "before cuInit": 3,
        "flags": 1,
        "cuInit": 0,
        "without context": 201,
        "with context": 0,
        "release": 0,
        "after release": 709,
        "second device": 101,
    }


def test_registrations() -> None:
    """Two registrations side by side are two; the codes of copies were measured on a real driver."""
    assert value_of("registrations", **ON_13) == {
        "pageable": [0, 0],
        "register": [0, 0],
        "half": [1, 1],
        "two": [1, 1],
        "registered": 712,
        "overlapping": 712,
        "pinned": 712,
        "device": 712,
        "device, free": 1,
        "unmapped": 1,
        "beyond the end": 1,
        "nothing": 1,
        "null": 1,
        "flags": 1,
        "read-only": 801,
        "I/O memory": 800,
        "unregister": [0, 713, 713, 0],
        "unregister pinned": 713,
        "pageable again": [0, 0, 0, 0, 0],
        "end": 0,
    }


def test_flags_and_device_pointers_of_host_memory() -> None:
    assert value_of("host_flags", **ON_13) == {
        "no such flag": 1,
        "default": [0, 0, 0, "same"],
        "all": [0, 0, 7, "same"],
        "registered": [0, 0, 3, "same"],
        "device": [1, 1, 0, 0],
        "unknown": [1, 1, 0, 0],
    }


def test_unregistering_waits_for_work() -> None:
    assert value_of("unregistering_waits", **ON_13) == [600, 0, 0]
