"""What a run can pair: the settings, the matrix files and the host give a platform and its pairings.

Done once, in the controller. The driver is probed in a process of its own with a time limit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from pytest_cudabatch.errors import InstallationError, UsageError
from pytest_cudabatch.pairings import (
    Matrix,
    Pairing,
    device_pairings,
    load_matrix,
    select,
    simulated_pairings,
)
from pytest_cudabatch.reports import HostFacts
from pytest_cudabatch.run import Settings
from pytest_cudabatch.runtimes import DriverFacts, RuntimeFile, SharedObject, fetched, probe

__all__ = ["find_pairings"]

PROBE_SECONDS = 60.0
"""How long the driver may take to create a context; a cold one of a large host takes seconds."""


def find_pairings(settings: Settings) -> tuple[str, list[Pairing], HostFacts]:
    """Return the run's platform, its pairings in order, and what the host is.

    Raises UsageError for settings that this host cannot serve.
    """
    matrix = load_matrix(settings.matrix_directory)
    facts = None if settings.platform == "simulated" else probe(PROBE_SECONDS)
    usable = facts is not None and facts.context and not facts.simulated
    if settings.platform == "device" and not usable:
        assert facts is not None  # probed above, since the platform is not simulated
        raise UsageError(
            f"--cuda-platform=device: no GPU can be used here: {facts.reason or 'libcuda is simulated'}"
        )
    if usable and facts is not None:
        pairings = _device(matrix, settings, facts)
    else:
        pairings = _simulated(matrix, settings, facts)
        facts = None
    if settings.selection is not None:
        pairings = _selected(pairings, settings.selection)
    return ("device" if facts else "simulated"), list(pairings), _host(pairings, facts)


def _device(matrix: Matrix, settings: Settings, facts: DriverFacts) -> Sequence[Pairing]:
    runtimes = _read(settings.runtimes) or _fetched()
    if not runtimes:
        raise UsageError(
            "there is a GPU, but no CUDA runtime to pair with its driver: fetch some "
            "(cudabatch fetch 12.9 13.0), name one (--cuda-runtime=PATH), or run on --cuda-platform=simulated"
        )
    return device_pairings(matrix, facts, runtimes)


def _simulated(matrix: Matrix, settings: Settings, facts: DriverFacts | None) -> Sequence[Pairing]:
    if settings.runtimes:
        reason = f" ({facts.reason})" if facts else ""
        named = ", ".join(map(str, settings.runtimes))
        _read(settings.runtimes)  # a file that is no libcudart at all is told as such
        raise UsageError(f"--cuda-runtime: {named} needs a GPU, and the platform is simulated{reason}")
    return simulated_pairings(matrix)


def _read(paths: Iterable[Path]) -> list[RuntimeFile]:
    """Read the named runtimes. Raises UsageError with the problems of all of them."""
    files: list[RuntimeFile] = []
    problems: list[str] = []
    for path in paths:
        try:
            files.append(RuntimeFile.read(path))
        except UsageError as error:
            problems.extend(f"--cuda-runtime: {problem}" for problem in error.problems)
    if (error_of_all := UsageError.collect(problems)) is not None:
        raise error_of_all
    return files


def _fetched() -> tuple[RuntimeFile, ...]:
    try:
        return fetched()
    except InstallationError as error:
        raise UsageError(str(error)) from error


def _selected(pairings: Sequence[Pairing], expression: str) -> Sequence[Pairing]:
    try:
        return select(pairings, expression)
    except UsageError as error:
        raise UsageError(*(f"--cuda-select: {problem}" for problem in error.problems)) from error


def _host(pairings: Iterable[Pairing], facts: DriverFacts | None) -> HostFacts:
    paths = {path for pairing in pairings for path in (pairing.runtime.path, pairing.driver.path) if path}
    return HostFacts(
        platform="device" if facts else "simulated",
        driver=str(facts.version) if facts and facts.version else None,
        driver_release=facts.release if facts else None,
        gpus=facts.gpus if facts else (),
        libraries=tuple(
            {"path_tail": "/".join(path.parts[-2:]), "build_id": SharedObject.read(path).build_id}
            for path in sorted(paths)
        ),
    )
