"""``--cuda-isolation``: what shares a process, and that every verdict is that of a process of its own."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from cells.table import DEADLINE, ROWS, SOURCES

from pytest_cudabatch.implementations import BUILTIN
from pytest_cudabatch.interposer import EvidenceFile, environment
from pytest_cudabatch.reports import read_records

SIMULATED = ("--cuda-matrix", "--cuda-platform=simulated")
ONE = "--cuda-select=runtime==12.9 on driver==13.0"
WORKERS = pytest.mark.parametrize(
    "workers",
    [(), pytest.param(("-n2",), marks=pytest.mark.nightly)],
    ids=["one process", "two workers"],
)

COMPANY = """
import atexit, os, signal, subprocess, threading, time
import pytest

def tell_process():
    print("process", os.getpid())

def test_first(cuda_pairing):
    tell_process()

def test_segfaults(cuda_pairing):
    os.kill(os.getpid(), signal.SIGSEGV)

def test_fails(cuda_pairing):
    assert cuda_pairing is None

def test_skips(cuda_pairing):
    pytest.skip("not today")

@pytest.mark.xfail(reason="known")
def test_xfails(cuda_pairing):
    assert cuda_pairing is None

def test_hangs(cuda_pairing):
    threading.Event().wait()

def test_leaves_silently(cuda_pairing):
    os._exit(0)

@pytest.fixture(scope="session")
def of_session():
    tell_process()
    yield
    print("session ends")

def test_middle(cuda_pairing, of_session):
    tell_process()

@pytest.mark.cuda_cell(alone=True)
def test_alone(cuda_pairing):
    tell_process()

def test_last(cuda_pairing, of_session):
    tell_process()
"""
SPOILERS = {
    "segfaults": "it was killed by signal 11",
    "hangs": "it did not go on within its deadline",
    "leaves_silently": "it left with status 0",
}


def run(
    pytester: pytest.Pytester, isolation: str, *arguments: str
) -> tuple[pytest.RunResult, dict[str, tuple[Any, ...]]]:
    """Run, and return each cell's verdict, path, cause and pytest's own count of it."""
    name = f"{isolation}.json"
    result = pytester.runpytest_subprocess(
        *SIMULATED, f"--cuda-isolation={isolation}", f"--cuda-report={name}", *arguments
    )
    cells = json.loads((pytester.path / name).read_text())["cells"]
    return result, {
        cell["nodeid"]: (
            cell["verdict"],
            cell["path"],
            cell["finding"] and cell["finding"]["code"],
            cell["pytest"],
            cell["phase"],
            cell["signal"],
        )
        for cell in cells
    }


@WORKERS
def test_verdicts_in_company_are_those_of_processes_of_their_own(
    pytester: pytest.Pytester, workers: Sequence[str]
) -> None:
    pytester.makepyfile(COMPANY)
    options = (ONE, "--cuda-no-suite", "--cuda-timeout=2", *workers)
    _, expected = run(pytester, "cell", *options)
    result, found = run(pytester, "pairing", *options, "-rA")
    assert found == expected
    assert len(found) == 10
    result.assert_outcomes(passed=4, failed=4, skipped=1, xfailed=1)
    spoiled = [line for line in result.outlines if "]: it " in line]
    assert {line.partition("::test_")[2].replace("[cu12.9-d13.0]: ", ": ") for line in spoiled} == {
        f"{name}: {how}" for name, how in SPOILERS.items()
    }


def processes(result: pytest.RunResult) -> dict[str, set[str]]:
    """Which processes wrote of themselves while each test ran."""
    found: dict[str, set[str]] = {}
    name = ""
    for line in result.outlines:
        if line.startswith("____") and "test_" in line:
            name = line.partition("test_")[2].partition("[")[0]
        if line.startswith("process "):
            found.setdefault(name, set()).add(line)
    return found


def test_who_shares_a_process_and_who_does_not(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(COMPANY)
    result, _ = run(
        pytester, "pairing", ONE, "--cuda-no-suite", "-rA", "-k", "first or middle or last or alone"
    )
    together = processes(result)
    assert {name: len(own) for name, own in together.items()} == dict.fromkeys(
        ["first", "middle", "alone", "last"], 1
    )
    assert together["first"] == together["middle"] == together["last"]
    assert together["alone"] != together["first"]
    # A session's fixtures end with each cell, as in a process of its own.
    assert result.outlines.count("session ends") == 2


def test_each_pairing_has_processes_of_its_own(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(COMPANY)
    select = "--cuda-select=runtime==12.9 on driver>=13.0,<=13.2"
    result, _ = run(pytester, "pairing", select, "--cuda-no-suite", "-rA", "-k", "first or last")
    numbers = [line for line in result.outlines if line.startswith("process ")]
    assert len(numbers) == 6  # the session's fixture tells too
    assert len(set(numbers)) == 2


def test_a_crash_at_exit_is_found_though_nobody_is_named(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import atexit, os

        def test_first(cuda_pairing):
            pass

        def test_registers_a_crash(cuda_pairing):
            atexit.register(os.abort)

        def test_last(cuda_pairing):
            pass
        """
    )
    _, expected = run(pytester, "cell", ONE, "--cuda-no-suite")
    _, found = run(pytester, "pairing", ONE, "--cuda-no-suite")
    assert found == expected
    assert sorted(found.values())[0][:1] == ("crashed",)


