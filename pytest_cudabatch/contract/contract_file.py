"""Reads and writes matrix/contract.toml. All problems of a file are told at once, each with its key."""

from __future__ import annotations

import functools
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, get_args

from pytest_cudabatch.abi import BatchAbi, CudaVersion
from pytest_cudabatch.contract.answers import Answer
from pytest_cudabatch.contract.contract import (
    Basis,
    Contract,
    ContractAnswer,
    Source,
    is_release,
    release_order,
)
from pytest_cudabatch.contract.entries import ENTRIES
from pytest_cudabatch.contract.questions import ROWS, Question, questions_for
from pytest_cudabatch.errors import UsageError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["contract_text", "load_contract", "packaged_contract"]

_SCHEMA = 1
_ENTRY_NAMES = {entry.name: position for position, entry in enumerate(ENTRIES)}
_ROW_NAMES = {name: position for position, name in enumerate(ROWS)}

_BASES: tuple[Basis, ...] = get_args(Basis)
_A_FILE = "a file there is"

_HEAD = """\
# What real CUDA libraries answer, call by call.
#
#   [source.NAME]   who answered: the CUDA version that the driver reports, the basis, and in words;
#                   file: the recording, relative to this directory
#   [[answer]]      row: what was called; entries: the functions that it was put to; runtimes: the loaded
#                   libcudarts by their exact release. All gave this answer. A part that is not stated was not
#                   asked or does not exist for the call.
#
# Rows and entries are explained in docs/contract.md. `cudabatch probe --contract` asks a host's libraries;
# its option --update writes this file from a recording.

schema = 1
"""


def packaged_contract() -> Path:
    """Return the packaged contract's file."""
    return Path(str(files("pytest_cudabatch")), "matrix", "contract.toml")


def load_contract(path: Path | None = None) -> Contract:
    """Read ``path``, or the packaged contract. Raises UsageError with every problem that the file has."""
    path = packaged_contract() if path is None else path
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    reading = _Reading(path)
    contract = reading.contract(document)
    if problems := UsageError.collect(f"{path}: {problem}" for problem in reading.problems):
        raise problems
    return contract


class _Reading:
    """Reads one document; appends what is wrong to ``problems`` and goes on."""

    def __init__(self, path: Path) -> None:
        self._directory = path.parent
        self.problems: list[str] = []

    def contract(self, document: Mapping[str, Any]) -> Contract:
        if document.get("schema") != _SCHEMA:
            self.problems.append(f"schema: must be {_SCHEMA}, the only one that this version reads")
            return Contract(())
        self._reject_unknown("", document, {"schema", "source", "answer"})
        sources, answers = document.get("source", {}), document.get("answer", [])
        if not isinstance(sources, dict) or not all(isinstance(values, dict) for values in sources.values()):
            self.problems.append("source: must be tables, [source.NAME]")
            return Contract(())
        if not isinstance(answers, list) or not all(isinstance(values, dict) for values in answers):
            self.problems.append("answer: must be an array of tables, [[answer]]")
            return Contract(())
        known = {name: self._source(name, values) for name, values in sources.items()}
        read = [self._answers(number, values, known) for number, values in enumerate(answers, 1)]
        flat = tuple(answer for group in read for answer in group)
        self._reject_duplicates(flat)
        return Contract(flat)

    def _source(self, name: str, values: Mapping[str, Any]) -> Source | None:
        where = f"source.{name}: "
        before = len(self.problems)
        self._reject_unknown(where, values, {"driver", "basis", "text", "file"})
        driver = self._text(where, values, "driver", _is_minor_version, "a CUDA version, major.minor")
        basis = self._text(where, values, "basis", _BASES.__contains__, " or ".join(_BASES))
        text = self._text(where, values, "text")
        file = (
            self._text(where, values, "file", self._is_beside, "a file there is")
            if "file" in values
            else None
        )
        if len(self.problems) > before:
            return None
        return Source(name, CudaVersion.parse(driver), _basis(basis), text, file)

    def _answers(
        self, number: int, values: Mapping[str, Any], sources: Mapping[str, Source | None]
    ) -> list[ContractAnswer]:
        where = f"answer {number}: "
        before = len(self.problems)
        self._reject_unknown(where, values, {"row", "entries", "runtimes", "source", "answer"})
        row = self._text(where, values, "row", ROWS.__contains__, "a row, see docs/contract.md")
        source = self._text(where, values, "source", sources.__contains__, "the name of a [source]")
        entries = self._texts(where, values, "entries", _ENTRY_NAMES.__contains__, "an entry")
        runtimes = self._texts(where, values, "runtimes", is_release, "a release such as 12.9.79")
        answer = self._answer(where, values.get("answer"))
        known = sources.get(source)
        if len(self.problems) > before or answer is None or known is None:
            return []
        self._reject_impossible(where, row, entries, runtimes)
        return [
            ContractAnswer(Question(row, entry), runtime, answer, known)
            for entry in entries
            for runtime in runtimes
        ]

    def _answer(self, where: str, value: object) -> Answer | None:
        if not isinstance(value, dict):
            self.problems.append(f"{where}answer: must be a table such as {{ code = 0 }}")
            return None
        try:
            return Answer.from_json(value)
        except ValueError as error:
            self.problems.append(f"{where}answer: {error}")
            return None

    def _text(
        self,
        where: str,
        values: Mapping[str, Any],
        key: str,
        holds: Callable[[str], bool] = bool,
        meaning: str = "text",
    ) -> str:
        found = values.get(key)
        if isinstance(found, str) and holds(found):
            return found
        self.problems.append(
            f"{where}{key}: must be {meaning}, not {found!r}"
            if key in values
            else f"{where}{key}: is missing"
        )
        return ""

    def _texts(
        self, where: str, values: Mapping[str, Any], key: str, holds: Callable[[str], bool], meaning: str
    ) -> list[str]:
        found = values.get(key)
        if not isinstance(found, list) or not found:
            problem = "must be a list that is not empty" if key in values else "is missing"
            self.problems.append(f"{where}{key}: {problem}")
            return []
        wrong = [item for item in found if not (isinstance(item, str) and holds(item))]
        self.problems.extend(f"{where}{key}: {item!r} is not {meaning}" for item in wrong)
        return [item for item in found if item not in wrong]

    def _is_beside(self, name: str) -> bool:
        return (self._directory / name).is_file()

    def _reject_unknown(self, where: str, values: Mapping[str, Any], known: set[str]) -> None:
        self.problems.extend(f"{where}{key}: unknown key" for key in sorted(values.keys() - known))

    def _reject_impossible(
        self, where: str, row: str, entries: Sequence[str], runtimes: Sequence[str]
    ) -> None:
        """Append each question that is never asked of such a runtime."""
        for runtime in runtimes:
            asked = _asked_of(CudaVersion.parse(runtime).abi)
            self.problems.extend(
                f"{where}entries: {row} is not put to {entry} with runtime {runtime}"
                for entry in entries
                if Question(row, entry) not in asked
            )

    def _reject_duplicates(self, answers: Iterable[ContractAnswer]) -> None:
        seen = set()
        for answer in answers:
            key = (answer.question, answer.release, answer.source.driver)
            if key in seen:
                row, entry = answer.question.row, answer.question.entry
                pairing = f"runtime {answer.release} on driver {answer.source.driver}"
                self.problems.append(f"answer: {row}, {entry} with {pairing} is there twice")
            seen.add(key)


