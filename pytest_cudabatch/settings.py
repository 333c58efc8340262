"""The options of a run: read with their ini twins, checked, all problems told at once."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from pytest_cudabatch.cuda import Schedule
from pytest_cudabatch.errors import UsageError
from pytest_cudabatch.run import DEFAULT_TIER, TIERS

__all__ = ["DEFAULT_TIMEOUT", "Settings"]

ISOLATIONS = ("cell", "pairing", "none")
PLATFORMS = ("auto", "device", "simulated", "no-driver")
REPORT_SUFFIXES = (".json", ".jsonl")
DEFAULT_TIMEOUT = 60.0


@dataclass(frozen=True)
class Settings:
    """The options of a run, after their ini twins and defaults; ``timeout`` is in seconds."""

    platform: str
    isolation: str
    tier: str
    selection: str | None
    implementations: tuple[str, ...]
    injections: str | None
    schedule: Schedule
    runtimes: tuple[Path, ...]
    timeout: float
    budget: float | None
    strict: bool
    required: Mapping[str, int]
    known_issues_fail: bool
    matrix_directory: Path | None
    reports: tuple[Path, ...]
    suite: bool
    suite_only: bool

    @classmethod
    def from_config(cls, config: pytest.Config) -> Settings:
        """Read and check the settings. Raises UsageError with every problem found."""
        problems: list[str] = []
        tier, selection = _tier_and_pairings(_value(config, "cuda_select"))
        settings = cls(
            platform=_one_of(
                problems, "--cuda-platform", _value(config, "cuda_platform") or "auto", PLATFORMS
            ),
            isolation=_one_of(
                problems, "--cuda-isolation", _value(config, "cuda_isolation") or "cell", ISOLATIONS
            ),
            tier=tier,
            selection=selection,
            implementations=_implementations(problems, config),
            injections=_injections(problems, config.getoption("cuda_inject")),
            schedule=_schedule(problems, _value(config, "cuda_schedule") or "fair"),
            runtimes=tuple(
                _existing(problems, config, name, "--cuda-runtime") for name in _list(config, "cuda_runtime")
            ),
            timeout=_seconds(problems, config, "cuda_timeout") or DEFAULT_TIMEOUT,
            budget=_seconds(problems, config, "cuda_budget"),
            strict=bool(config.getoption("cuda_strict")),
            required=_required(problems, config.getoption("cuda_require")),
            known_issues_fail=_known_issues_fail(problems, config),
            matrix_directory=_matrix_directory(problems, config),
            reports=tuple(_report(problems, config, name) for name in _list(config, "cuda_report")),
            suite=not config.getoption("cuda_no_suite"),
            suite_only=bool(config.getoption("cuda_suite_only")),
        )
        if settings.suite_only and not settings.suite:
            problems.append("--cuda-suite-only and --cuda-no-suite leave nothing to run; give one of them")
        if settings.strict and settings.platform == "auto":
            problems.append("--cuda-strict wants to know what it guards: name a platform by --cuda-platform")
        if settings.isolation == "none" and config.getoption("dist", "no") != "no":
            problems.append(
                "--cuda-isolation=none runs cells in pytest's own process; it does not go with -n"
            )
        if (error := UsageError.collect(problems)) is not None:
            raise error
        return settings


def _value(config: pytest.Config, name: str) -> str | None:
    """Return an option's value, else its ini twin's, else None; an empty text counts as not given."""
    given = config.getoption(name)
    return (given if given is not None else config.getini(name)) or None


def _list(config: pytest.Config, name: str) -> Sequence[str]:
    given: Sequence[str] = config.getoption(name)
    return given


def _one_of(problems: list[str], option: str, value: str, allowed: Sequence[str]) -> str:
    if value not in allowed:
        problems.append(f"{option}: {value!r} is none of {', '.join(allowed)}")
    return value


def _tier_and_pairings(text: str | None) -> tuple[str, str | None]:
    """Split ``--cuda-select`` into the tier, which comes first if it is there, and the pairings."""
    word, _, rest = (text or "").strip().partition(" ")
    if word in TIERS:
        return word, rest.strip() or None
    return DEFAULT_TIER, text


def _injections(problems: list[str], text: str | None) -> str | None:
    from pytest_cudabatch.interposer import parse_injections  # noqa: PLC0415 - needed in a run only

    if text is not None:
        try:
            parse_injections(text)
        except UsageError as error:
            problems.extend(f"--cuda-inject: {problem}" for problem in error.problems)
    return text


def _schedule(problems: list[str], text: str) -> Schedule:
    try:
        return Schedule.parse(text).with_seed()
    except ValueError as error:
        problems.append(f"--cuda-schedule: {error}")
        return Schedule()


def _required(problems: list[str], given: Sequence[str]) -> dict[str, int]:
    required: dict[str, int] = {}
    for text in given:
        platform, _, number = text.partition(":")
        if platform in PLATFORMS[1:] and number.isdecimal():
            required[platform] = int(number)
        else:
            problems.append(f"--cuda-require: {text!r} is not PLATFORM:N, such as device:1")
    return required


def _known_issues_fail(problems: list[str], config: pytest.Config) -> bool:
    value = _value(config, "cuda_known_issues") or "report"
    return _one_of(problems, "--cuda-known-issues", value, ("report", "fail")) == "fail"


def _seconds(problems: list[str], config: pytest.Config, name: str) -> float | None:
    text = _value(config, name)
    if text is None:
        return None
    option = f"--{name.replace('_', '-')}"
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        problems.append(f"{option}: {text!r} is not a positive number of seconds")
    return seconds


def _implementations(problems: list[str], config: pytest.Config) -> tuple[str, ...]:
    from pytest_cudabatch.implementations import check  # noqa: PLC0415 - brings the registry, needed in a run only

    given: Sequence[str] = (
        config.getoption("cuda_implementation") or config.getini("cuda_implementation") or ()
    )
    names = tuple(dict.fromkeys(given)) or ("reference",)
    for name in names:
        try:
            check(name)
        except UsageError as error:
            problems.extend(f"--cuda-implementation: {problem}" for problem in error.problems)
    return names


def _existing(problems: list[str], config: pytest.Config, name: str, option: str) -> Path:
    path = config.invocation_params.dir / name
    if not path.is_file():
        problems.append(f"{option}: there is no file {str(path)!r}")
    return path


def _matrix_directory(problems: list[str], config: pytest.Config) -> Path | None:
    """Find the directory: the option is relative to where pytest was started, its ini twin to rootdir."""
    given = config.getoption("cuda_matrix_dir")
    base, name = (
        (config.invocation_params.dir, given)
        if given
        else (config.rootpath, config.getini("cuda_matrix_dir"))
    )
    if not name:
        return None
    directory: Path = base / name
    if not directory.is_dir():
        problems.append(f"--cuda-matrix-dir: there is no directory {str(directory)!r}")
    return directory


def _report(problems: list[str], config: pytest.Config, name: str) -> Path:
    path = config.invocation_params.dir / name
    if path.is_dir():
        problems.append(f"--cuda-report: {str(path)!r} is a directory")
    elif path.suffix not in REPORT_SUFFIXES:
        suffixes = " or ".join(REPORT_SUFFIXES)
        problems.append(f"--cuda-report: the format of {name!r} is unknown; its suffix must be {suffixes}")
    elif not path.parent.is_dir():
        parent = str(path.parent)
        problems.append(f"--cuda-report: there is no directory {parent!r} to write {path.name!r} to")
    elif not os.access(path.parent, os.W_OK):
        problems.append(f"--cuda-report: {str(path.parent)!r} cannot be written to")
    return path