def test_a_cell_that_passes_and_loses_the_context_is_named(pytester: pytest.Pytester) -> None:
    """The next cell's failure is not its own: it passes in another process."""
    pytester.makepyfile(
        """
        from pytest_cudabatch.errors import CudaError

        LOST = []

        def test_poisons_and_passes(cuda_pairing, record_property):
            record_property("cudabatch_lost_context", "an illegal address")
            LOST.append("context")

        def test_next(cuda_pairing):
            assert LOST == []
        """
    )
    result, found = run(pytester, "pairing", ONE, "--cuda-no-suite")
    assert [verdict for verdict, *_ in found.values()] == ["crashed", "passed"]
    result.stdout.fnmatch_lines(
        ["*::test_poisons_and_passes?cu12.9-d13.0?: its context was lost: an illegal *"]
    )


def test_a_fault_injected_into_every_cell_reaches_every_cell(pytester: pytest.Pytester) -> None:
    options = (
        ONE,
        "--cuda-suite-only",
        "--cuda-inject=lookup=500",
        "-k",
        "test_callee or test_the_announced",
    )
    _, expected = run(pytester, "cell", *options)
    _, found = run(pytester, "pairing", *options)
    assert found == expected
    assert {path for _, path, *_ in found.values()} == {"fallback"}


@pytest.mark.parametrize("name", ["reference", "specimen:leaves-last-error"])
def test_a_part_of_the_suite(pytester: pytest.Pytester, name: str) -> None:
    options = (ONE, "--cuda-suite-only", f"--cuda-implementation={name}", "-k", "fallback or abi or streams")
    _, expected = run(pytester, "cell", *options)
    _, found = run(pytester, "pairing", *options)
    assert found == expected
    assert len(found) > 10


@pytest.mark.nightly
@pytest.mark.parametrize("name", sorted(BUILTIN))
def test_the_whole_suite(pytester: pytest.Pytester, name: str) -> None:
    options = ("--cuda-suite-only", f"--cuda-implementation={name}", "-n2")
    _, expected = run(pytester, "cell", *options)
    _, found = run(pytester, "pairing", *options)
    assert found == expected
    assert len(found) > 1500


