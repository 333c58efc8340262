"""``cudabatch probe``: what a host has; with ``--contract``, whether its libraries answer as known.

``--contract --record FILE`` keeps every answer, ``--contract --update CONTRACT FROM`` makes a recording part
of the contract's file, and ``--contract --page CONTRACT FILE`` writes that file's page for people.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_cudabatch.abi import CudaVersion
from pytest_cudabatch.commands.fetch import describe
from pytest_cudabatch.errors import UsageError
from pytest_cudabatch.runtimes import DriverFacts, Found, RuntimeFile, discover, fetched, probe

if TYPE_CHECKING:
    from pytest_cudabatch.contract import Answers, Contract, Difference, RecordingHost, Target

__all__ = ["configure", "run"]

_DIFFERS = 1
_PROBE_SECONDS = 60.0
_MOST_JOBS = 4
"""Contexts of one GPU are made one after another, so more processes at once gain nothing."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.add_argument("--json", action="store_true", help="print the answer as JSON")
    parser.add_argument(
        "--runtime",
        action="append",
        type=Path,
        metavar="PATH",
        help="a libcudart to look at instead of those found, or to ask instead of those fetched (repeatable)",
    )
    asking = parser.add_argument_group("the contract")
    asking.add_argument("--contract", action="store_true", help="ask every row of the contract and compare")
    asking.add_argument(
        "--simulated", action="store_true", help="ask the simulated libraries instead of the host's"
    )
    asking.add_argument("--record", type=Path, metavar="FILE", help="keep all answers in a JSON file")
    asking.add_argument(
        "--update",
        nargs=2,
        type=Path,
        metavar=("CONTRACT", "FROM"),
        help="ask nothing: put the answers recorded in FROM into the file CONTRACT (contract.toml); those of "
        "simulated libraries as assumptions, where nothing is known",
    )
    asking.add_argument(
        "--page",
        nargs=2,
        type=Path,
        metavar=("CONTRACT", "FILE"),
        help="ask nothing: write the tables of the file CONTRACT (contract.toml) as Markdown",
    )
    asking.add_argument(
        "--limit", type=float, default=20.0, metavar="S", help="seconds for one answer (default 20)"
    )
    asking.add_argument("--jobs", type=int, default=_default_jobs(), metavar="N", help="processes at once")


def run(options: argparse.Namespace) -> int:
    """Do what the options say. Status 1: an answer differs from the contract, or could not be had."""
    given = [name for name in ("simulated", "record", "update", "page") if getattr(options, name)]
    if given and not options.contract:
        raise UsageError(f"--{given[0]} goes with --contract")
    if options.update:
        return _update(*options.update)
    if options.page:
        return _page(*options.page)
    if options.limit <= 0 or options.jobs < 1:
        raise UsageError("--limit and --jobs must be above 0")
    return _contract(options) if options.contract else _host(options)


def _default_jobs() -> int:
    return min(_MOST_JOBS, os.cpu_count() or 1)


def _named(paths: Sequence[Path]) -> list[RuntimeFile]:
    return [RuntimeFile.read(path) for path in paths]


def _host(options: argparse.Namespace) -> int:
    driver, found = probe(_PROBE_SECONDS), _found(options)
    if options.json:
        data = {
            "driver": driver.to_json(),
            "runtimes": [
                {**describe(place.runtime), "found_via": place.found_via} for place in found if place.runtime
            ],
            "unusable": [
                {"path": str(place.path), "found_via": place.found_via, "problem": place.problem}
                for place in found
                if place.runtime is None
            ],
        }
        sys.stdout.write(json.dumps(data, indent=1) + "\n")
    else:
        lines = [*_driver_lines(driver), "", *_runtime_lines(found)]
        sys.stdout.write("\n".join(lines) + "\n")
    return 0


def _found(options: argparse.Namespace) -> Sequence[Found]:
    if options.runtime:
        return [Found(runtime.path, "--runtime", runtime) for runtime in _named(options.runtime)]
    return discover()


def _driver_lines(driver: DriverFacts) -> list[str]:
    if driver.path is None:
        return [
            f"no driver: {driver.reason}",
            *([f"its kernel module is there: {driver.release}"] if driver.release else []),
        ]
    return [
        f"driver    {driver.release or 'unknown release'}{' (simulated)' if driver.simulated else ''}",
        f"supports  CUDA {driver.version}" if driver.version else "supports  no CUDA version that it tells",
        f"library   {driver.path}",
        *(f"gpu {number}     {name}" for number, name in enumerate(driver.gpus)),
        "context   can be made" if driver.context else f"context   cannot be made: {driver.reason}",
    ]


def _runtime_lines(found: Sequence[Found]) -> list[str]:
    if not found:
        return ["no runtimes found; cudabatch fetch 12.9 13.0 gets some"]
    return [
        f"{runtime.release:<9} {runtime.abi.value}  {place.found_via:<15}  {runtime.path}"
        if (runtime := place.runtime)
        else f"unusable          {place.found_via:<15}  {place.problem}"
        for place in found
    ]


