"""The 3D batch call on simulated CUDA.

What was measured on driver 580.159.04 (CUDA 13.0) is held against matrix/contract.toml by tests/contract; the
rest follows cuda.h's words and the flat call's answers.
"""

from __future__ import annotations

from typing import Any

import pytest

from .processes import value_of

SIZE_MAX, UNTOUCHED = 2**64 - 1, 5
LITTER = 0xDEAD << 48
OK, BAD = (0, SIZE_MAX), (1, SIZE_MAX)

ANSWERS: dict[str, tuple[int, int]] = {
    "pitched": OK,
    "tightly_packed": OK,
    "one_row": OK,
    "two_operations": OK,
    "up_to_the_end": OK,
    "past_the_end": (1, 1),
    "nothing": BAD,
    "no_operations": BAD,
    "width_zero": (1, 0),
    "height_zero_in_the_second": (1, 1),
    "depth_zero": (1, 0),
    "rows_too_short": (1, 1),
    "layers_too_low": (1, 0),
    "beyond_all_memory": (1, 1),
    "more_bytes_than_there_are_numbers": (1, 0),
    "null_destination": (1, 1),
    "an_array": (1, 0),
    "order_zero": (1, 1),
    "flags_of_the_call": (1, UNTOUCHED),
    "stream_null": (1, UNTOUCHED),
    "stream_legacy": BAD,
    "stream_per_thread": OK,
}

COLUMNS = {
    "runtime 12.8 on driver 12.8": ("12.8", "12.8", "cudaMemcpy3DBatchAsync", True),
    "runtime 12.8 on driver 13.0": ("13.0", "12.8", "cudaMemcpy3DBatchAsync", True),
    "runtime 13.0 on driver 13.0": ("13.0", "13.0", "cudaMemcpy3DBatchAsync", False),
    "cuMemcpy3DBatchAsync": ("13.0", "13.0", "cuMemcpy3DBatchAsync", True),
    "cuMemcpy3DBatchAsync_v2": ("13.0", "13.0", "cuMemcpy3DBatchAsync_v2", False),
}
"""Driver, runtime, function, and whether it takes five parameters."""


@pytest.mark.parametrize("column", COLUMNS)
def test_answers_and_bytes(column: str) -> None:
    driver, runtime, entry, five = COLUMNS[column]
    found = value_of("batch_3d_contract", driver=driver, runtime=runtime, entry=entry, five=five)
    assert found == {
        case: [code, fail_index if five else UNTOUCHED, True] for case, (code, fail_index) in ANSWERS.items()
    }


@pytest.mark.parametrize("column", [name for name in COLUMNS if name.startswith("runtime")])
def test_the_wrong_arity_is_invalid_and_touches_nothing(column: str) -> None:
    driver, runtime, entry, five = COLUMNS[column]
    options = {"entry": entry, "five": not five, "behind": 0}
    found = value_of("batch_3d_wrong_arity", driver=driver, runtime=runtime, **options)
    assert found == {"code": 1, "fail_index": UNTOUCHED, "last error": 1, "copied nothing": True}


@pytest.mark.parametrize("behind", [LITTER, 0x1000], ids=hex)
@pytest.mark.parametrize("driver", ["12.8", "13.0"])
def test_one_argument_too_few_crashes_where_no_stream_lies_behind(driver: str, behind: int) -> None:
    options = {"entry": "cudaMemcpy3DBatchAsync", "five": False, "behind": behind}
    assert value_of("batch_3d_wrong_arity", driver=driver, runtime="12.8", **options) == "SIGSEGV"


@pytest.mark.parametrize(
    ("order", "old"), [(1, False), (2, True), (3, False)], ids=["STREAM", "DURING", "ANY"]
)
def test_source_overwritten_after_the_call(order: int, old: bool) -> None:
    assert value_of("batch_3d_source_overwritten", driver="13.0", runtime="13.0", order=order) is old


def test_it_is_refused_under_capture() -> None:
    assert value_of("batch_3d_under_capture", driver="13.0", runtime="13.0") == [900, [0, 0]]


@pytest.mark.parametrize(
    ("runtime", "five", "expected"), [("12.8", True, OK), ("13.0", False, (1, UNTOUCHED))]
)
def test_per_thread_entry_with_a_null_stream(runtime: str, five: bool, expected: tuple[int, int]) -> None:
    found: Any = value_of("batch_3d_null_stream_entry", driver="13.0", runtime=runtime, five=five)
    assert tuple(found) == expected
