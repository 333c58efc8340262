"""The torture table in a whole run: what terminal, JUnit, report, annotations and exit status say."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from .projects import processes_with
from .table import DEADLINE, ROWS, SOURCES, Row

ROWS_OF_A_RUN = tuple(row for row in ROWS if not row.stops)
"""A test that stops the session has a run of its own."""

GOOD = """
import pytest
pytestmark = pytest.mark.cuda_cell
@pytest.mark.parametrize("number", range({}))
def test_good(number): pass
"""

CONFTEST = """
import json, pytest
HANGING = {hanging!r}

def pytest_collection_modifyitems(items):
    good = [item for item in items if item.originalname == "test_good"]
    others = [item for item in items if item.originalname != "test_good"]
    for item in others:
        if item.originalname in HANGING:
            item.add_marker(pytest.mark.timeout({deadline}))
    items[:] = good[:1]
    for bad, after in zip(others, good[1:], strict=True):
        items += [bad, after]

def pytest_configure(config):
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Annotator())

class Annotator:
    # What a plugin that annotates the failed lines of a pull request reads of a report.
    def pytest_runtest_logreport(self, report):
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            line, message = (crash.lineno, crash.message) if crash else (None, report.longreprtext)
            with open("annotations", "a") as file:
                print(json.dumps([report.nodeid, report.location[:2], line, message]), file=file)
"""

OPTIONS = (
    *("--cuda-matrix", "--cuda-no-suite", "--cuda-platform=simulated", "--cuda-report=report.json"),
    *("--cuda-select=runtime==12.9 on driver==13.0", "-p", "no:randomly"),
    *("--junitxml=junit.xml", "-ojunit_logging=all", "-rA", "-Wdefault"),
)

WORKERS = [pytest.param((), id="one process"), pytest.param(("-n2",), id="two workers")]


@dataclass(frozen=True)
class Run:
    """One run over the table, and all that it left."""

    result: pytest.RunResult
    id: str
    words: dict[str, list[str]]
    cells: dict[str, dict[str, Any]]
    junit: dict[str, list[ElementTree.Element]]
    annotations: dict[str, list[Any]]


def write_torture(directory: Path, rows: tuple[Row, ...]) -> None:
    wanted = {f"test_{row.name}" for row in rows}
    for name, source in SOURCES.items():
        left_out = set(re.findall(r"^def (test_\w+)", source, re.MULTILINE)) - wanted
        hidden = "".join(f"del {test}\n" for test in sorted(left_out))
        (directory / name).write_text(f"{source}\npytestmark = pytest.mark.cuda_cell\n{hidden}")
    (directory / "test_good.py").write_text(GOOD.format(len(rows) + 1))
    hanging = sorted(f"test_{row.name}" for row in rows if row.hangs)
    (directory / "conftest.py").write_text(CONFTEST.format(hanging=hanging, deadline=DEADLINE))


def run_in(pytester: pytest.Pytester, *options: str) -> Run:
    # Those of test_attaching.py do; here it would cost a second for each row.
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CUDABATCH_NATIVE_STACKS", "0")
        result = pytester.runpytest_subprocess(*OPTIONS, *options)
    report = json.loads((pytester.path / "report.json").read_text())
    cases: dict[str, list[ElementTree.Element]] = {}
    for case in ElementTree.parse(pytester.path / "junit.xml").iter("testcase"):
        cases.setdefault(f"{case.get('classname')}.py::{case.get('name')}", []).append(case)
    lines = (pytester.path / "annotations").read_text().splitlines()
    return Run(
        result,
        report["run"]["id"],
        shown(result),
        {cell["nodeid"]: cell for cell in report["cells"]},
        cases,
        {nodeid: rest for nodeid, *rest in map(json.loads, lines)},
    )


@pytest.fixture
def memory_group(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Offer the test that the kernel is to kill a memory cgroup, where one can be made."""
    group = Path("/sys/fs/cgroup/memory") / f"cudabatch-test-{os.getpid()}"
    try:
        group.mkdir()
    except OSError:
        yield
        return
    (group / "memory.limit_in_bytes").write_text(str(64 << 20))
    monkeypatch.setenv("TORTURE_CGROUP", str(group))
    yield
    group.rmdir()


def shown(result: pytest.RunResult) -> dict[str, list[str]]:
    """Return the words of pytest's short summary, by node id."""
    words: dict[str, list[str]] = {}
    summary = result.stdout.str().rpartition("short test summary info")[2]
    for line in summary.splitlines():
        if match := re.match(r"([A-Z]+)(?:\([^)]*\)|\[[^]]*\])* (\S+\.py::\S+)", line):
            words.setdefault(match[2], []).append(match[1])
    return words


VERDICTS = {"signalled": "crashed", "exited": "crashed", "timed-out": "hung"}
CODES = {"signalled": "crash", "exited": "silent-exit", "timed-out": "hang"}
WORDS = {"p": "passed", "f": "failed", "s": "skipped"}
JUNIT = {
    "FAILED": "failure",
    "SUBFAILED": "failure",
    "ERROR": "error",
    "SKIPPED": "skipped",
    "XFAIL": "skipped",
}