def test_an_unknown_isolation_is_refused(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest_subprocess(*SIMULATED, "--cuda-isolation=thread")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert result.errlines[0] == "ERROR: --cuda-isolation: 'thread' is none of cell, pairing, none"


IN_PROCESS = """
import os

def test_copies(batch_copy, copy_plan, cuda_stream):
    batch_copy.check(copy_plan("h2d", "mixed", 8), cuda_stream)

def test_looks_at_evidence(cuda_pairing, cuda_evidence):
    assert cuda_evidence().recorded

def test_is_the_same_process_as_its_neighbours(cuda_pairing):
    print("process", os.getpid(), "of", os.getppid())
"""


def test_without_isolation_cells_run_in_pytests_own_process(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(IN_PROCESS)
    result, found = run(pytester, "none", ONE, "--cuda-no-suite", "-rA")
    assert result.ret == 0
    result.assert_outcomes(passed=2, skipped=1)
    result.stdout.fnmatch_lines(
        [
            "cuda matrix: *; NO ISOLATION: a crash or a hang ends this run",
            f"process * of {os.getpid()}",
            "SKIPPED*this process runs without the interposer*",
        ]
    )
    assert [(verdict, path) for verdict, path, *_ in found.values()] == [
        ("unavailable", "unknown"),
        ("skipped", "unknown"),
        ("passed", "unknown"),
    ]


def test_without_isolation_there_is_evidence_under_the_interposer(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makepyfile(IN_PROCESS)
    path = pytester.path / "own.evidence"
    with EvidenceFile.create(path):
        for name, value in environment(path).items():
            monkeypatch.setenv(name, value)
        result, found = run(pytester, "none", ONE, "--cuda-no-suite")
    assert result.ret == 0
    assert [(verdict, path) for verdict, path, *_ in found.values()] == [
        ("passed", "batch"),
        ("passed", "none"),
        ("passed", "none"),
    ]


def test_without_isolation_the_suite_keeps_its_ids(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\npython_functions = check_*\npython_files = check_*.py\n")
    _, expected = run(pytester, "cell", ONE, "cudabatch/test_streams.py")
    result, found = run(pytester, "none", ONE, "cudabatch/test_streams.py")
    assert sorted(found) == sorted(expected)
    assert result.ret == 0


def test_without_isolation_a_crash_ends_the_run(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        "import os, signal\n\ndef test_it(cuda_pairing):\n    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    result = pytester.runpytest_subprocess(
        *SIMULATED, ONE, "--cuda-isolation=none", "--cuda-no-suite", "--cuda-report=run.jsonl"
    )
    assert result.ret == -signal.SIGKILL
    (record,) = read_records(pytester.path / "run.jsonl")
    assert list(record.unfinished.values()) == ["running"]


@pytest.mark.parametrize(
    ("option", "problem"),
    [
        ("-n1", "--cuda-isolation=none runs cells in pytest's own process; it does not go with -n"),
        (
            "--cuda-select=runtime==12.9",
            "--cuda-isolation=none has one process, which can load one pairing, not 6: "
            "select one, such as cu12.9-d12.4, by --cuda-select or by a cell's id",
        ),
    ],
)
def test_what_one_process_cannot_do_is_refused(pytester: pytest.Pytester, option: str, problem: str) -> None:
    pytester.makepyfile(IN_PROCESS)
    result = pytester.runpytest_subprocess(*SIMULATED, "--cuda-isolation=none", "--cuda-no-suite", option)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert f"ERROR: {problem}" in result.errlines


def write_torture(directory: Path) -> int:
    """Write the torture table's tests as cells of a pairing among healthy ones; return their number."""
    rows = [row for row in ROWS if not row.stops]
    for name, source in SOURCES.items():
        stopping = [row.name for row in ROWS if row.stops and f"def test_{row.name}(" in source]
        hidden = "".join(f"del test_{row}\n" for row in stopping)
        (directory / name).write_text(
            f"{source}\npytestmark = pytest.mark.usefixtures('cuda_pairing')\n{hidden}"
        )
    (directory / "test_good.py").write_text(
        f"""
import pytest

@pytest.mark.parametrize("number", range({len(rows) + 1}))
def test_good(cuda_pairing, number):
    pass
"""
    )
    (directory / "conftest.py").write_text(
        f"""
import pytest

HANGING = {[f"test_{row.name}" for row in rows if row.hangs]!r}

@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    good = [item for item in items if item.originalname == "test_good"]
    bad = [item for item in items if item.originalname != "test_good"]
    for item in bad:
        if item.originalname in HANGING:
            item.add_marker(pytest.mark.timeout({DEADLINE}))
    items[:] = [item for pair in zip(good, bad) for item in pair]
    items += [*good[len(bad):], *bad[len(good):]]
"""
    )
    return len(rows)


@pytest.mark.nightly
@pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["one process", "two workers"])
def test_the_torture_table_in_company(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, workers: Sequence[str]
) -> None:
    """tests/cells holds the table against single cells and whole runs; in company it is the same."""
    monkeypatch.setenv("CUDABATCH_NATIVE_STACKS", "0")
    number = write_torture(pytester.path)
    options = (ONE, "--cuda-no-suite", "-Wdefault", *workers)
    _, expected = run(pytester, "cell", *options)
    _, found = run(pytester, "pairing", *options)
    assert len(found) > 2 * number
    assert {name: account for name, account in found.items() if account != expected[name]} == {}
