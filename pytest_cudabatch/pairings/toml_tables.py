"""Tables of a TOML file, read strictly: every problem of a file is collected, none stops the reading."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any, TypeVar, cast, get_args

from pytest_cudabatch.abi import FIRST_BATCH_VERSION, CudaVersion
from pytest_cudabatch.errors import UsageError
from pytest_cudabatch.pairings.pairing import Basis
from pytest_cudabatch.pairings.version_range import SpecifierError, VersionRange

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["SCHEMA", "Entry", "read_document", "read_entries"]

SCHEMA = 1
"""The version of the files' form; the only one that this version reads."""

Read = TypeVar("Read")


def read_document(path: Path, tables: Collection[str], problems: list[str]) -> Mapping[str, Any]:
    """Return the document, empty where there is no file or it is no matrix file of this version.

    One that only lacks its schema is taken for this version's, so that its other problems are told too.
    """
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        problems.append(f"{path}: {getattr(error, 'strerror', None) or error}")
        return {}
    if document.get("schema") != SCHEMA:
        problems.append(f"{path}: schema: must be {SCHEMA}, the only one that this version reads")
        if "schema" in document:
            return {}
    unknown = sorted(document.keys() - {"schema", *tables})
    problems.extend(f"{path}: {key}: unknown key" for key in unknown)
    return document


def read_entries(
    path: Path, document: Mapping[str, Any], table: str, read: Callable[[Entry], Read], problems: list[str]
) -> list[Read]:
    """Read the entries of one array of tables; one with a problem is left out."""
    tables = document.get(table, [])
    if not isinstance(tables, list) or not all(isinstance(values, dict) for values in tables):
        problems.append(f"{path}: {table}: must be an array of tables, [[{table}]]")
        return []
    good = []
    for number, values in enumerate(tables, 1):
        entry = Entry(values)
        value = read(entry)
        entry.reject_unknown_keys()
        problems.extend(f"{path}: {table} {number}: {problem}" for problem in entry.problems)
        if not entry.problems:
            good.append(value)
    return good


@dataclass
class Entry:
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

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of texts, at least one of them."""
        found = self.value(key, list)
        if not found or not all(type(text) is str for text in found):
            self.check(key, False, "must be a list of texts, at least one")
        return tuple(map(str, found))

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


_KINDS: dict[type, str] = {
    str: "text",
    bool: "true or false",
    int: "a number",
    list: "a list",
    date: "a date",
}