def expected(row: Row) -> dict[str, Any]:
    """What a run has to tell of ``row``."""
    came_to = WORDS[max(row.outcomes.replace("-", "p"), key="psf".find)]
    words = row.shown.split()
    return {
        # An expected failure is one: pytest's view is beside it.
        "verdict": VERDICTS.get(row.end, "failed" if row.shown == "XFAIL" else came_to),
        "phase": row.phase,
        "signal": row.signal,
        "exit_code": row.exit_code,
        "finding": CODES.get(row.end),
        "pytest": {"XFAIL": "xfailed", "XPASS": "xpassed"}.get(row.shown, came_to),
        "words": sorted(word for word in words if word != "SKIPPED"),
        "junit": sorted(JUNIT[word] for word in words if word in JUNIT),
        "text": [],
        "annotated": bool({"FAILED", "ERROR"} & set(words)),
    }


def account(run: Run, row: Row) -> dict[str, Any]:
    """What ``run`` told of ``row``; of its text, the lines that are missing."""
    cell = run.cells[row.nodeid]
    # pytest writes a second element for a test that failed and then ended badly in teardown.
    elements = [element for case in run.junit[row.nodeid] for element in case]
    text = "".join(text for element in elements for text in element.itertext())
    return {
        **{name: cell[name] for name in ("verdict", "phase", "signal", "exit_code", "pytest")},
        "finding": cell["finding"] and cell["finding"]["code"],
        "words": sorted(run.words.get(row.nodeid, ())),  # -rA shows skips by their place, not by their id
        "junit": sorted(element.tag for element in elements if element.tag in JUNIT.values()),
        "text": [line for line in row.text.splitlines() if line not in text],
        "annotated": row.nodeid in run.annotations,
    }


@pytest.mark.parametrize("workers", WORKERS)
def test_every_row_gets_its_true_account(
    pytester: pytest.Pytester, memory_group: None, workers: tuple[str, ...]
) -> None:
    write_torture(pytester.path, ROWS_OF_A_RUN)
    run = run_in(pytester, *workers)
    assert {row.name: account(run, row) for row in ROWS_OF_A_RUN} == {
        row.name: expected(row) for row in ROWS_OF_A_RUN
    }
    good = [f"test_good.py::test_good[{number}]" for number in range(len(ROWS_OF_A_RUN) + 1)]
    assert {run.cells[nodeid]["verdict"] for nodeid in good} == {"passed"}
    assert [run.words[nodeid] for nodeid in good] == [["PASSED"]] * len(good)
    assert len(run.cells) == len(ROWS_OF_A_RUN) + len(good)
    assert run.result.ret == pytest.ExitCode.TESTS_FAILED
    assert processes_with("CUDABATCH_RUN_ID", run.id) == []
    for name, kept in [
        ("keeps_its_properties", {"number": "12", "path": "/a/b", "cudabatch_verdict": "passed"}),
        ("keeps_properties_of_setup_and_segfaults", {"early": "kept", "cudabatch_verdict": "crashed"}),
    ]:
        (row,) = [row for row in ROWS if row.name == name]
        assert kept.items() <= properties(run.junit[row.nodeid][0]).items()


def properties(case: ElementTree.Element) -> dict[str | None, str | None]:
    return {each.get("name"): each.get("value") for each in case.iter("property")}


@pytest.mark.parametrize(
    ("name", "status", "workers"),
    [
        ("exits_pytest", 9, ()),
        ("exits_pytest_in_setup", 2, ()),
        ("exits_pytest", 2, ("-n2",)),  # xdist has one status for sessions that a worker stopped
    ],
)
def test_pytest_exit_ends_the_session_as_it_does_without_cells(
    pytester: pytest.Pytester, name: str, status: int, workers: tuple[str, ...]
) -> None:
    """But the test that called it fails, in its phase, with the reason."""
    (row,) = [row for row in ROWS if row.name == name]
    write_torture(pytester.path, (row,))
    run = run_in(pytester, *workers)
    assert run.result.ret == status
    assert run.cells[row.nodeid]["verdict"] == "failed"
    assert run.annotations[row.nodeid][-1] == "_pytest.outcomes.Exit: enough"
    if not workers:
        assert run.cells.keys() == {"test_good.py::test_good[0]", row.nodeid}
        run.result.stdout.fnmatch_lines(["*!!! _pytest.outcomes.Exit: enough !!!*"])


@pytest.mark.parametrize(
    "workers", [pytest.param((), id="one process"), pytest.param(("-n2",), marks=pytest.mark.nightly)]
)
def test_a_module_that_ends_its_process_when_imported_costs_only_itself(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, workers: tuple[str, ...]
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    write_torture(pytester.path, ())
    pytester.makepyfile(
        test_segfaults="import ctypes\nprint('loading')\nctypes.memset(0, 1, 1)\n",
        test_leaves="import os\nos._exit(0)\n",
        test_hangs="import threading\nthreading.Event().wait()\n",
        test_raises="raise LookupError('of the module')\n",
    )
    (pytester.path / "annotations").touch()
    run = run_in(pytester, "--cuda-timeout=2", *workers)
    assert run.result.ret == pytest.ExitCode.TESTS_FAILED
    assert run.words["test_good.py::test_good[0]"] == ["PASSED"]
    run.result.stdout.fnmatch_lines_random(
        [
            "ERROR test_segfaults.py - Failed: killed by SIGSEGV (Segmentation fault) when it was imported*",
            "ERROR test_leaves.py - Failed: exited with status 0 when it was imported",
            "ERROR test_hangs.py - Failed: still running after 2 s when it was imported*",
            "ERROR test_raises.py - LookupError: of the module",
            "loading",
            '  File "*/test_segfaults.py", line 3 in <module>',
            '  File "*/test_hangs.py", line 2 in <module>',
        ]
    )
