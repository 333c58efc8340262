"""Reports and journals read back: what a kill leaves is taken, damage is told with its place."""

from __future__ import annotations

from pathlib import Path

import pytest
from samples import begun, cell, ended, event, planned, write_report

from pytest_cudabatch.errors import UsageError
from pytest_cudabatch.reports import read_records


def journal(directory: Path, *lines: str, end: str = "\n") -> Path:
    path = directory / "run.jsonl"
    path.write_text("\n".join(lines) + end)
    return path


def names(cells) -> list[str]:
    return [planned_cell.nodeid.partition("::")[2].partition("[")[0] for planned_cell in cells]


def test_a_journal_that_was_cut_short_names_what_is_missing(tmp_path):
    started = event("started", nodeid=planned("test_b")["nodeid"])
    path = journal(tmp_path, *begun("test_a", "test_b", "test_c"), *ended("test_a"), started)
    (record,) = read_records(path)
    assert [dict(one.data) for one in record.cells] == [cell("test_a")]
    assert [(names([one]), state) for one, state in record.unfinished.items()] == [
        (["test_b"], "running"),
        (["test_c"], "not-started"),
    ]
    assert [(error.summary, names(error.cells)) for error in record.all_errors] == [
        ("1 of 3 planned cells: without a result when the record ends: running", ["test_b"]),
        ("1 of 3 planned cells: not started", ["test_c"]),
    ]


@pytest.mark.parametrize("kept", range(1, 60, 7))
def test_a_torn_last_line_is_left_out(tmp_path, kept):
    path = journal(tmp_path, *begun("test_a", "test_b"), *ended("test_a"), ended("test_b")[1][:kept], end="")
    (record,) = read_records(path)
    assert len(record.cells) == 1
    assert names(record.unfinished) == ["test_b"]


def test_a_last_line_that_lacks_only_its_end_counts(tmp_path):
    (record,) = read_records(journal(tmp_path, *begun("test_a"), *ended("test_a"), end=""))
    assert (len(record.cells), record.unfinished) == (1, {})


def test_a_cell_that_an_error_cost_is_finished_without_a_verdict(tmp_path):
    errors = [
        event("error", summary="no zygote", nodeid=planned(name)["nodeid"]) for name in ("test_a", "test_b")
    ]
    (record,) = read_records(journal(tmp_path, *begun("test_a", "test_b"), *errors))
    assert record.unfinished == {}
    assert [(error.summary, names(error.cells)) for error in record.all_errors] == [
        ("no zygote", ["test_a", "test_b"])
    ]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("{torn", "not JSON: "),
        ("", "not JSON: "),
        ("[1, 2]", "an event is [1, 2], not an object"),
        ('{"event": "dance", "time": 1.0}', "there is no event 'dance'"),
        ('{"event": "started"}', "the event has no 'nodeid'"),
        ('{"event": "finished", "status": true}', "the event has 'status' as True"),
        ('{"event": "cell", "failures": [], "properties": []}', "a cell is None, not an object"),
        (ended("test_a")[1].replace('"passed"', "7", 1), "a cell has 'verdict' as 7"),
        (begun("test_a")[0], "event 'run' after 'run'"),
    ],
)
def test_damage_in_the_middle_is_told_with_its_line(tmp_path, line, problem):
    path = journal(tmp_path, *begun("test_a"), line, *ended("test_a"))
    with pytest.raises(UsageError) as caught:
        read_records(path)
    assert str(caught.value).startswith(f"{path}:3: {problem}")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "a journal without its first event, 'run'"),
        (ended("test_a")[0] + "\n", ":1: event 'started' before 'run'"),
        (
            begun()[0].replace("journal/1", "journal/9") + "\n",
            ":1: its schema is 'pytest-cudabatch/journal/9'",
        ),
    ],
)
def test_what_is_no_journal_is_refused(tmp_path, text, problem):
    path = tmp_path / "run.jsonl"
    path.write_text(text)
    with pytest.raises(UsageError, match=r"run\.jsonl") as caught:
        read_records(path)
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "not JSON: "),
        ("[]", "the report is [], not an object"),
        ('{"schema": "other/1", "cells": [], "errors": []}', "its schema is 'other/1'"),
        ('{"schema": "pytest-cudabatch/report/1", "cells": [{}], "errors": []}', "a cell has no 'nodeid'"),
        ('{"schema": "pytest-cudabatch/report/1", "cells": [], "errors": []}', "the report has no 'run'"),
    ],
)
def test_what_is_no_report_is_refused(tmp_path, text, problem):
    path = tmp_path / "report.json"
    path.write_text(text)
    with pytest.raises(UsageError) as caught:
        read_records(path)
    assert str(caught.value).startswith(f"{path}: {problem}")


def test_unfinished_cells_survive_a_report(tmp_path):
    error = {"summary": "1 of 2 planned cells: not started", "cells": [planned("test_b")]}
    path = write_report(tmp_path / "a.json", cell(), errors=[{**error, "unfinished": "not-started"}])
    (record,) = read_records(path)
    assert names(record.unfinished) == ["test_b"]
    assert record.errors == ()


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(UsageError, match=r"cannot read .*none\.json: No such file"):
        read_records(tmp_path / "none.json")
