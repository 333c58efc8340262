"""Reads the matrix files (TOML): the packaged ones, and a project's own directory merged over them.

All problems of all files are told at once, each with its file and key. A project's entry replaces the
packaged one of the same version; its rows in pairings.toml come after the packaged ones.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar, cast, get_args

from pytest_cudabatch.abi import FIRST_BATCH_VERSION, BatchAbi, CudaVersion
from pytest_cudabatch.errors import InstallationError, UsageError
from pytest_cudabatch.pairings.matrix import KnownDriver, KnownRuntime, Matrix, PairingRow
from pytest_cudabatch.pairings.pairing import Basis
from pytest_cudabatch.pairings.version_range import SpecifierError, VersionRange

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["load_matrix"]

_SCHEMA = 1
_RUNTIMES, _DRIVERS, _PAIRINGS = "runtimes.toml", "drivers.toml", "pairings.toml"
_TABLES = {_RUNTIMES: ("runtime",), _DRIVERS: ("driver",), _PAIRINGS: ("legal", "basis")}

Read = TypeVar("Read")
Versioned = TypeVar("Versioned", bound=KnownRuntime | KnownDriver)


def load_matrix(directory: Path | None = None) -> Matrix:
    """Read the packaged matrix, and ``directory`` over it where one is given.

    Raises UsageError with every problem that the directory's files have, such as an unreadable file, an
    unknown or missing key, or a value that contradicts its version.
    """
    problems: list[str] = []
    packaged = _read_directory(_packaged(), problems)
    own = _read_directory(directory, problems) if directory else Matrix((), (), (), ())
    if directory and not problems and own == Matrix((), (), (), ()):
        problems.append(f"{directory}: none of {', '.join(_TABLES)} is there, or all are empty")
    if error := UsageError.collect(problems):
        raise error
    return Matrix(
        runtimes=_merged(packaged.runtimes, own.runtimes),
        drivers=_merged(packaged.drivers, own.drivers),
        legal=packaged.legal + own.legal,
        bases=packaged.bases + own.bases,
    )


def _packaged() -> Path:
    """Return the packaged matrix's directory, which an installed package always has."""
    directory = Path(str(files("pytest_cudabatch").joinpath("matrix")))
    if not (directory / _RUNTIMES).is_file():
        raise InstallationError(
            f"the matrix files are missing at {directory}: install the package (pip install .)"
        )
    return directory


def _merged(packaged: Sequence[Versioned], own: Sequence[Versioned]) -> tuple[Versioned, ...]:
    by_version = {entry.version: entry for entry in (*packaged, *own)}
    return tuple(by_version[version] for version in sorted(by_version))


def _read_directory(directory: Path, problems: list[str]) -> Matrix:
    """Read the files that are there; append what is wrong with them to ``problems``."""
    documents = {name: _read_file(directory / name, problems) for name in _TABLES}

    def entries(name: str, table: str, read: Callable[[_Entry], Read]) -> tuple[Read, ...]:
        return tuple(_entries(directory / name, documents[name], table, read, problems))

    runtimes = entries(_RUNTIMES, "runtime", _runtime)
    drivers = entries(_DRIVERS, "driver", _driver)
    _reject_duplicates(directory / _RUNTIMES, "runtime", runtimes, problems)
    _reject_duplicates(directory / _DRIVERS, "driver", drivers, problems)
    legal, bases = entries(_PAIRINGS, "legal", _row), entries(_PAIRINGS, "basis", _row)
    _reject_missing_files(directory / _PAIRINGS, legal + bases, problems)
    return Matrix(runtimes, drivers, legal, bases)


def _read_file(path: Path, problems: list[str]) -> Mapping[str, Any]:
    """Return the document, empty where there is no file or it is no matrix file."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        problems.append(f"{path}: {getattr(error, 'strerror', None) or error}")
        return {}
    if document.get("schema") != _SCHEMA:
        problems.append(f"{path}: schema: must be {_SCHEMA}, the only one that this version reads")
        return {}
    unknown = sorted(document.keys() - {"schema", *_TABLES[path.name]})
    problems.extend(f"{path}: {key}: unknown key" for key in unknown)
    return document


def _entries(
    path: Path, document: Mapping[str, Any], table: str, read: Callable[[_Entry], Read], problems: list[str]
) -> list[Read]:
    """Read the entries of one array of tables; one with a problem is left out."""
    tables = document.get(table, [])
    if not isinstance(tables, list) or not all(isinstance(values, dict) for values in tables):
        problems.append(f"{path}: {table}: must be an array of tables, [[{table}]]")
        return []
    good = []
    for number, values in enumerate(tables, 1):
        entry = _Entry(values)
        value = read(entry)
        entry.reject_unknown_keys()
        problems.extend(f"{path}: {table} {number}: {problem}" for problem in entry.problems)
        if not entry.problems:
            good.append(value)
    return good


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


def _runtime(entry: _Entry) -> KnownRuntime:
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


def _driver(entry: _Entry) -> KnownDriver:
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


def _row(entry: _Entry) -> PairingRow:
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


@dataclass
class _Entry:
    """One table of a file: reads its keys, collects its problems, and goes on with a stand-in value.

    Whoever reads it drops what came out where ``problems`` is not empty.
    """

    values: Mapping[str, Any]
    problems: list[str] = field(default_factory=list)
    known: set[str] = field(default_factory=set)

    def value(self, key: str, kind: type[Read]) -> Read:
        """Return the value of a key that must be there and of that kind."""
        found = self.optional(key, kind)
        if key not in self.values:
            self.problems.append(f"{key}: is missing")
        return kind() if found is None else found

    def optional(self, key: str, kind: type[Read]) -> Read | None:
        """Return the value of a key that may be left out."""
        self.known.add(key)
        found = self.values.get(key)
        if found is None or type(found) is kind:  # bool is an int, and is not meant as one
            return found
        self.problems.append(f"{key}: must be {_KINDS[kind]}, not {found!r}")
        return None

    def choice(self, key: str, choices: Sequence[str]) -> str:
        """Return a text that must be one of ``choices``."""
        found = self.value(key, str)
        if found in choices:
            return found
        if found:
            self.problems.append(f"{key}: must be one of {', '.join(choices)}, not {found!r}")
        return choices[0]

    def basis(self) -> Basis:
        """Return the basis, which every entry has."""
        return cast(Basis, self.choice("basis", get_args(Basis)))

    def version(self, key: str) -> CudaVersion:
        """Return a CUDA version, written major.minor."""
        text = self.value(key, str)
        try:
            version = CudaVersion.parse(text)
        except UsageError as error:
            if text:
                self.problems.append(f"{key}: {error}")
            return FIRST_BATCH_VERSION
        self.check(key, text == str(version), f"must be major.minor, not {text!r}")
        return version

    def range(self, key: str) -> VersionRange:
        """Return a range of versions, as PEP 440 specifiers."""
        text = self.value(key, str)
        try:
            return VersionRange.parse(text)
        except SpecifierError as error:
            if text or key in self.values:
                self.problems.append(f"{key}: {error}")
            return VersionRange()

    def check(self, key: str, holds: bool, problem: str) -> None:
        """Append ``problem`` where a condition on good values does not hold."""
        if not holds and not self.problems:
            self.problems.append(f"{key}: {problem}")

    def reject_unknown_keys(self) -> None:
        """Append each key that nobody asked for, such as a misspelt one."""
        self.problems.extend(f"{key}: unknown key" for key in sorted(self.values.keys() - self.known))


_KINDS: dict[type, str] = {str: "text", bool: "true or false", int: "a number", list: "a list"}