@functools.cache
def _asked_of(abi: BatchAbi) -> frozenset[Question]:
    return frozenset(questions_for(abi))


def _is_minor_version(text: str) -> bool:
    return re.fullmatch(r"\d+\.\d+", text) is not None


def _basis(text: str) -> Basis:
    return next(basis for basis in _BASES if basis == text)


def contract_text(contract: Contract) -> str:
    """Return the file's text; the same for equal answers, whatever their order.

    Equal answers of several runtimes and entries become one ``[[answer]]``.
    """
    sources = sorted({answer.source for answer in contract.answers}, key=lambda source: source.name)
    blocks = [*map(_source_block, sources), *_answer_blocks(contract.answers)]
    return "\n".join([_HEAD, *blocks])


def _source_block(source: Source) -> str:
    lines = [f"[source.{source.name}]", f'driver = "{source.driver}"', f'basis = "{source.basis}"']
    lines.append(f"text = {json.dumps(source.text)}")
    if source.file is not None:
        lines.append(f"file = {json.dumps(source.file)}")
    return "\n".join(lines) + "\n"


def _answer_blocks(answers: Iterable[ContractAnswer]) -> Iterator[str]:
    releases_of: dict[tuple[str, str, Answer, str], set[str]] = {}
    for each in answers:
        key = (each.question.row, each.source.name, each.answer, each.question.entry)
        releases_of.setdefault(key, set()).add(each.release)
    entries: dict[tuple[str, str, Answer, tuple[str, ...]], list[str]] = {}
    for (row, source, answer, entry), found in releases_of.items():
        group = (row, source, answer, tuple(sorted(found, key=release_order)))
        entries.setdefault(group, []).append(entry)
    blocks = [(*key, sorted(names, key=_ENTRY_NAMES.__getitem__)) for key, names in entries.items()]
    blocks.sort(key=lambda block: (_ROW_NAMES[block[0]], block[1], _ENTRY_NAMES[block[4][0]], block[3]))
    for row, source, answer, releases, names in blocks:
        yield (
            f'[[answer]]\nrow = "{row}"\nentries = {_list(names)}\nruntimes = {_list(releases)}\n'
            f'source = "{source}"\nanswer = {_table(answer)}\n'
        )


_WIDTH = 100


def _list(items: Sequence[str]) -> str:
    """Return a TOML array, on several lines where one would be too long."""
    quoted = [json.dumps(item) for item in items]
    line = f"[{', '.join(quoted)}]"
    return line if len(line) <= _WIDTH else "[\n" + "".join(f"  {item},\n" for item in quoted) + "]"


def _table(answer: Answer) -> str:
    return "{ " + ", ".join(f"{key} = {json.dumps(value)}" for key, value in answer.to_json().items()) + " }"
