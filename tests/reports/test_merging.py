"""Several reports as one: what is the same cell, which result stands, and what is never lost."""

from __future__ import annotations

import json
from itertools import permutations

import pytest
from junitparser import Error, Failure
from junitparser.xunit2 import JUnitXml
from samples import HOST, begun, cell, ended, write_report

from pytest_cudabatch.commands import main
from pytest_cudabatch.reports import merge, read_records

EARLY, LATE = "2026-11-29T10:00:00+00:00", "2026-11-30T10:00:00+00:00"


def merged(*paths):
    return merge([record for path in paths for record in read_records(path)])


def test_a_cell_is_the_same_whatever_its_node_id(tmp_path):
    one = write_report(tmp_path / "a.json", cell())
    other = write_report(
        tmp_path / "b.json", cell(nodeid="elsewhere/test_x.py::test_a[reference-cu12.9-d13.0]")
    )
    (only,) = merged(one, other).cells
    assert (only.in_conflict, only.rate) == (False, {"k": 0, "n": 2})


@pytest.mark.parametrize(
    "other",
    [
        {"case": "test_x.py::test_z"},
        {"pairing": "cu13.0-d13.0"},
        {"implementation": "mine"},
        {"platform": "simulated"},
        {"runtime": {"version": "12.9.86", "abi": "v12080", "source": "wheel"}},
    ],
)
def test_a_cell_is_another_one_by_each_part_of_its_key(tmp_path, other):
    one = write_report(tmp_path / "a.json", cell())
    assert len(merged(one, write_report(tmp_path / "b.json", cell(**other))).cells) == 2


@pytest.mark.parametrize(
    ("fact", "value", "cells"),
    [
        ("driver_release", "575.0", 2),
        ("gpus", [{"name": "L4"}], 2),
        ("flags", {"mps": True}, 2),
        ("image", "cuda:13.0", 2),
        ("python", "3.13.0", 1),
        ("plugin", "0.2.0", 1),
    ],
)
def test_the_hosts_facts_are_part_of_the_key_and_the_tools_are_not(tmp_path, fact, value, cells):
    one = write_report(tmp_path / "a.json", cell())
    other = write_report(tmp_path / "b.json", cell(), host={**HOST, fact: value})
    assert len(merged(one, other).cells) == cells


@pytest.mark.parametrize("worse", ["failed", "crashed", "hung"])
@pytest.mark.parametrize("times", [(EARLY, LATE), (LATE, EARLY)], ids=["fails first", "fails last"])
def test_a_later_pass_does_not_take_a_failure_back(tmp_path, worse, times):
    bad = write_report(tmp_path / "bad.json", cell(verdict=worse), started=times[0])
    good = write_report(tmp_path / "good.json", cell(), started=times[1])
    together = merged(bad, good)
    (only,) = together.conflicts
    assert (only.chosen.cell.verdict, only.rate) == (worse, {"k": 1, "n": 2})
    (case,) = next(iter(JUnitXml.fromstring(junit(bad, good, tmp_path))))
    assert isinstance(case.result[0], Failure)
    assert "passed in good.json" in case.result[0].message
    assert f"{worse} in bad.json" in case.result[0].message


@pytest.mark.parametrize("none", ["skipped", "unavailable"])
def test_no_result_says_nothing_against_a_result(tmp_path, none):
    without = write_report(tmp_path / "a.json", cell(verdict=none), started=LATE)
    (only,) = merged(without, write_report(tmp_path / "b.json", cell(), started=EARLY)).cells
    assert (only.chosen.cell.verdict, only.in_conflict, only.rate) == ("passed", False, None)


def test_another_path_is_a_conflict_too(tmp_path):
    one = write_report(tmp_path / "a.json", cell())
    assert merged(one, write_report(tmp_path / "b.json", cell(path="fallback"))).conflicts


def test_of_equal_results_the_newest_stands(tmp_path):
    new = write_report(tmp_path / "new.json", cell(seconds=2.0), started=LATE)
    old = write_report(tmp_path / "old.json", cell(seconds=1.0), started=EARLY)
    for paths in ((new, old), (old, new)):
        (only,) = merged(*paths).cells
        assert only.chosen.cell.data["seconds"] == 2.0


def test_a_cell_that_another_run_finished_is_not_unfinished(tmp_path):
    killed = tmp_path / "killed.jsonl"
    killed.write_text("\n".join([*begun("test_a", "test_b"), *ended("test_a")]) + "\n")
    again = write_report(tmp_path / "again.json", cell("test_b"))
    assert [len(merged(killed, again).unfinished(number)) for number in (0, 1)] == [0, 0]
    elsewhere = write_report(tmp_path / "x.json", cell("test_b"), host={**HOST, "driver_release": "575.0"})
    assert len(merged(killed, elsewhere).unfinished(0)) == 1


