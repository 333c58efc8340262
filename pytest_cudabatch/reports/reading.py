"""Reads reports and journals back, each problem with its file and line."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pytest_cudabatch.errors import UsageError
from pytest_cudabatch.reports.journal import JOURNAL_SCHEMA
from pytest_cudabatch.reports.json_report import MERGED_SCHEMA, SCHEMA
from pytest_cudabatch.reports.records import (
    NOT_STARTED,
    RUNNING,
    CellText,
    FailureText,
    PlannedCell,
    RecordedCell,
    RunError,
    RunRecord,
)

__all__ = ["read_records"]

Fields = dict[str, "type | tuple[type, ...]"]
TEXT_OR_NONE = (str, type(None))

RUN_FIELDS: Fields = {"id": str, "started": str}
HOST_FIELDS: Fields = {"platform": str, "driver": TEXT_OR_NONE, "driver_release": TEXT_OR_NONE, "gpus": list}
CELL_FIELDS: Fields = {
    "nodeid": str,
    "case": str,
    "implementation": TEXT_OR_NONE,
    "pairing": TEXT_OR_NONE,
    "platform": TEXT_OR_NONE,
    "verdict": str,
    "phase": str,
    "pytest": str,
    "path": str,
    "finding": (dict, type(None)),
    "seconds": (int, float),
}
PLANNED_FIELDS: Fields = {
    "nodeid": str,
    "case": str,
    "implementation": TEXT_OR_NONE,
    "pairing": TEXT_OR_NONE,
}


def read_records(path: Path) -> list[RunRecord]:
    """Return what a report (one run), a merged report (several) or a journal (one) holds.

    Of a journal that was cut short the torn last line is left out. Raises UsageError, one line with the
    place, for anything else that is no such file.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    try:
        if path.suffix == ".jsonl" or _begins_like_a_journal(data):
            return [_Reader(path.name).record(data)]
        return list(_read_report(path.name, data))
    except _DamageError as damage:
        line = f":{damage.line}" if damage.line else ""
        raise UsageError(f"{path}{line}: {damage}") from None


class _DamageError(Exception):
    """What a file should not have; ``line`` is its number in a journal."""

    def __init__(self, problem: str, line: int | None = None) -> None:
        self.line = line
        super().__init__(problem)


def _begins_like_a_journal(data: bytes) -> bool:
    return data.lstrip().startswith(b'{"event"')


def _checked(data: object, what: str, fields: Fields) -> dict[str, Any]:
    """Return ``data`` as an object that has these fields. Raises _DamageError with what is wrong."""
    if not isinstance(data, dict):
        raise _DamageError(f"{what} is {_shown(data)}, not an object")
    for name, types in fields.items():
        if name not in data:
            raise _DamageError(f"{what} has no {name!r}")
        # bool is an int to isinstance, but True is no status
        if not isinstance(data[name], types) or isinstance(data[name], bool) != (types is bool):
            raise _DamageError(f"{what} has {name!r} as {_shown(data[name])}")
    return data


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."


def _parse(text: bytes) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _DamageError(f"not JSON: {error}") from error


def _host(data: object) -> dict[str, Any]:
    host = _checked(data, "'host'", HOST_FIELDS)
    for gpu in host["gpus"]:
        _checked(gpu, "one of 'gpus'", {"name": str})
    return host


def _planned(data: object) -> PlannedCell:
    cell = _checked(data, "a planned cell", PLANNED_FIELDS)
    return PlannedCell(**{name: cell[name] for name in PLANNED_FIELDS})


def _cell(data: object) -> dict[str, Any]:
    cell = _checked(data, "a cell", CELL_FIELDS)
    if cell["finding"] is not None:
        _checked(cell["finding"], "a finding", {"code": str, "summary": str})
    return cell


def _read_report(source: str, data: bytes) -> Iterator[RunRecord]:
    report = _checked(_parse(data), "the report", {"schema": str, "cells": list, "errors": list})
    if report["schema"] == SCHEMA:
        cells = [(0, _cell(cell)) for cell in report["cells"]]
        yield _record_of(source, report, 0, cells, report["errors"])
    elif report["schema"] == MERGED_SCHEMA:
        yield from _read_merged(report)
    else:
        raise _DamageError(f"its schema is {report['schema']!r}, not {SCHEMA!r} or {MERGED_SCHEMA!r}")


def _read_merged(report: dict[str, Any]) -> Iterator[RunRecord]:
    """Take a merged report apart; of cells that disagree it keeps all, so that nothing is lost."""
    _checked(report, "the report", {"reports": list, "conflicts": list})
    disagreeing = [cell for conflict in report["conflicts"] for cell in _conflict_cells(conflict)]
    settled = [
        cell for cell in report["cells"] if not _checked(cell, "a cell", {"conflict": bool})["conflict"]
    ]
    cells = [(_number(cell, report), _cell(cell)) for cell in (*settled, *disagreeing)]
    for number, part in enumerate(report["reports"]):
        _checked(part, "one of 'reports'", {"source": str})
        errors = [error for error in report["errors"] if _number(error, report) == number]
        yield _record_of(part["source"], part, number, cells, errors)


def _conflict_cells(conflict: object) -> list[Any]:
    cells: list[Any] = _checked(conflict, "a conflict", {"cells": list})["cells"]
    return cells


def _number(data: object, report: Mapping[str, Any]) -> int:
    number: int = _checked(data, "a part of a merged report", {"report": int})["report"]
    if not 0 <= number < len(report["reports"]):
        raise _DamageError(f"it speaks of report {number}, and has {len(report['reports'])}")
    return number


