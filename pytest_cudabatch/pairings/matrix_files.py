"""Reads the matrix files (TOML): the packaged ones, and a project's own directory merged over them.

All problems of all files are told at once, each with its file and key. A project's entry replaces the
packaged one of the same version; its rows in pairings.toml come after the packaged ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import TypeVar

from pytest_cudabatch.abi import FIRST_BATCH_VERSION, BatchAbi, CudaVersion
from pytest_cudabatch.errors import InstallationError, UsageError
from pytest_cudabatch.pairings.matrix import KnownDriver, KnownRuntime, Matrix, PairingRow
from pytest_cudabatch.pairings.toml_tables import Entry, read_document, read_entries

__all__ = ["KNOWN_ISSUES_FILE", "load_matrix", "packaged_matrix"]

KNOWN_ISSUES_FILE = "known-issues.toml"
"""Lies beside the matrix files, and is read by known_issues.py."""

_RUNTIMES, _DRIVERS, _PAIRINGS = "runtimes.toml", "drivers.toml", "pairings.toml"
_TABLES = {_RUNTIMES: ("runtime",), _DRIVERS: ("driver",), _PAIRINGS: ("legal", "basis")}
_KNOWN_FILES = (*_TABLES, KNOWN_ISSUES_FILE)

Read = TypeVar("Read")
Versioned = TypeVar("Versioned", bound=KnownRuntime | KnownDriver)


def load_matrix(directory: Path | None = None) -> Matrix:
    """Read the packaged matrix, and ``directory`` over it where one is given.

    Raises UsageError with every problem that the directory's files have, such as an unreadable or
    unknown file, an unknown or missing key, or a value that contradicts its version.
    """
    problems: list[str] = []
    packaged = _read_directory(packaged_matrix(), problems)
    own = _read_own(directory, problems) if directory else Matrix((), (), (), ())
    if error := UsageError.collect(problems):
        raise error
    return Matrix(
        runtimes=_merged(packaged.runtimes, own.runtimes),
        drivers=_merged(packaged.drivers, own.drivers),
        legal=packaged.legal + own.legal,
        bases=packaged.bases + own.bases,
    )


def packaged_matrix() -> Path:
    """Return the packaged matrix's directory, which an installed package always has."""
    directory = Path(str(files("pytest_cudabatch").joinpath("matrix")))
    if not (directory / _RUNTIMES).is_file():
        raise InstallationError(
            f"the matrix files are missing at {directory}: install the package (pip install .)"
        )
    return directory


def _read_own(directory: Path, problems: list[str]) -> Matrix:
    """Read a project's directory; a file that nobody would read, such as a misspelt one, is a problem."""
    known = ", ".join(_KNOWN_FILES)
    problems.extend(
        f"{path}: unknown file; those that are read are {known}"
        for path in sorted(directory.glob("*.toml"))
        if path.name not in _KNOWN_FILES
    )
    own = _read_directory(directory, problems)
    has_issues = (directory / KNOWN_ISSUES_FILE).is_file()
    if not problems and not has_issues and own == Matrix((), (), (), ()):
        problems.append(f"{directory}: none of {known} is there, or all are empty")
    return own


def _merged(packaged: Sequence[Versioned], own: Sequence[Versioned]) -> tuple[Versioned, ...]:
    by_version = {entry.version: entry for entry in (*packaged, *own)}
    return tuple(by_version[version] for version in sorted(by_version))


def _read_directory(directory: Path, problems: list[str]) -> Matrix:
    """Read the files that are there; append what is wrong with them to ``problems``."""
    documents = {name: read_document(directory / name, tables, problems) for name, tables in _TABLES.items()}

    def entries(name: str, table: str, read: Callable[[Entry], Read]) -> tuple[Read, ...]:
        return tuple(read_entries(directory / name, documents[name], table, read, problems))

    runtimes = entries(_RUNTIMES, "runtime", _runtime)
    drivers = entries(_DRIVERS, "driver", _driver)
    _reject_duplicates(directory / _RUNTIMES, "runtime", runtimes, problems)
    _reject_duplicates(directory / _DRIVERS, "driver", drivers, problems)
    legal, bases = entries(_PAIRINGS, "legal", _row), entries(_PAIRINGS, "basis", _row)
    _reject_missing_files(directory / _PAIRINGS, legal + bases, problems)
    return Matrix(runtimes, drivers, legal, bases)


def _reject_duplicates(path: Path, table: str, entries: Sequence[Versioned], problems: list[str]) -> None:
    versions = [entry.version for entry in entries]
    problems.extend(
        f"{path}: {table}: version {version} is there {versions.count(version)} times"
        for version in sorted(set(versions))
        if versions.count(version) > 1
    )


def _reject_missing_files(path: Path, rows: Sequence[PairingRow], problems: list[str]) -> None:
    problems.extend(
        f"{path}: file: there is no {row.file} beside it"
        for row in rows
        if row.file is not None and not (path.parent / row.file).is_file()
    )


def _runtime(entry: Entry) -> KnownRuntime:
    runtime = KnownRuntime(
        version=entry.version("version"),
        abi=BatchAbi(entry.choice("abi", tuple(abi.value for abi in BatchAbi))),
        exports_batch=entry.value("exports_batch", bool),
        basis=entry.basis(),
        source=entry.value("source", str),
    )
    entry.check(
        "abi",
        runtime.abi is runtime.version.abi,
        f"a runtime {runtime.version} has {runtime.version.abi.value}",
    )
    return runtime


def _driver(entry: Entry) -> KnownDriver:
    driver = KnownDriver(
        version=entry.version("version"),
        exports=tuple(map(str, entry.value("exports", list))),
        branch=entry.optional("branch", int),
        basis=entry.basis(),
        source=entry.value("source", str),
    )
    expected = _exports_of(driver.version)
    entry.check("exports", driver.exports == expected, f"a driver {driver.version} exports {list(expected)}")
    return driver


def _exports_of(driver: CudaVersion) -> tuple[str, ...]:
    """Return the batch functions of a driver: cuda.h of 12.8 brought the first, that of 13.0 the second."""
    if driver < FIRST_BATCH_VERSION:
        return ()
    first = ("cuMemcpyBatchAsync",)
    return (*first, "cuMemcpyBatchAsync_v2") if driver.major >= 13 else first


def _row(entry: Entry) -> PairingRow:
    row = PairingRow(
        runtime=entry.range("runtime"),
        driver=entry.range("driver"),
        basis=entry.basis(),
        source=entry.value("source", str),
        file=entry.optional("file", str),
    )
    entry.check(
        "file", (row.basis == "observed") == (row.file is not None), "goes with basis observed, and only it"
    )
    return row
