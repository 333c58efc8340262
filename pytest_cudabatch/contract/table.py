"""The page docs/contract.md, written from the contract by ``cudabatch probe --contract --page``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from pytest_cudabatch.abi import CudaVersion
from pytest_cudabatch.contract.answers import Answer
from pytest_cudabatch.contract.contract import Contract
from pytest_cudabatch.contract.entries import ENTRIES
from pytest_cudabatch.contract.questions import ROWS, Question

__all__ = ["page"]

_HEAD = """\
# What real libraries answer

<!-- Written by: cudabatch probe --contract --page matrix/contract.toml docs/contract.md -->

A row is one call, put to several functions with several runtimes loaded. A number is the code that the call
returned. `failIdx` is what it left there, for the nine-parameter list. cudaGetLastError after a function of
the runtime gives the same code, where no other `last error` is shown, and cudaDeviceSynchronize after that
gives 0, where no `sync` is shown. `copied` is how many copies had arrived then.
`cuMemcpyBatchAsync` stands for what cuGetProcAddress gives for version 12080 (nine parameters),
`cuMemcpyBatchAsync_v2` for 13000 (eight), and `_ptsz` for flag 2, the per-thread default stream.
`12.x` stands for every 12 runtime that was asked, `13.x` likewise, and a function alone for all of both.
"""

_Groups = Mapping[Answer, Mapping[str, Sequence[str]]]
"""Answers to one row: the runtimes' releases by entry."""


def page(contract: Contract) -> str:
    """Return the page's text."""
    sections = [_HEAD, _sources(contract)]
    for driver in contract.drivers:
        releases = [release for release in contract.releases if contract.exactly(release, driver)]
        groups = {row.name: _grouped(contract, driver, row.name) for row in ROWS.values()}
        by_version = {name: answers for name, answers in groups.items() if _differ_by_version(answers)}
        by_function = {name: answers for name, answers in groups.items() if _differ(answers)}
        sections += [
            f"## Driver {driver}: one function, other answers with another runtime\n",
            _rows(by_version, releases),
            f"## Driver {driver}: other answers of another function\n",
            _rows({name: groups[name] for name in by_function if name not in by_version}, releases),
            f"## Driver {driver}: everything\n",
            _rows(groups, releases),
        ]
    return "\n".join(sections)


def _rows(groups: Mapping[str, _Groups], releases: Sequence[str]) -> str:
    lines = [
        [f"`{name}`", ROWS[name].about, _cell(answers, releases)]
        for name, answers in groups.items()
        if answers
    ]
    return _table(["row", "call", "answers"], lines)


def _sources(contract: Contract) -> str:
    counts: dict[tuple[str, str, str], int] = {}
    for answer in contract.answers:
        key = (answer.source.text, answer.source.basis, str(answer.source.driver))
        counts[key] = counts.get(key, 0) + 1
    lines = [[text, driver, basis, str(count)] for (text, basis, driver), count in sorted(counts.items())]
    return _table(["source", "driver's CUDA version", "basis", "answers"], lines)


def _grouped(contract: Contract, driver: CudaVersion, row: str) -> _Groups:
    """Return each answer to ``row``, with the functions and their runtimes that gave it."""
    groups: dict[Answer, dict[str, list[str]]] = {}
    for entry in ENTRIES:
        for release in contract.releases:
            known = contract.exactly(release, driver).get(Question(row, entry.name))
            if known is not None:
                groups.setdefault(_shown(known.answer), {}).setdefault(entry.name, []).append(release)
    return groups


def _differ(groups: Iterable[Answer]) -> bool:
    """Whether the answers differ in more than that some of the functions have no failIdx."""
    answers = list(groups)
    fail_indices = {answer.fail_index for answer in answers if answer.fail_index is not None}
    return len({replace(answer, fail_index=None) for answer in answers}) > 1 or len(fail_indices) > 1


def _differ_by_version(groups: _Groups) -> bool:
    """Whether there is a function whose answers differ among the runtimes."""
    entries = {entry for functions in groups.values() for entry in functions}
    return any(
        _differ(answer for answer, functions in groups.items() if entry in functions) for entry in entries
    )


def _shown(answer: Answer) -> Answer:
    """Return what is worth showing: a last error that is not the code, a synchronise that failed."""
    return replace(
        answer,
        last_error=None if answer.last_error == answer.code else answer.last_error,
        sync=answer.sync or None,
    )


def _cell(groups: _Groups, releases: Sequence[str]) -> str:
    return "<br>".join(
        f"**{answer}**: "
        + ", ".join(f"`{entry}`{_span(found, releases)}" for entry, found in entries.items())
        for answer, entries in groups.items()
    )


def _span(found: Sequence[str], releases: Sequence[str]) -> str:
    """Return the runtimes ``found`` of all ``releases`` in brackets, whole majors as one; nothing for all."""
    if len(found) == len(releases):
        return ""
    parts: list[str] = []
    for major in dict.fromkeys(CudaVersion.parse(release).major for release in releases):
        known = [release for release in releases if CudaVersion.parse(release).major == major]
        here = [release for release in known if release in found]
        parts += [f"{major}.x"] if here == known else here
    return f" ({', '.join(parts)})"


def _table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    if not lines:
        return "None.\n"
    rows = [head, ["---"] * len(head), *lines]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)
