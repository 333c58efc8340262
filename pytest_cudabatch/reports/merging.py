"""Several runs' records as one: equal cells once, cells that disagree named, unfinished ones filled in."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pytest_cudabatch.reports.json_report import MERGED_SCHEMA, SCHEMA
from pytest_cudabatch.reports.records import PlannedCell, RecordedCell, RunError, RunRecord, unfinished_errors
from pytest_cudabatch.verdicts import Verdict

__all__ = ["Key", "Merged", "Seen", "merge"]

WORST_FIRST = tuple(
    verdict.value
    for verdict in (
        Verdict.CRASHED,
        Verdict.HUNG,
        Verdict.FAILED,
        Verdict.PASSED,
        Verdict.UNAVAILABLE,
        Verdict.SKIPPED,
    )
)
"""Any result outranks none, and a failure any pass, whatever their order in time: a driver's fault comes and
goes, and a later pass does not take it back."""

RESULTS = frozenset(WORST_FIRST[:4])


class Key(NamedTuple):
    """What makes two cells the same one: never the node id, which depends on where pytest was started.

    ``host`` holds the facts of the host that bear on the answer, as canonical JSON.
    """

    case: str
    implementation: str | None
    pairing: str | None
    platform: str | None
    libraries: str
    host: str


@dataclass(frozen=True)
class Seen:
    """A cell, and the number of the record that has it."""

    record: int
    cell: RecordedCell


@dataclass(frozen=True)
class MergedCell:
    """All that is known of one cell, newest run first."""

    key: Key
    seen: tuple[Seen, ...]

    @property
    def results(self) -> tuple[Seen, ...]:
        """Those that came to a result; all where none did."""
        return tuple(seen for seen in self.seen if seen.cell.verdict in RESULTS) or self.seen

    @property
    def chosen(self) -> Seen:
        """The one that stands for all: of the worst verdict, the newest."""
        return min(self.results, key=lambda seen: WORST_FIRST.index(seen.cell.verdict))

    @property
    def in_conflict(self) -> bool:
        """Whether the results differ in verdict, cause, path or parameter list."""
        return len({_answer(seen.cell.data) for seen in self.results}) > 1

    @property
    def rate(self) -> dict[str, int] | None:
        """How many of how many runs did not pass; the cell's own rate where it was seen once."""
        if len(self.results) == 1 or self.chosen.cell.verdict not in RESULTS:
            own: dict[str, int] | None = self.chosen.cell.data.get("rate")
            return own
        rates = [seen.cell.data.get("rate") or _rate_of_one(seen.cell) for seen in self.results]
        return {name: sum(rate[name] for rate in rates) for name in ("k", "n")}


def _answer(data: Mapping[str, Any]) -> tuple[Any, ...]:
    finding = data["finding"]
    return data["verdict"], finding and finding["code"], data["path"], data.get("abi_called")


def _rate_of_one(cell: RecordedCell) -> dict[str, int]:
    return {"k": int(cell.verdict != Verdict.PASSED.value), "n": 1}


@dataclass(frozen=True)
class Merged:
    """Records and the cells that they make together."""

    records: tuple[RunRecord, ...]
    cells: tuple[MergedCell, ...]

    @property
    def conflicts(self) -> tuple[MergedCell, ...]:
        """The cells whose results disagree."""
        return tuple(cell for cell in self.cells if cell.in_conflict)

    def unfinished(self, number: int) -> dict[PlannedCell, str]:
        """Return what a record left unfinished and no other record of the same host has."""
        record = self.records[number]
        have = {_planned_key(cell.key) for cell in self.cells}
        return {
            cell: state
            for cell, state in record.unfinished.items()
            if (cell.case, cell.implementation, cell.pairing, _host_key(record.host)) not in have
        }

    def errors(self, number: int) -> tuple[RunError, ...]:
        """Return a record's errors, with one for each kind of cell that nobody finished."""
        record = self.records[number]
        planned = len(record.unfinished) + len(record.cells)
        return (*record.errors, *unfinished_errors(self.unfinished(number), planned))

    def to_json(self) -> dict[str, Any]:
        """Return a plain report where there is one record, else the merged form."""
        if len(self.records) == 1:
            (record,) = self.records
            return {
                "schema": SCHEMA,
                "run": dict(record.run),
                "host": dict(record.host),
                "cells": [dict(cell.data) for cell in record.cells],
                "errors": [error.to_json() for error in record.all_errors],
            }
        return {
            "schema": MERGED_SCHEMA,
            "reports": [
                {"source": record.source, "run": dict(record.run), "host": dict(record.host)}
                for record in self.records
            ],
            "cells": [_cell_json(cell) for cell in self.cells],
            "conflicts": [_conflict_json(cell) for cell in self.conflicts],
            "errors": [
                {**error.to_json(), "report": number}
                for number in range(len(self.records))
                for error in self.errors(number)
            ],
        }


def _cell_json(cell: MergedCell) -> dict[str, Any]:
    chosen = cell.chosen
    return {
        **chosen.cell.data,
        "rate": cell.rate,
        "report": chosen.record,
        "conflict": cell.in_conflict,
    }


def _conflict_json(cell: MergedCell) -> dict[str, Any]:
    key = cell.key
    return {
        "case": key.case,
        "implementation": key.implementation,
        "pairing": key.pairing,
        "platform": key.platform,
        "cells": [{**seen.cell.data, "report": seen.record, "conflict": True} for seen in cell.seen],
    }


def merge(records: Sequence[RunRecord]) -> Merged:
    """Put cells together that are the same: case, implementation, pairing, platform and host facts."""
    found: dict[Key, list[Seen]] = {}
    for number, record in enumerate(records):
        for cell in record.cells:
            found.setdefault(_key(record, cell), []).append(Seen(number, cell))
    # Of runs with equal times the one named later counts as newer.
    newest = sorted(range(len(records)), key=lambda number: (_started(records[number]), number), reverse=True)
    age = {number: position for position, number in enumerate(newest)}
    cells = tuple(
        MergedCell(key, tuple(sorted(seen, key=lambda one: age[one.record]))) for key, seen in found.items()
    )
    return Merged(tuple(records), cells)


def _started(record: RunRecord) -> str:
    return str(record.run["started"])


def _key(record: RunRecord, cell: RecordedCell) -> Key:
    data = cell.data
    libraries = {name: data.get(name) for name in ("runtime", "driver")}
    return Key(
        data["case"],
        data["implementation"],
        data["pairing"],
        data["platform"],
        _canonical(libraries),
        _host_key(record.host),
    )


def _planned_key(key: Key) -> tuple[str, str | None, str | None, str]:
    return key.case, key.implementation, key.pairing, key.host


def _host_key(host: Mapping[str, Any]) -> str:
    """Return the facts by which hosts differ for a cell, and none of the tools that ran it."""
    names = ("platform", "driver", "driver_release", "gpus", "flags", "image")
    return _canonical({name: host.get(name) for name in names})


def _canonical(data: Mapping[str, Any]) -> str:
    return json.dumps(data, sort_keys=True)


def conflict_lines(merged: Merged) -> Iterator[str]:
    """Say for each conflict who saw what."""
    for cell in merged.conflicts:
        where = " ".join(filter(None, (cell.key.implementation, cell.key.pairing, cell.key.platform)))
        yield f"{cell.key.case} {where}".rstrip()
        for seen in cell.seen:
            record, data = merged.records[seen.record], seen.cell.data
            cause = f", {data['finding']['code']}" if data["finding"] else ""
            yield f"  {data['verdict']}{cause}, path {data['path']}: {record.source}, {record.run['started']}"
