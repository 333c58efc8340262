"""What each specimen does wrong, by value, and that it does everything else right.

First on fakes, which give the answers that a driver does not give on request; then on simulated pairings.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pytest_cudabatch.implementations import BUILTIN

from .fakes import Fakes, call, needs_compiler
from .test_dispatch_simulated import simulated_pairings

SPECIMENS = [name for name in BUILTIN if name.startswith("specimen:")]


# ---- on fakes: a 12.9 runtime on a driver that has the function ---------------------------------


@dataclass(frozen=True)
class Answers:
    """One situation: what the fakes answer, and the call. ``both`` holds for the driver and the runtime."""

    both: Mapping[str, int] | None = None
    driver: Mapping[str, int] | None = None
    runtime: Mapping[str, int] | None = None
    sizes: tuple[int, ...] = (64, 64, 300)
    stream: int | None = None


Ending = tuple[int, bool, int, int, int] | str
"""Return code, whether exactly the right bytes were written, batch calls, single copies, last error left
behind; or the signal."""

BATCH, SINGLE = (0, True, 1, 0, 0), (0, True, 0, 3, 0)
AFTER_BATCH = (0, True, 1, 3, 0)

SITUATIONS: dict[str, tuple[Answers, Ending]] = {
    "nothing special": (Answers(), BATCH),
    "batch answers 801": (Answers(both={"fake_batch_code": 801}), AFTER_BATCH),
    "batch answers 36": (Answers(both={"fake_batch_code": 36}), AFTER_BATCH),
    "batch answers 35": (Answers(both={"fake_batch_code": 35}), AFTER_BATCH),
    "batch answers 1": (Answers(both={"fake_batch_code": 1}), (1, False, 1, 0, 0)),
    "batch answers 719": (Answers(both={"fake_batch_code": 719}), (719, False, 1, 0, 0)),
    "801, then the second copy fails": (
        Answers(both={"fake_batch_code": 801, "fake_copy_code": 719, "fake_copy_code_at": 1}),
        (719, False, 1, 2, 0),
    ),
    "look-up fails": (Answers(driver={"fake_lookup": 1}), BATCH),
    "look-up gives success and NULL": (Answers(driver={"fake_lookup": 2}), BATCH),
    "driver version fails": (Answers(runtime={"fake_driver_version_code": 35}), BATCH),
    "stream 0": (Answers(stream=0), SINGLE),
    "stream 0x1": (Answers(stream=1), SINGLE),
    "stream 0x2": (Answers(stream=2), BATCH),
    "an empty copy": (Answers(sizes=(64, 0, 64)), BATCH),
    "only empty copies": (Answers(sizes=(0, 0)), (0, True, 0, 0, 0)),
    "no copies": (Answers(sizes=()), (0, True, 0, 0, 0)),
}

WRONG_BYTES = {
    "nothing special": (0, False, 1, 0, 0),
    "batch answers 801": (0, False, 1, 3, 0),
    "batch answers 36": (0, False, 1, 3, 0),
    "batch answers 35": (0, False, 1, 3, 0),
    "look-up fails": (0, False, 1, 0, 0),
    "look-up gives success and NULL": (0, False, 1, 0, 0),
    "driver version fails": (0, False, 1, 0, 0),
    "stream 0": (0, False, 0, 3, 0),
    "stream 0x1": (0, False, 0, 3, 0),
    "stream 0x2": (0, False, 1, 0, 0),
    "an empty copy": (0, False, 1, 0, 0),
}

WRONG_ON_FAKES: dict[str, dict[str, Ending]] = {
    # On one runtime of 12.9 the three that choose the ABI wrongly are right, or crash in every batch.
    "specimen:dlsym-always-9": {},
    # Beside one runtime it has nothing to confuse.
    "specimen:linked-runtime-version": {},
    "specimen:driver-version": {"driver version fails": SINGLE},
    "specimen:dlsym-always-8": {
        name: "SIGSEGV" for name, (_, ending) in SITUATIONS.items() if ending[2] == 1
    },
    "specimen:unchecked-null": {
        "look-up fails": "SIGSEGV",
        "look-up gives success and NULL": "SIGSEGV",
    },
    "specimen:no-driver-guard": {
        "batch answers 36": (36, False, 1, 0, 0),
        "batch answers 35": (35, False, 1, 0, 0),
        "driver version fails": (35, False, 0, 0, 0),
    },
    "specimen:silent-fallback": {
        **{name: SINGLE for name, (_, ending) in SITUATIONS.items() if ending[2] == 1},
        "801, then the second copy fails": (719, False, 0, 2, 0),
        "an empty copy": (0, True, 0, 2, 0),
    },
    "specimen:fallback-ignores-errors": {"801, then the second copy fails": (0, False, 1, 3, 0)},
    "specimen:fallback-on-invalid": {"batch answers 1": AFTER_BATCH},
    "specimen:leaves-last-error": {
        "batch answers 801": (0, True, 1, 3, 801),
        "batch answers 36": (0, True, 1, 3, 36),
        "batch answers 35": (0, True, 1, 3, 35),
    },
    "specimen:default-stream": {
        "stream 0": (1, False, 1, 0, 0),
        "stream 0x1": (1, False, 1, 0, 0),
    },
    "specimen:zero-size-unfiltered": {
        "an empty copy": (1, False, 1, 0, 0),
        "only empty copies": (1, True, 1, 0, 0),
    },
    # The three copies are neighbours here, in one allocation: merged, and right.
    "specimen:straddles-registration": {
        **dict.fromkeys(("batch answers 801", "batch answers 36", "batch answers 35"), (0, True, 1, 1, 0)),
        "801, then the second copy fails": (0, True, 1, 1, 0),
        **dict.fromkeys(("stream 0", "stream 0x1"), (0, True, 0, 1, 0)),
    },
    "specimen:off-by-one": WRONG_BYTES,
    "specimen:swapped-pages": WRONG_BYTES,
    "specimen:no-plt": {},
    "specimen:address-taken": {},
    "specimen:preloaded-dlsym": {},
    # Its runtime knows no other way than the look-up.
    "specimen:static-cudart": {"look-up fails": SINGLE, "look-up gives success and NULL": SINGLE},
}


def library_for_cuda_12(implementation: str) -> str:
    recipe = BUILTIN[implementation]
    directory = "linked-shared-12/" if recipe.builds == "linked" else ""
    return f"{directory}{recipe.library}"


def ending(fakes: Fakes, implementation: str, answers: Answers) -> Ending:
    arguments = {} if answers.stream is None else {"stream": answers.stream}
    outcome = fakes.run(
        "driver",
        "runtime12",
        implementation=library_for_cuda_12(implementation),
        calls=[call(list(answers.sizes), **arguments)],
        driver={**(answers.both or {}), **(answers.driver or {})},
        runtime12={**(answers.both or {}), **(answers.runtime or {})},
    )
    if outcome.signal is not None:
        return outcome.signal
    ((code, right),) = outcome.results
    batches, singles = map(sum, zip(outcome.counts("driver"), outcome.counts("runtime12"), strict=True))
    return code, right, batches, singles, outcome.seen["runtime12"]["fake_last_error"]


@needs_compiler
@pytest.mark.parametrize("implementation", ["reference", *SPECIMENS])
def test_wrong_in_one_way_on_fakes(fakes: Fakes, implementation: str) -> None:
    expected = {name: right for name, (_, right) in SITUATIONS.items()}
    expected |= WRONG_ON_FAKES.get(implementation, {})
    found = {name: ending(fakes, implementation, answers) for name, (answers, _) in SITUATIONS.items()}
    assert found == expected


# ---- on simulated pairings ------------------------------------------------------------------------

CALLS = ("mixed", "uniform", "thread", "stream 0", "stream 0x1", "stream 0x2", "empty", "bad")
"""specimen_child.py says what each of them is."""

COUNT = 40
BAD_INDEX = 5
"""How many copies each call has, and which one of the call "bad" lacks its destination."""


PAIRINGS = {
    name: pairing
    for name, pairing in simulated_pairings().items()
    if name
    in {
        "cu12.6-d12.4",
        "cu12.6-d12.8",
        "cu12.8-d12.4",
        "cu12.8-d12.8",
        "cu12.9-d13.0",
        "cu13.0-d13.0",
        "cu13.5-d13.5",
    }
}
"""One of each class of behaviour."""


def pairings(*parts: str) -> set[str]:
    """Return the pairings of these runtimes (cu12.8) and drivers (d12.4)."""
    return {name for name in PAIRINGS for part in parts if part in name.split("-")}


WITH_BATCH = pairings("cu12.8", "cu12.9", "cu13.0", "cu13.5") - pairings("d12.4")
"""Where a libcudart with the function runs on a driver that has it."""

OLD_DRIVER = pairings("d12.4") - pairings("cu12.6")
"""Where a libcudart has the function and its driver does not: the call answers 36."""

Wrong = dict[str, dict[str, str]]


def everywhere(where: set[str], how: dict[str, str]) -> Wrong:
    return dict.fromkeys(where, how)


def all_calls(how: str, *without: str) -> dict[str, str]:
    return {name: how for name in CALLS if name not in without}


DEFAULT_STREAMS = ("stream 0", "stream 0x1")
EVERYWHERE = set(PAIRINGS)

REJECTED = "1, 0 copied"
REJECTED_AT_EMPTY = "1, 5 copied"  # three come before it, and the two of no bytes are right by themselves
COPIED_UNTIL_BAD = f"1, {BAD_INDEX} copied"  # one by one and in a batch alike
CRASHED = all_calls("SIGSEGV", *DEFAULT_STREAMS)
OVERRUN = all_calls(f"0, {COUNT} copied, 1 overrun", "bad")
SWAPPED = all_calls(f"0, {COUNT - 2} copied", "bad")

WRONG_ON_PAIRINGS: dict[str, Wrong] = {
    "reference": {},
    "per-copy": {},
    "per-copy-coalesced": {},
    "specimen:driver-version": everywhere(pairings("cu12.8", "cu12.9") & pairings("d13.0", "d13.5"), CRASHED),
    "specimen:dlsym-always-9": everywhere(pairings("cu13.0", "cu13.5"), CRASHED),
    "specimen:dlsym-always-8": everywhere(WITH_BATCH & pairings("cu12.8", "cu12.9"), CRASHED),
    "specimen:unchecked-null": everywhere(pairings("d12.4"), CRASHED),
    "specimen:no-driver-guard": everywhere(
        OLD_DRIVER, all_calls("36, 0 copied", *DEFAULT_STREAMS) | {"empty": "36, 2 copied"}
    ),
    "specimen:linked-runtime-version": {},
    # Bytes and codes are right; that no batch was made, or that one was refused, shows in evidence only.
    "specimen:silent-fallback": {},
    "specimen:fallback-on-invalid": {},
    "specimen:fallback-ignores-errors": everywhere(
        EVERYWHERE - WITH_BATCH, {"bad": f"0, {COUNT - 1} copied"}
    ),
    # Last errors are a thread's own: that of the call "thread" is gone with it.
    "specimen:leaves-last-error": everywhere(
        OLD_DRIVER, all_calls("36 left behind", *DEFAULT_STREAMS, "bad", "thread")
    ),
    "specimen:default-stream": everywhere(WITH_BATCH, dict.fromkeys(DEFAULT_STREAMS, REJECTED)),
    "specimen:zero-size-unfiltered": everywhere(WITH_BATCH, {"empty": REJECTED_AT_EMPTY}),
    # Nothing is under way before these calls, they are waited for, and their memory is ordinary: right.
    "specimen:current-device": {},
    "specimen:source-freed-early": {},
    "specimen:no-capture-check": {},
    "specimen:straddles-registration": {},
    "specimen:overreads-attrs": {},
    "specimen:missing-order": {},
    "specimen:off-by-one": everywhere(EVERYWHERE, OVERRUN),
    "specimen:no-plt": {},
    "specimen:address-taken": {},
    "specimen:preloaded-dlsym": {},
    "specimen:static-cudart": {},
    "specimen:swapped-pages": everywhere(EVERYWHERE, SWAPPED | {"bad": f"1, {BAD_INDEX - 2} copied"}),
}


RIGHT = all_calls("right", "bad") | {"bad": COPIED_UNTIL_BAD}
"""How each call ends by an implementation that does what it should."""


def run_on_pairings(implementation: str) -> dict[str, dict[str, str]]:
    child = subprocess.run(
        [
            sys.executable,
            str(Path(__file__).with_name("specimen_child.py")),
            json.dumps({"implementation": implementation, "pairings": PAIRINGS, "calls": CALLS}),
        ],
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},  # the child forks: no threads of numpy's before
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        timeout=120,
    )
    answer: dict[str, dict[str, Any]] = json.loads(child.stdout)
    return answer


TOO_LATE = {"specimen:returns-before-done"}
"""Bytes may or may not be there when the stream has been synchronised: tests/suite has a schedule for it."""


@pytest.mark.parametrize("implementation", [name for name in BUILTIN if name not in TOO_LATE])
def test_wrong_on_exactly_its_pairings_and_calls(implementation: str) -> None:
    wrong = WRONG_ON_PAIRINGS[implementation]
    expected = {name: RIGHT | wrong.get(name, {}) for name in PAIRINGS}
    assert run_on_pairings(implementation) == expected
