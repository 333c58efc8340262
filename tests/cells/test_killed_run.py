"""What is left of a run whose processes are killed: nothing, and the next run removes its directory."""

from __future__ import annotations

import contextlib
import fcntl
import os
import random
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_cudabatch.cells import RunDirectory
from pytest_cudabatch.errors import CellError

from .projects import PLENTY, Watched, processes_with, write_project, zygote_of

MARK = "CUDABATCH_TEST_RUN"

CELLS = """
import ctypes, os, subprocess, sys
import pytest
pytestmark = pytest.mark.cuda_cell

@pytest.fixture
def daemon():
    subprocess.Popen(["setsid", "sh", "-c", "sleep 3600 & exec sleep 3600"])

@pytest.mark.parametrize("number", range(200))
def test_passes(number, daemon): pass

@pytest.mark.parametrize("number", range(200))
def test_crashes(number, daemon): os.abort()

@pytest.mark.parametrize("number", range(200))
def test_hangs(number, daemon): ctypes.PyDLL(None).pause()
"""

CONFTEST = """
import random
def pytest_collection_modifyitems(items):
    random.Random(len(items)).shuffle(items)
"""


def left_after(seconds: float, find: Callable[[], list[int]]) -> list[int]:
    """Return what is still found ``seconds`` from now; look again as long as there is something."""
    limit = time.monotonic() + seconds
    while (found := find()) and (left := limit - time.monotonic()) > 0:
        Watched(found).alive_after(min(left, 0.1))
    return found


def kill_after(seconds: float, project: Path, temporary: Path, *options: str) -> tuple[bool, list[int]]:
    """Start a run, kill its controller; return whether the run was still on, and what it left after 2 s."""
    mark = uuid.uuid4().hex
    controller = subprocess.Popen(
        [
            *(sys.executable, "-m", "pytest", "--cuda-matrix", "--cuda-no-suite", "-q", *options),
            *("--cuda-platform=simulated", "--cuda-select=runtime==12.9 on driver==13.0"),
        ],
        cwd=project,
        env={**os.environ, MARK: mark, "TMPDIR": str(temporary)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    with controller:
        with contextlib.suppress(subprocess.TimeoutExpired):
            controller.wait(seconds)
        alive = controller.poll() is None
        controller.kill()
        controller.wait(PLENTY)
    return alive, left_after(2.0, lambda: processes_with(MARK, mark))


@pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["one process", "two workers"])
@pytest.mark.parametrize("count", [4, pytest.param(40, marks=pytest.mark.nightly)])
def test_a_controller_killed_at_any_moment_leaves_no_process(
    tmp_path: Path, workers: tuple[str, ...], count: int
) -> None:
    project = write_project(tmp_path / "project", {"test_a.py": CELLS, "conftest.py": CONFTEST})
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    draw = random.Random(count)
    for _ in range(count):
        moment = draw.uniform(0.1, 4.0)
        assert kill_after(moment, project, temporary, *workers) == (True, []), f"killed after {moment} s"
    # The documented rest: the directories of the last run, at most one for each of its processes.
    assert len(list(temporary.glob("cudabatch-run-*"))) <= max(1, len(workers) * 2)


def test_a_killed_zygotes_daemons_end_too(tmp_path: Path) -> None:
    """Its child dies with it; what that child started in other sessions is found by its environment."""
    source = """
        import os, signal, subprocess, ctypes
        def test_one():
            subprocess.Popen(["setsid", "sleep", "3600"])
            subprocess.Popen(["sleep", "3600"])
            os.kill(os.getppid(), signal.SIGKILL)
            ctypes.CDLL(None).pause()
    """
    mark = uuid.uuid4().hex
    project = write_project(tmp_path, {"test_a.py": source})
    with zygote_of(project, variables={MARK: mark}) as zygote:
        with pytest.raises(CellError, match="it was killed by SIGKILL"):
            zygote.run("test_a.py::test_one", deadline=PLENTY)
        assert left_after(2.0, lambda: processes_with(MARK, mark)) == []


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_directories_of_dead_runs_are_removed_and_no_others(temporary: Path) -> None:
    alive = RunDirectory()
    dead = temporary / "cudabatch-run-dead"
    in_the_making = temporary / "cudabatch-run-new"
    elsewhere = temporary / "elsewhere"
    for directory in (dead, in_the_making, elsewhere):
        directory.mkdir()
    (dead / "owner").touch()
    (dead / "suite.evidence").write_bytes(b"x")
    (in_the_making / "owner.new").touch()
    (elsewhere / "owner").touch()
    (temporary / "cudabatch-run-link").symlink_to(elsewhere)
    (temporary / "cudabatch-run-file").touch()
    RunDirectory().close()
    assert sorted(path.name for path in temporary.iterdir()) == sorted(
        [alive.path.name, "cudabatch-run-file", "cudabatch-run-link", "cudabatch-run-new", "elsewhere"]
    )
    assert (elsewhere / "owner").exists()
    alive.close()
    alive.close()
    assert not alive.path.exists()


def test_a_directory_is_its_owners_from_the_first_moment(temporary: Path) -> None:
    directory = RunDirectory()
    with (directory.path / "owner").open("w") as owner, pytest.raises(BlockingIOError):
        fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
    directory.close()
