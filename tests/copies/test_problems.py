"""Wrong bytes and overruns are found where they are, and named by descriptor."""

from __future__ import annotations

import numpy as np

from pytest_cudabatch.copies import GuardOverrun, WrongBytes
from pytest_cudabatch.copies.problems import MOST_PROBLEMS, Problem, Ranges, find_problems

# Descriptor 4 writes [30, 40), descriptor 9 writes [10, 20).
RANGES = Ranges.sort(
    np.array([4, 9]), np.array([30, 10], dtype=np.uint64), np.array([10, 10], dtype=np.uint64)
)


def problems(changes: dict[int, int], ranges: Ranges = RANGES) -> list[Problem]:
    """Return what is found in 50 bytes of 7 after ``changes`` (position -> value)."""
    expected = np.full(50, 7, dtype=np.uint8)
    actual = expected.copy()
    for position, value in changes.items():
        actual[position] = value
    return find_problems("device destination", actual, expected, ranges)


def wrong(descriptor: int, offset: int, got: int, count: int, copies: int) -> WrongBytes:
    return WrongBytes("device destination", descriptor, offset, 7, got, count, 10, copies)


def test_right_bytes_are_no_problem() -> None:
    assert problems({}) == []


def test_wrong_bytes_are_counted_per_copy_from_the_first_on() -> None:
    assert problems({33: 1, 39: 2, 19: 3}) == [wrong(4, 3, 1, 2, 2), wrong(9, 9, 3, 1, 2)]


def test_overruns_are_joined_and_named_by_the_copy_before() -> None:
    assert problems({0: 1, 20: 2, 21: 2, 29: 3, 40: 4, 49: 5}) == [
        GuardOverrun("device destination", 0, 1, None, 1, 5),
        GuardOverrun("device destination", 20, 2, 9, 2, 5),
        GuardOverrun("device destination", 29, 1, 9, 3, 5),
        GuardOverrun("device destination", 40, 1, 4, 4, 5),
        GuardOverrun("device destination", 49, 1, 4, 5, 5),
    ]


def test_a_row_of_bytes_over_the_edge_is_one_wrong_copy_and_one_overrun() -> None:
    assert problems(dict.fromkeys(range(18, 23), 0)) == [
        wrong(9, 8, 0, 2, 1),
        GuardOverrun("device destination", 20, 3, 9, 0, 1),
    ]


def test_nothing_may_be_written_where_there_are_no_ranges() -> None:
    assert problems({12: 1, 13: 1}, Ranges.none()) == [GuardOverrun("device destination", 12, 2, None, 1, 1)]


def test_the_list_is_bounded_and_says_how_many_there_are() -> None:
    starts = np.arange(0, 400, 4, dtype=np.uint64)
    ranges = Ranges.sort(np.arange(100), starts, np.full(100, 2, dtype=np.uint64))
    found = find_problems("host destination", np.ones(400, np.uint8), np.zeros(400, np.uint8), ranges)
    copies = [problem for problem in found if isinstance(problem, WrongBytes)]
    overruns = [problem for problem in found if isinstance(problem, GuardOverrun)]
    assert [problem.descriptor for problem in copies] == list(range(MOST_PROBLEMS))
    assert [problem.after_descriptor for problem in overruns] == list(range(MOST_PROBLEMS))
    assert {problem.copies for problem in copies} == {100}
    assert {problem.places for problem in overruns} == {100}


def test_problems_read_as_sentences() -> None:
    (copy,) = problems({33: 0xAB})
    (overrun,) = problems({41: 0xAB})
    assert str(copy) == (
        "copy 4 into the device destination: 1 of 10 bytes wrong, the first at byte 3 (0xab, expected 0x07); "
        "wrong copies in all: 1"
    )
    assert str(overrun) == (
        "1 bytes of the device destination written that no copy may write, the first (0xab) at byte 41, "
        "behind copy 4; such places in all: 1"
    )
