"""The implementations that copy one by one by design, on fakes that count what they do."""

from __future__ import annotations

import pytest

from .fakes import Fakes, call, needs_compiler

pytestmark = needs_compiler

BASELINES = ("per-copy", "per-copy-coalesced")


@pytest.mark.parametrize(
    ("implementation", "sizes", "copies"),
    [
        ("per-copy", [64, 1, 300], 3),
        ("per-copy", [0, 64, 0, 0, 1], 2),
        # A scenario's ranges lie side by side: all of a call's copies are neighbours.
        ("per-copy-coalesced", [64, 1, 300], 1),
        ("per-copy-coalesced", [0, 64, 0, 0, 1], 1),
        ("per-copy-coalesced", [64], 1),
        ("per-copy-coalesced", [0, 0], 0),
        ("per-copy-coalesced", [], 0),
    ],
)
def test_neighbours_become_one_copy(fakes: Fakes, implementation: str, sizes: list[int], copies: int) -> None:
    outcome = fakes.run("driver", "runtime12", implementation=implementation, calls=[call(sizes)])
    assert outcome.results == [(0, True)]
    assert (outcome.counts("runtime12"), outcome.counts("driver")) == ((0, copies), (0, 0))


@pytest.mark.parametrize("stream", [0, 1, 2])
@pytest.mark.parametrize("implementation", BASELINES)
def test_every_stream_is_passed_on(fakes: Fakes, implementation: str, stream: int) -> None:
    outcome = fakes.run("runtime13", implementation=implementation, calls=[call(stream=stream)])
    assert outcome.results == [(0, True)]
    assert outcome.seen["runtime13"]["fake_stream"] == stream


@pytest.mark.parametrize(
    ("implementation", "at", "copies"), [("per-copy", 1, 2), ("per-copy-coalesced", 0, 1)]
)
def test_the_first_error_is_returned_and_not_left_behind(
    fakes: Fakes, implementation: str, at: int, copies: int
) -> None:
    wanted = {"fake_copy_code": 719, "fake_copy_code_at": at}
    outcome = fakes.run("runtime12", implementation=implementation, runtime12=wanted)
    assert outcome.results == [(719, False)]
    assert outcome.counts("runtime12") == (0, copies)
    assert outcome.seen["runtime12"]["fake_last_error"] == 0


@pytest.mark.parametrize(("most", "ending"), [(80, (0, True)), (50, (1, False))])
def test_the_parts_of_a_copy_that_is_refused_are_made_one_by_one(
    fakes: Fakes, most: int, ending: tuple[int, bool]
) -> None:
    """As across two allocations; where a part is refused too, that is the caller's error."""
    outcome = fakes.run(
        "runtime12",
        implementation="per-copy-coalesced",
        calls=[call([30, 64, 70])],
        runtime12={"fake_most_bytes": most},
    )
    assert outcome.results == [ending]
    assert outcome.counts("runtime12") == (0, 4 if ending[1] else 3)
    assert outcome.seen["runtime12"]["fake_last_error"] == 0


@pytest.mark.parametrize("implementation", BASELINES)
def test_without_a_runtime_it_says_so(fakes: Fakes, implementation: str) -> None:
    assert fakes.run(implementation=implementation).results == [(3, False)]
