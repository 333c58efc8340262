"""Contexts on simulated CUDA: the driver gives a thread none by itself, the runtime does.

The answers for a live stream and for streams 0 and 2 were measured on driver 580.159.04 (CUDA 13.0).
"""

from __future__ import annotations

from typing import Any

import pytest

from .processes import value_of

ON_13: dict[str, Any] = {"driver": "13.0", "runtime": "13.0"}
UNTOUCHED = 5
INVALID_VALUE, INVALID_CONTEXT = 1, 201
ENTRIES = pytest.mark.parametrize(
    ("entry", "nine"), [("cuMemcpyBatchAsync", True), ("cuMemcpyBatchAsync_v2", False)]
)


@ENTRIES
def test_the_driver_in_a_thread_without_context(entry: str, nine: bool) -> None:
    assert value_of("driver_without_context", entry=entry, nine=nine, **ON_13) == {
        "batch": [INVALID_VALUE, 2**64 - 1 if nine else UNTOUCHED],
        "copies": [0, INVALID_CONTEXT, INVALID_CONTEXT, INVALID_CONTEXT],
        "synchronous copy": INVALID_CONTEXT,
        "fills": [0, INVALID_CONTEXT],
        "contexts": [
            [0, "primary", UNTOUCHED],
            [INVALID_CONTEXT, UNTOUCHED, UNTOUCHED],
            [INVALID_CONTEXT, UNTOUCHED, UNTOUCHED],
        ],
        "second form": [[0, "primary", 0], [INVALID_CONTEXT, UNTOUCHED, UNTOUCHED]],
        "current": [0, 0],
    }


@ENTRIES
def test_a_borrowed_context_is_enough(entry: str, nine: bool) -> None:
    found = value_of("context_is_borrowed", entry=entry, nine=nine, **ON_13)
    assert found == {"answer": [0, 2**64 - 1 if nine else UNTOUCHED], "arrived": True}


@pytest.mark.parametrize("runtime", ["12.8", "13.0"])
def test_the_runtime_gives_a_new_thread_the_primary_context(runtime: str) -> None:
    assert value_of("runtime_gives_context", driver="13.0", runtime=runtime) == [True, True, True]


@pytest.mark.parametrize(("entry", "nine"), [("cuMemcpyBatchAsync", False), ("cuMemcpyBatchAsync_v2", True)])
def test_a_wrong_abi_crashes_there_too(entry: str, nine: bool) -> None:
    assert value_of("wrong_abi_without_context", entry=entry, nine=nine, **ON_13) == "SIGSEGV"


def test_a_dead_stream_has_no_context() -> None:
    assert value_of("context_of_dead_stream", **ON_13) == "SIGSEGV"
