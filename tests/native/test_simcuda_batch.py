"""The batch call on simulated CUDA: the answers of real drivers, both ABIs, and what a wrong one comes to.

The answers were measured on driver 580.159.04 (CUDA 13.0) with runtimes 12.9 and 13.0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from .processes import value_of

SIZE_MAX = 2**64 - 1
UNTOUCHED = 5
SEGV = "SIGSEGV"


@dataclass(frozen=True)
class Column:
    """One way to the function: a runtime on a driver, or the driver itself."""

    name: str
    driver: str
    runtime: str
    nine: bool
    environment: tuple[tuple[str, str], ...] = ()
    entry: str = "runtime"

    def options(self) -> dict[str, Any]:
        return {"driver": self.driver, "runtime": self.runtime, "environment": dict(self.environment)}


RUNTIME_12 = Column("runtime 12.8 on driver 12.8", "12.8", "12.8", nine=True)
RUNTIME_12_ON_13 = Column(
    "runtime 12.9 on driver 13.0",
    "13.0",
    "12.8",
    nine=True,
    environment=(("CUDABATCH_SIM_RUNTIME_12", "12090"),),
)
RUNTIME_13 = Column("runtime 13.0 on driver 13.0", "13.0", "13.0", nine=False)
DRIVER_9 = Column("cuMemcpyBatchAsync", "13.0", "13.0", nine=True, entry="cuMemcpyBatchAsync")
DRIVER_8 = Column("cuMemcpyBatchAsync_v2", "13.0", "13.0", nine=False, entry="cuMemcpyBatchAsync_v2")
COLUMNS = (RUNTIME_12, RUNTIME_12_ON_13, RUNTIME_13, DRIVER_9, DRIVER_8)

OK: tuple[int, int] = (0, SIZE_MAX)
BAD: tuple[int, int] = (1, SIZE_MAX)

ANSWERS: dict[str, tuple[int, int] | str] = {
    "normal": OK,
    "device_to_device": OK,
    "host_to_host": OK,
    "mixed_directions": OK,
    "overlapping_destinations": OK,
    "flag_prefer_overlap": OK,
    "order_any": OK,
    "order_during_api_call": OK,
    "pageable_source_order_stream": OK,
    "pageable_source_order_during_api_call": OK,
    "stream_null": (1, UNTOUCHED),
    "stream_legacy": BAD,
    "stream_per_thread": OK,
    "count_zero": BAD,
    "size_zero_second_of_two": (1, 1),
    "size_zero_only": (1, 0),
    "no_attributes": BAD,
    "order_zero": BAD,
    "null_destination_second_of_three": (1, 1),
    "one_index_before_a_hole": OK,
    "two_attributes": OK,
    "first_index_one": BAD,
    "indices_not_increasing": BAD,
    "indices_equal": BAD,
    "index_beyond_count": BAD,
    "more_attributes_than_copies": BAD,
    "order_four": BAD,
    "flags_two": BAD,
    "hint_device_99": BAD,
    "hints_host_to_device": OK,
    "source_is_destination": OK,
    "odd_addresses_and_sizes": OK,
    "fail_index_null": (0, UNTOUCHED),
    "fail_index_null_bad_batch": (1, UNTOUCHED),
    "source_inside_one_registration": OK,
    "source_across_two_registrations": (1, 0),
    "source_half_registered": (1, 0),
    "past_the_allocation": (1, 0),
    "device_address_far_outside": SEGV,
    "host_address_0x10": SEGV,
    "pageable_address_not_mapped": SEGV,
    "destroyed_stream": SEGV,
}


@pytest.fixture(scope="module", params=COLUMNS, ids=lambda column: column.name)
def column(request: pytest.FixtureRequest) -> Column:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def answers(column: Column) -> dict[str, Any]:
    """All cases of one column: one process, a fork per case."""
    found: dict[str, Any] = value_of(
        "batch_contract", nine=column.nine, entry=column.entry, **column.options()
    )
    return found


@pytest.mark.parametrize("case", ANSWERS)
def test_answers_as_a_real_driver(answers: dict[str, Any], column: Column, case: str) -> None:
    expected = ANSWERS[case]
    if isinstance(expected, str):
        assert answers[case] == expected
        return
    code, fail_index = expected
    remembered = code if column.entry == "runtime" else 0
    assert answers[case] == {
        "code": code,
        "fail_index": fail_index if column.nine else UNTOUCHED,
        "last_errors": [remembered, remembered, 0],  # peek, get, and get again
        "arrived": True if code == 0 else None,
    }


def test_the_table_has_every_case(answers: dict[str, Any]) -> None:
    assert set(answers) == set(ANSWERS)


@pytest.mark.parametrize(
    ("column", "expected"),
    [(RUNTIME_12, [0, SIZE_MAX]), (RUNTIME_12_ON_13, [0, SIZE_MAX]), (RUNTIME_13, [1, UNTOUCHED])],
    ids=lambda value: getattr(value, "name", None),
)
def test_per_thread_entry_with_a_null_stream(column: Column, expected: list[int]) -> None:
    assert value_of("batch_per_thread_entry", nine=column.nine, **column.options()) == expected


@pytest.mark.parametrize("column", [RUNTIME_12, RUNTIME_12_ON_13, RUNTIME_13], ids=lambda column: column.name)
def test_valid_from_another_thread(column: Column) -> None:
    assert value_of("batch_from_thread", nine=column.nine, **column.options()) == {"code": 0, "arrived": True}


def test_copies_before_a_bad_one_are_made_and_those_behind_it_are_not() -> None:
    """As driver 580.159.04 does; the second copy has no bytes."""
    assert value_of("copies_before_a_bad_one", **RUNTIME_12_ON_13.options()) == {
        "answer": [1, 1],
        "arrived": [True, False, False],
        "between": True,
    }


# Wrong ABI ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("litter", [True, False], ids=["non-canonical word behind", "whatever lies behind"])
@pytest.mark.parametrize("column", [RUNTIME_12, RUNTIME_12_ON_13, DRIVER_9], ids=lambda column: column.name)
def test_eight_parameters_into_nine_crash_every_time(column: Column, litter: bool) -> None:
    ends = value_of("wrong_8_into_9", entry=column.entry, stream="own", litter=litter, **column.options())
    assert ends == [SEGV] * 20


@pytest.mark.parametrize("stream", ["legacy", "per-thread"])
def test_eight_parameters_into_nine_crash_on_a_special_stream_too(stream: str) -> None:
    options = {"entry": "runtime", "stream": stream, "litter": False, "repeats": 3}
    assert value_of("wrong_8_into_9", **options, **RUNTIME_12_ON_13.options()) == [SEGV] * 3


@pytest.mark.parametrize("column", [RUNTIME_13, DRIVER_8], ids=lambda column: column.name)
def test_nine_parameters_into_eight_crash_every_time(column: Column) -> None:
    ends = value_of("wrong_9_into_8", entry=column.entry, fail_index=SIZE_MAX, **column.options())
    assert ends == [SEGV] * 20


@pytest.mark.parametrize("fail_index", [0xDEAD, 0, 1, 4096], ids=hex)
def test_nine_parameters_into_eight_crash_whatever_fail_index_holds(fail_index: int) -> None:
    options = {"entry": "runtime", "fail_index": fail_index, "repeats": 3}
    assert value_of("wrong_9_into_8", **options, **RUNTIME_13.options()) == [SEGV] * 3


def test_a_readable_word_that_is_no_handle_crashes_too() -> None:
    """failIdx's value may happen to be the address of something readable: still no stream."""
    assert value_of("wrong_9_into_8_readable", driver="13.0", runtime="13.0") == [SEGV] * 20


