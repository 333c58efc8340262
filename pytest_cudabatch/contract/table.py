"""The page docs/contract.md, written from the contract by ``cudabatch probe --contract --page``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from pytest_cudabatch.abi import CudaVersion
from pytest_cudabatch.contract.answers import Answer
from pytest_cudabatch.contract.call_rows import CALL_ROWS
from pytest_cudabatch.contract.contract import Basis, Contract
from pytest_cudabatch.contract.entries import ENTRIES, Entry
from pytest_cudabatch.contract.lookups import LOOKUP_ROWS
from pytest_cudabatch.contract.questions import ROWS, Question
from pytest_cudabatch.contract.row_table import BATCH_ROWS

__all__ = ["page"]

_HEAD = """\
# What real libraries answer

<!-- Written by: cudabatch probe --contract --page matrix/contract.toml docs/contract.md -->

A row is one call, put to several functions with several runtimes loaded. A number is the code that the call
returned. `failIdx` is what it left there, where the function has that parameter. cudaGetLastError after a
function of the runtime gives the same code, where no other `last error` is shown, and cudaDeviceSynchronize
after that gives 0, where no `sync` is shown. `copied` is how many copies had arrived then.

The functions with failIdx are cudaMemcpyBatchAsync of the 12 runtimes (9 parameters; cudaMemcpy3DBatchAsync
5) and what cuGetProcAddress gives for version 12080; those without it, one parameter less, are the functions
of the 13 runtimes and what it gives for 13000, `_v2` here. `_ptsz` is flag 2, the per-thread default stream.
Where functions of a column differ, each answer names its own; `12.x` stands for every 12 runtime asked.
What is marked `assumed` was not asked of a driver yet: it is what simulated CUDA answers. `EndCapture` is of
the capture under way, `nodes` and `replayed` are of the graph that came of it: the second is how many copies
it makes when it is launched, of bytes that were written after the capture.
"""


@dataclass(frozen=True)
class _Told:
    """What one function answered with one runtime loaded, as far as it is worth showing."""

    entry: Entry
    release: str
    answer: Answer
    basis: Basis

    @property
    def text(self) -> str:
        """The answer, and its basis where that is not an observation."""
        return str(self.answer) if self.basis == "observed" else f"{self.answer} ({self.basis})"


_Rows = Mapping[str, Sequence[_Told]]


def page(contract: Contract) -> str:
    """Return the page's text."""
    sections = [_HEAD, _sources(contract)]
    for driver in contract.drivers:
        releases = [release for release in contract.releases if contract.exactly(release, driver)]
        rows = {name: _told(contract, driver, name) for name in ROWS}
        sections += [
            f"## Driver {driver}: one function, other answers with another runtime\n",
            _by_runtime(rows, releases),
            f"## Driver {driver}: every call\n",
            _by_column({name: rows[name] for name in BATCH_ROWS}, _parameter_list),
            f"## Driver {driver}: other calls\n",
            _by_column({name: rows[name] for name in CALL_ROWS}, lambda _: "answer"),
            f"## Driver {driver}: look-ups\n",
            _by_column({name: rows[name] for name in LOOKUP_ROWS}, _function),
        ]
    return "\n".join(sections)


def _sources(contract: Contract) -> str:
    counts: dict[tuple[str, str, str], int] = {}
    for answer in contract.answers:
        key = (answer.source.text, answer.source.basis, str(answer.source.driver))
        counts[key] = counts.get(key, 0) + 1
    lines = [[text, driver, basis, str(count)] for (text, basis, driver), count in sorted(counts.items())]
    return _table(["source", "driver's CUDA version", "basis", "answers"], lines)


def _told(contract: Contract, driver: CudaVersion, row: str) -> list[_Told]:
    return [
        _Told(entry, release, _shown(known.answer), known.source.basis)
        for entry in ENTRIES
        for release in contract.releases
        if (known := contract.exactly(release, driver).get(Question(row, entry.name))) is not None
    ]


def _shown(answer: Answer) -> Answer:
    """Return what is worth showing: a last error that is not the code, a synchronise that failed."""
    return replace(
        answer,
        last_error=None if answer.last_error == answer.code else answer.last_error,
        sync=answer.sync or None,
    )


def _by_runtime(rows: _Rows, releases: Sequence[str]) -> str:
    """Return a line for each function that does not answer a row alike with all runtimes."""
    lines = []
    for name, told in rows.items():
        for entry in ENTRIES:
            answers = {each.release: each for each in told if each.entry is entry}
            if _differ(each.answer for each in answers.values()):
                cells = (answers[release].text if release in answers else "" for release in releases)
                lines.append([f"`{name}`", f"`{entry.name}`", *cells])
    return _table(["row", "function", *releases], lines)


def _differ(answers: Iterable[Answer]) -> bool:
    """Whether the answers differ in more than that some of the functions have no failIdx."""
    answers = set(answers)
    fail_indices = {answer.fail_index for answer in answers if answer.fail_index is not None}
    return len({replace(answer, fail_index=None) for answer in answers}) > 1 or len(fail_indices) > 1


def _by_column(rows: _Rows, column_of: Callable[[_Told], str]) -> str:
    """Return a line for each row, with its functions gathered in columns."""
    columns = list(dict.fromkeys(column_of(each) for told in rows.values() for each in told))
    lines = [
        [
            f"`{name}`",
            ROWS[name].about,
            *(_cell([each for each in told if column_of(each) == column]) for column in columns),
        ]
        for name, told in rows.items()
        if told
    ]
    return _table(["row", "call", *columns], lines)


def _parameter_list(told: _Told) -> str:
    """Return a column's title: what the function takes."""
    if told.entry.shape in {"copy", "attributes"}:
        return f"`{told.entry.name}`"
    kind = {"batch": "batch", "3d": "3D batch"}[told.entry.shape]
    abi = CudaVersion.parse(told.release).abi
    return f"{kind}, {'with' if told.entry.has_fail_index(abi) else 'without'} failIdx"


def _function(told: _Told) -> str:
    return f"`{told.entry.name}`"


def _cell(told: Sequence[_Told]) -> str:
    """Return the answer, or each answer with the functions that gave it."""
    groups: dict[str, list[_Told]] = {}
    for each in told:
        groups.setdefault(each.text, []).append(each)
    if len(groups) == 1:
        return told[0].text
    return "<br>".join(f"**{answer}**: {_names(found, told)}" for answer, found in groups.items())


def _names(found: Sequence[_Told], told: Sequence[_Told]) -> str:
    """Return the functions in ``found``, with those of their runtimes in ``told`` where it is not all."""
    names = []
    for entry in dict.fromkeys(each.entry for each in found):
        here, known = ([each.release for each in group if each.entry is entry] for group in (found, told))
        names.append(f"`{entry.name}`{_span(here, known)}")
    return ", ".join(names)


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