def test_merging_in_steps_gives_the_same_in_every_order(tmp_path):
    verdicts = {"a": ("passed", EARLY), "b": ("crashed", LATE), "c": ("passed", LATE)}
    paths = {
        name: write_report(tmp_path / f"{name}.json", cell(verdict=verdict), cell("test_b"), started=started)
        for name, (verdict, started) in verdicts.items()
    }
    rates = set()
    for first, second, third in permutations(paths):
        step = tmp_path / "step.json"
        assert main(["merge", str(paths[first]), str(paths[second]), "--json", str(step)]) == 0
        (conflict,) = merged(step, paths[third]).conflicts
        assert conflict.chosen.cell.verdict == "crashed"
        rates.add((conflict.rate["k"], conflict.rate["n"]))
    assert rates == {(1, 3)}


def junit(*arguments) -> bytes:
    *paths, directory = arguments
    file = directory / "out.xml"
    assert main(["merge", *map(str, paths), "--junit", str(file)]) == 0
    return file.read_bytes()


def test_hosts_have_suites_of_their_own(tmp_path):
    one = write_report(tmp_path / "a.json", cell(), cell("test_b", "crashed"))
    other = write_report(
        tmp_path / "b.json",
        cell(platform="simulated"),
        host={**HOST, "platform": "simulated", "driver": None, "driver_release": None, "gpus": []},
    )
    suites = {suite.name: suite for suite in JUnitXml.fromstring(junit(one, other, tmp_path))}
    assert {name: (suite.tests, suite.failures) for name, suite in suites.items()} == {
        "cudabatch device NVIDIA H200 driver 580.159.04": (2, 1),
        "cudabatch simulated": (1, 0),
    }


def test_junit_of_a_killed_run(tmp_path):
    killed = tmp_path / "run.jsonl"
    failure = {"when": "teardown", "message": "boom \x1b[1m", "text": "a\x00b]]>&<"}
    lines = [
        *begun("test_a", "test_b", "test_c"),
        *ended("test_a", properties=[["mine", "12"]]),
        *ended("test_b", "failed", failures=[failure]),
    ]
    killed.write_text("\n".join(lines) + "\n")
    (suite,) = JUnitXml.fromstring(junit(killed, tmp_path))
    cases = {case.name.partition("[")[0]: case for case in suite}
    assert cases["test_a"].is_passed
    assert [(p.name, p.value) for p in cases["test_a"].properties()] == [("mine", "12")]
    assert [case.classname for case in cases.values()] == ["here.test_x"] * 3
    (error,) = cases["test_b"].result
    assert isinstance(error, Error)
    assert (error.message, error.text) == ("boom #x1B[1m", "a#x00b]]>&<")
    (missing,) = cases["test_c"].result
    assert isinstance(missing, Error)
    assert missing.message == "not finished: it was not started"
    assert (suite.tests, suite.errors) == (3, 2)


def test_the_command_shows_conflicts_and_what_is_missing(tmp_path, capsys):
    bad = write_report(tmp_path / "bad.json", cell(verdict="crashed"), started=EARLY)
    killed = tmp_path / "run.jsonl"
    killed.write_text("\n".join([*begun("test_a", "test_b"), *ended("test_a")]) + "\n")
    assert main(["merge", str(bad), str(killed)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "runs: 2, cells: 1",
        "device cells: 1 crashed",
        "conflicts: 1; each stands as its worst, with its rate",
        "  test_x.py::test_a reference cu12.9-d13.0 device",
        "    passed, path batch: run.jsonl, 2026-11-30T10:00:00+00:00",
        "    crashed, crash, path batch: bad.json, 2026-11-29T10:00:00+00:00",
        "not finished in run.jsonl: 1",
        "  here/test_x.py::test_b[reference-cu12.9-d13.0] (not-started)",
    ]


def test_all_bad_files_are_told_at_once(tmp_path, capsys):
    bad = tmp_path / "bad.json"
    bad.write_text("{")
    assert main(["merge", str(bad), str(tmp_path / "none.json")]) == 4
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith(f"cudabatch: {bad}: not JSON")
    assert "none.json: No such file" in lines[1]


def test_a_file_that_cannot_be_written(tmp_path, capsys):
    report = write_report(tmp_path / "a.json", cell())
    assert main(["merge", str(report), "--json", str(tmp_path / "missing" / "x.json")]) == 1
    assert "cannot write" in capsys.readouterr().err
    assert json.loads(report.read_text())["schema"] == "pytest-cudabatch/report/1"