# A driver without the function ----------------------------------------------------------------------------


@pytest.mark.parametrize("parameters", [8, 9])
def test_a_driver_without_the_function_answers_36_and_touches_nothing(parameters: int) -> None:
    found = value_of("batch_untouched", driver="12.4", runtime="12.8", parameters=parameters)
    assert found == {"code": 36, "fail_index": UNTOUCHED, "last_error": 36}


@pytest.mark.parametrize("parameters", [8, 9])
@pytest.mark.parametrize("driver", ["12.4", "12.8"])
def test_a_driver_of_the_older_major_version_answers_35(driver: str, parameters: int) -> None:
    found = value_of("batch_untouched", driver=driver, runtime="13.0", parameters=parameters)
    assert found == {"code": 35, "fail_index": UNTOUCHED, "last_error": 35}


# When the source is read ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("order", "arrives"), [(1, "new"), (2, "old"), (3, "new")], ids=["STREAM", "DURING", "ANY"]
)
def test_source_overwritten_after_the_call(order: int, arrives: str) -> None:
    """Behind a blocked stream only DURING_API_CALL has read the source when the call returns."""
    assert value_of("source_overwritten", driver="13.0", runtime="13.0", order=order) == arrives


def test_4096_descriptors_cost_well_under_a_millisecond() -> None:
    assert value_of("batch_seconds", driver="13.0", runtime="13.0", count=4096) < 1e-3


@pytest.mark.parametrize("version", ["13000", "13020"])
def test_one_copy_with_attributes(version: str) -> None:
    """It came with 13.2: an older driver lacks it, and the runtime says so (36)."""
    setting = {"CUDABATCH_SIM_DRIVER": version, "CUDABATCH_SIM_RUNTIME_13": "13020"}
    found = value_of("one_copy_with_attributes", driver="13.0", runtime="13.0", environment=setting)
    if version == "13000":
        assert found == {"valid": [36, None], "orders": [36] * 4, "streams": [36] * 3, "no bytes": 36}
    else:
        assert found == {"valid": [0, True], "orders": [1, 0, 0, 1], "streams": [1, 1, 0], "no bytes": 1}
