"""What a run can pair: the settings, the matrix files and the host give a platform and its pairings.

Done once, in the controller. The driver is probed, and the host searched for runtimes, each in a process
of its own with a time limit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from pytest_cudabatch.errors import UsageError
from pytest_cudabatch.pairings import (
    Matrix,
    Pairing,
    device_pairings,
    load_matrix,
    no_driver_pairings,
    select,
    simulated_pairings,
)
from pytest_cudabatch.reports import HostFacts
from pytest_cudabatch.runtimes import DriverFacts, Found, RuntimeFile, SharedObject, discover, probe
from pytest_cudabatch.settings import Settings

__all__ = ["find_pairings", "usable_runtimes"]

PROBE_SECONDS = 60.0
"""How long the driver may take to create a context; a cold one of a large host takes seconds."""


def find_pairings(settings: Settings) -> tuple[str, list[Pairing], HostFacts]:
    """Return the run's platform, its pairings in order, and what the host is.

    Raises UsageError for settings that this host cannot serve.
    """
    matrix = load_matrix(settings.matrix_directory)
    facts = None if settings.platform == "simulated" else probe(PROBE_SECONDS)
    platform = _platform(settings.platform, facts)
    if platform == "no-driver":
        pairings: Sequence[Pairing] = no_driver_pairings(matrix, _runtimes(settings, "there is no driver"))
    elif platform == "device" and facts is not None:
        pairings = device_pairings(matrix, facts, _runtimes(settings, "there is a GPU"))
    else:
        pairings = _simulated(matrix, settings, facts)
    if settings.selection is not None:
        pairings = _selected(pairings, settings.selection)
    return platform, list(pairings), _host(platform, pairings, facts if platform == "device" else None)


def _platform(asked: str, facts: DriverFacts | None) -> str:
    """Return where the cells run; ``facts`` is None where nobody asked the host for its driver."""
    if facts is None:
        return "simulated"
    usable = facts.context and not facts.simulated
    if asked == "device" and not usable:
        raise UsageError(
            f"--cuda-platform=device: no GPU can be used here: {facts.reason or 'libcuda is simulated'}"
        )
    if asked == "no-driver" and facts.path is not None:
        # A libcudart loads it on its first call, and its answers are then those of a driver.
        raise UsageError(f"--cuda-platform=no-driver: there is a driver, and it would be used: {facts.path}")
    if asked == "auto":
        return "device" if usable else "simulated"
    return asked


def _runtimes(settings: Settings, situation: str) -> Sequence[RuntimeFile]:
    """Return the named runtimes, else those that are found. Raises UsageError where there is none."""
    if settings.runtimes:
        return _read(settings.runtimes)
    found = discover()
    runtimes = usable_runtimes(found)
    if not runtimes:
        problems = [f"not usable: {place.problem}" for place in found if place.problem]
        raise UsageError(
            f"{situation}, but no CUDA runtime to pair with it: fetch some (cudabatch fetch 12.9 13.0), "
            "name one (--cuda-runtime=PATH), or run on --cuda-platform=simulated",
            *problems,
        )
    return runtimes


def usable_runtimes(found: Iterable[Found]) -> tuple[RuntimeFile, ...]:
    """Return the real libcudarts among ``found``; of a minor version that was fetched, only fetched ones.

    Raises UsageError where a fetched one is damaged, rather than testing on fewer runtimes.
    """
    places = list(found)
    damaged = [place.problem for place in places if place.found_via == "fetched" and place.problem]
    if (error := UsageError.collect(damaged)) is not None:
        raise error
    fetched, others = (
        [
            place.runtime
            for place in places
            if (place.found_via == "fetched") is wanted
            if place.runtime is not None and place.runtime.source != "simulated"
        ]
        for wanted in (True, False)
    )
    versions = {runtime.version for runtime in fetched}
    return (*fetched, *(runtime for runtime in others if runtime.version not in versions))


def _simulated(matrix: Matrix, settings: Settings, facts: DriverFacts | None) -> Sequence[Pairing]:
    if settings.runtimes:
        reason = f" ({facts.reason})" if facts else ""
        named = ", ".join(map(str, settings.runtimes))
        _read(settings.runtimes)  # a file that is no libcudart at all is told as such
        raise UsageError(
            f"--cuda-runtime: {named} needs a GPU or --cuda-platform=no-driver, and the platform is "
            f"simulated{reason}"
        )
    return simulated_pairings(matrix)


def _read(paths: Iterable[Path]) -> list[RuntimeFile]:
    """Read the named runtimes. Raises UsageError with the problems of all of them."""
    files: list[RuntimeFile] = []
    problems: list[str] = []
    for path in paths:
        try:
            files.append(file := RuntimeFile.read(path))
            if file.source == "simulated":
                problems.append(f"--cuda-runtime: {path} is simulated; use --cuda-platform=simulated")
        except UsageError as error:
            problems.extend(f"--cuda-runtime: {problem}" for problem in error.problems)
    if (error_of_all := UsageError.collect(problems)) is not None:
        raise error_of_all
    return files


def _selected(pairings: Sequence[Pairing], expression: str) -> Sequence[Pairing]:
    try:
        return select(pairings, expression)
    except UsageError as error:
        raise UsageError(*(f"--cuda-select: {problem}" for problem in error.problems)) from error


def _host(platform: str, pairings: Iterable[Pairing], facts: DriverFacts | None) -> HostFacts:
    paths = {path for pairing in pairings for path in (pairing.runtime.path, pairing.driver.path) if path}
    return HostFacts(
        platform=platform,
        driver=str(facts.version) if facts and facts.version else None,
        driver_release=facts.release if facts else None,
        gpus=facts.gpus if facts else (),
        libraries=tuple(
            {"path_tail": "/".join(path.parts[-2:]), "build_id": SharedObject.read(path).build_id}
            for path in sorted(paths)
        ),
    )