def _record_of(
    source: str, part: dict[str, Any], number: int, cells: list[tuple[int, dict[str, Any]]], errors: list[Any]
) -> RunRecord:
    _checked(part, "the report", {"run": dict, "host": dict})
    read = [_error(error) for error in errors]
    return RunRecord(
        source=source,
        run=_checked(part["run"], "'run'", RUN_FIELDS),
        host=_host(part["host"]),
        cells=tuple(RecordedCell(_own(cell)) for its_number, cell in cells if its_number == number),
        errors=tuple(error for error in read if error.unfinished is None),
        unfinished={cell: error.unfinished for error in read if error.unfinished for cell in error.cells},
    )


def _own(cell: dict[str, Any]) -> dict[str, Any]:
    """Return the cell without what merging added to it."""
    return {name: value for name, value in cell.items() if name not in ("report", "conflict")}


def _error(data: object) -> RunError:
    error = _checked(data, "an error", {"summary": str})
    unfinished = error.get("unfinished")
    if unfinished not in (None, RUNNING, NOT_STARTED):
        raise _DamageError(f"an error is of cells that are {_shown(unfinished)}")
    return RunError(error["summary"], tuple(map(_planned, error.get("cells", ()))), unfinished)


class _Reader:
    """Plays a journal's events back."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._run: dict[str, Any] | None = None
        self._planned: dict[str, PlannedCell] = {}
        self._started: set[str] = set()
        self._ended: set[str] = set()
        self._cells: list[RecordedCell] = []
        self._errors: dict[str, list[str]] = {}

    def record(self, data: bytes) -> RunRecord:
        """Return what the journal tells. Raises _DamageError for a line that is none of its events."""
        *lines, rest = data.split(b"\n")
        for number, line in enumerate(lines, start=1):
            try:
                self._take(_parse(line))
            except _DamageError as damage:
                raise _DamageError(str(damage), number) from None
        if rest:
            self._take_rest(rest)
        if self._run is None:
            raise _DamageError("a journal without its first event, 'run'")
        return RunRecord(
            source=self._source,
            run=self._run["run"],
            host=self._run["host"],
            cells=tuple(self._cells),
            errors=tuple(
                RunError(summary, tuple(self._planned[name] for name in names if name in self._planned))
                for summary, names in self._errors.items()
            ),
            unfinished={
                cell: RUNNING if name in self._started else NOT_STARTED
                for name, cell in self._planned.items()
                if name not in self._ended
            },
        )

    def _take_rest(self, rest: bytes) -> None:
        """Take a last line without its end, if it is whole all the same: the controller was killed in it."""
        try:
            event = _parse(rest)
        except _DamageError:
            return
        self._take(event)

    def _take(self, data: object) -> None:
        event = _checked(data, "an event", {"event": str})
        if (self._run is None) != (event["event"] == "run"):
            raise _DamageError(f"event {event['event']!r} {'before' if self._run is None else 'after'} 'run'")
        takers = {
            "run": self._take_run,
            "planned": self._take_planned,
            "started": self._take_started,
            "cell": self._take_cell,
            "error": self._take_error,
            "finished": self._take_finished,
        }
        if event["event"] not in takers:
            raise _DamageError(f"there is no event {event['event']!r}")
        takers[event["event"]](event)

    def _take_run(self, event: dict[str, Any]) -> None:
        _checked(event, "the event", {"schema": str})
        if event["schema"] != JOURNAL_SCHEMA:
            raise _DamageError(f"its schema is {event['schema']!r}, not {JOURNAL_SCHEMA!r}")
        _checked(event.get("run"), "'run'", RUN_FIELDS)
        _host(event.get("host"))
        self._run = event

    def _take_planned(self, event: dict[str, Any]) -> None:
        for data in _checked(event, "the event", {"cells": list})["cells"]:
            cell = _planned(data)
            self._planned[cell.nodeid] = cell

    def _take_started(self, event: dict[str, Any]) -> None:
        self._started.add(_checked(event, "the event", {"nodeid": str})["nodeid"])

    def _take_cell(self, event: dict[str, Any]) -> None:
        cell = _cell(_checked(event, "the event", {"failures": list, "properties": list}).get("cell"))
        self._ended.add(cell["nodeid"])
        self._cells.append(RecordedCell(cell, _text(event)))

    def _take_error(self, event: dict[str, Any]) -> None:
        _checked(event, "the event", {"summary": str, "nodeid": TEXT_OR_NONE})
        names = self._errors.setdefault(event["summary"], [])
        if event["nodeid"] is not None:
            names.append(event["nodeid"])
            self._ended.add(event["nodeid"])

    def _take_finished(self, event: dict[str, Any]) -> None:
        _checked(event, "the event", {"status": int})


def _text(event: dict[str, Any]) -> CellText:
    _checked(event, "the event", {"reason": TEXT_OR_NONE})
    failures = []
    for data in event["failures"]:
        failure = _checked(data, "a failure", {"when": str, "message": str, "text": str})
        failures.append(FailureText(failure["when"], failure["message"], failure["text"]))
    properties = []
    for pair in event["properties"]:
        if not (isinstance(pair, list) and len(pair) == 2):
            raise _DamageError(f"a property is {_shown(pair)}, not a name and a value")
        properties.append((str(pair[0]), str(pair[1])))
    return CellText(tuple(failures), event["reason"], tuple(properties))