def _contract(options: argparse.Namespace) -> int:
    """Ask, keep, compare, and say what differs."""
    from pytest_cudabatch.contract import ask, load_contract, questions_for  # noqa: PLC0415 - not for a plain probe

    contract = load_contract()
    host, targets = _targets(options, contract)
    questions = {
        target: list(questions_for(target.abi, CudaVersion.parse(target.release))) for target in targets
    }
    answers = ask(targets, questions, limit=options.limit, jobs=options.jobs)
    if options.record:
        _record(options.record, host, answers)
    return _compare(contract, answers, as_json=options.json)


def _targets(options: argparse.Namespace, contract: Contract) -> tuple[RecordingHost, tuple[Target, ...]]:
    """Return what is to be asked, and where. Raises UsageError where there is nothing."""
    from pytest_cudabatch.contract import RecordingHost, device_targets, simulated_targets  # noqa: PLC0415 - the same
    from pytest_cudabatch.pairings import load_matrix  # noqa: PLC0415 - the same

    if options.simulated:
        if options.runtime:
            raise UsageError("--simulated brings its own runtimes; leave --runtime out")
        targets = simulated_targets(load_matrix(), contract)
        if not targets:
            raise UsageError("the contract has no answers of a version that is simulated")
        driver = max(target.driver for target in targets)
        return RecordingHost("simulated", driver, None, (), platform.machine()), targets
    facts = probe(_PROBE_SECONDS)
    runtimes = _named(options.runtime) if options.runtime else fetched()
    targets = device_targets(load_matrix(), facts, runtimes)
    if facts.version is None or not targets:
        why = (
            facts.reason
            or "no runtime with the batch function: give --runtime, or run cudabatch fetch 12.9 13.0"
        )
        raise UsageError(f"there is nothing to ask: {why}")
    kind = "simulated" if facts.simulated else "device"
    return RecordingHost(kind, facts.version, facts.release, facts.gpus, platform.machine()), targets


def _record(path: Path, host: RecordingHost, answers: dict[Target, Answers]) -> None:
    from pytest_cudabatch.contract import Recording  # noqa: PLC0415 - not for a plain probe

    today = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    recording = Recording(today, host, {target.release: found for target, found in answers.items()})
    try:
        path.write_text(recording.text(), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from error


def _compare(contract: Contract, answers: dict[Target, Answers], *, as_json: bool) -> int:
    from pytest_cudabatch.contract import differences  # noqa: PLC0415 - not for a plain probe

    found = [
        difference
        for target, replies in answers.items()
        for difference in differences(contract, target.release, target.driver, replies)
    ]
    asked = sum(map(len, answers.values()))
    unknown = sum(
        len(replies.keys() - contract.of(target.release, target.driver).keys())
        for target, replies in answers.items()
    )
    lost = [
        f"{target.release}: {question.row}, {question.entry}: {answer}"
        for target, replies in answers.items()
        for question, answer in replies.items()
        if answer.lost is not None
    ]
    if as_json:
        sys.stdout.write(json.dumps(_as_json(asked, unknown, lost, found), indent=1) + "\n")
    else:
        for line in [*map(str, found), *lost]:
            sys.stdout.write(line + "\n")
        sys.stdout.write(
            f"{asked} answers of {len(answers)} runtimes: {len(found)} differ from the contract, "
            f"{unknown} are not in it, {len(lost)} could not be had\n"
        )
    return _DIFFERS if found or lost else 0


def _as_json(asked: int, unknown: int, lost: list[str], found: list[Difference]) -> dict[str, object]:
    return {
        "answers": asked,
        "not_in_contract": unknown,
        "lost": lost,
        "differences": [
            {
                "runtime": each.release,
                "driver": str(each.driver),
                "row": each.expected.question.row,
                "entry": each.expected.question.entry,
                "expected": each.expected.answer.to_json(),
                "actual": each.actual.to_json(),
                "source": each.expected.source.text,
            }
            for each in found
        ],
    }


def _update(path: Path, recording_path: Path) -> int:
    """Put a recording into a contract's file."""
    from pytest_cudabatch.contract import Recording, contract_text, load_contract, updated  # noqa: PLC0415 - the same

    contract, recording = load_contract(path), Recording.read(recording_path)
    directory = path.absolute().parent.resolve()
    inside = recording_path.absolute().resolve()
    file = inside.relative_to(directory).as_posix() if inside.is_relative_to(directory) else None
    result = updated(contract, recording, file)
    path.write_text(contract_text(result), encoding="utf-8")
    sys.stdout.write(f"{path}: {len(result.answers)} answers, {len(contract.answers)} before\n")
    return 0


def _page(path: Path, page_path: Path) -> int:
    """Write a contract's page."""
    from pytest_cudabatch.contract import load_contract, page  # noqa: PLC0415 - the same

    page_path.write_text(page(load_contract(path)), encoding="utf-8")
    return 0
