"""``--cuda-isolation=none``: cells in pytest's own process, for debuggers and coverage; no crash is survived.

The suite's cases are then items of this session, so that the project's conftest and settings apply to them.
There is evidence only where this process was itself started under the interposer; else every path is unknown,
and no verdict is a pass.
"""

from __future__ import annotations

import importlib
import os
import sys
import time
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import NoReturn

import pytest

from pytest_cudabatch.cell_evidence import EVIDENCE, PAIRINGS
from pytest_cudabatch.cells import PAYLOAD, End, Outcome
from pytest_cudabatch.errors import CellError
from pytest_cudabatch.finding_codes import Code
from pytest_cudabatch.interposer import Evidence, EvidenceFile
from pytest_cudabatch.plugin import is_cell, lacks_pairing
from pytest_cudabatch.run import Run
from pytest_cudabatch.suite import SUITE_DIRECTORY, SUITE_NAME, is_asked_for, is_ignored, suite_id
from pytest_cudabatch.trial import Trial
from pytest_cudabatch.verdicts import CellIdentity
from pytest_cudabatch.zygote_plugin import ZygotePlugin, identity_of

__all__ = ["InProcessRunner"]

NO_EVIDENCE = "this process runs without the interposer, as it may under --cuda-isolation=none"
NOTHING = Evidence(False, 0, (), (), (), (), ())


class InProcessSuite(pytest.Collector):
    """The suite's files as modules of this session, under the ids that they always have."""

    def collect(self) -> Iterator[pytest.Module]:
        """Yield a module for each file."""
        for path in sorted(SUITE_DIRECTORY.glob("test_*.py")):
            if not is_ignored(self.config, suite_id(path.name)):
                yield SuiteModule.of(self, path)


class SuiteModule(pytest.Module):
    """A file of the suite; what a test in it is does not depend on the project's settings."""

    @classmethod
    def of(cls, parent: InProcessSuite, path: Path) -> SuiteModule:
        """Make the node of a file, over the module of that name in the package."""
        node: SuiteModule = cls.from_parent(parent, path=path, nodeid=suite_id(path.name))
        # pytest itself would put the file's directory at the front of sys.path.
        module = importlib.import_module(f"pytest_cudabatch.{SUITE_DIRECTORY.name}.{path.stem}")
        node.obj = module
        marks = getattr(module, "pytestmark", [])
        for mark in marks if isinstance(marks, list) else [marks]:
            node.add_marker(mark)
        return node

    def istestfunction(self, obj: object, name: str) -> bool:
        """Whether ``obj`` is a test, by the suite's own rule."""
        return callable(obj) and name.startswith("test_")


class InProcessRunner:
    """Lets pytest run the cells itself, and adds what makes a cell of each: evidence, verdict and record."""

    def __init__(self, config: pytest.Config, run: Run) -> None:
        self._run = run
        self._evidence = _own_evidence_file()
        self._started = 0.0
        self._reports: list[pytest.TestReport] = []
        # Behind what is installed, as in a zygote.
        sys.path.extend(entry for entry in run.search_path if entry not in sys.path)
        config.pluginmanager.register(_Hooks(self), "cudabatch-in-process")

    def suite_node(self, session: pytest.Session) -> pytest.Collector:
        """Return the suite's node."""
        node: pytest.Collector = InProcessSuite.from_parent(session, name=SUITE_NAME, nodeid=SUITE_NAME)
        return node

    def expect(self, items: Sequence[pytest.Item]) -> None:
        """Refuse what one process cannot run: it loads one runtime and one driver."""
        pairings = sorted({str(identity_of(item)["pairing"]) for item in items} - {"None"})
        if len(pairings) > 1:
            raise pytest.UsageError(
                f"--cuda-isolation=none has one process, which can load one pairing, not {len(pairings)}: "
                f"select one, such as {pairings[0]}, by --cuda-select or by a cell's id"
            )

    def includes(self, item: pytest.Item) -> bool:
        """Whether the run asks for this item."""
        if not is_cell(item) or lacks_pairing(item) or not self._run.includes(item):
            return False
        of_suite = item.nodeid.startswith(f"{SUITE_NAME}/")
        return not of_suite or is_asked_for(item.nodeid, self._run.suite_ids)

    def run_item(self, item: pytest.Item) -> None:
        """Leave the item to pytest: None lets its own protocol run."""
        del item

    def limit(self, item: pytest.Item, seconds: float | None) -> None:
        """Leave the limit to pytest-timeout: nobody else watches this process."""
        del item, seconds

    def close(self) -> None:
        """Let the evidence go."""
        if self._evidence is not None:
            self._evidence.close()

    def begin(self, item: pytest.Item) -> None:
        """Give the item a slot where there is evidence, before its fixtures."""
        self._started, self._reports = time.time(), []
        item.config.stash[PAIRINGS] = self._run.pairings
        if self._evidence is None:
            item.config.stash[EVIDENCE] = _WithoutEvidence()  # type: ignore[misc] # it refuses to be used
            return
        slot = _free_slot(self._evidence)
        self._evidence.clear(slot)
        item.config.stash[PAYLOAD] = {"slot": slot, "evidence": str(self._evidence.path)}
        ZygotePlugin().pytest_runtest_setup(item)

    def end(self, item: pytest.Item, report: pytest.TestReport) -> None:
        """Note a report; with the last one, judge the cell and put it there."""
        self._reports.append(report)
        if report.when != "teardown":
            return
        names = identity_of(item)
        trial = Trial(
            identity=CellIdentity(
                nodeid=item.nodeid,
                case=names["case"],
                kind=names["kind"],
                implementation=names["implementation"],
                pairing=self._run.pairing(names["pairing"]),
                declared=Code(names["finding"]) if names["finding"] else None,
            ),
            outcome=self._outcome(item),
            rerun=_nowhere_to_rerun,
            evidence=NOTHING if self._evidence is None else item.config.stash[EVIDENCE].read(),
        )
        trial.settle(self._reports)

    def _outcome(self, item: pytest.Item) -> Outcome:
        return Outcome(
            nodeid=item.nodeid,
            end=End.FINISHED,
            phase="teardown",
            signal=None,
            exit_code=None,
            violation=None,
            reports=(),
            warnings=(),
            expected_failure=None,
            captured=(),
            stacks="",
            started=self._started,
            seconds=time.time() - self._started,
            survivors=0,
            pid=os.getpid(),
        )


class _Hooks:
    """What pytest tells the runner of."""

    def __init__(self, runner: InProcessRunner) -> None:
        self._runner = runner
        self._process = ZygotePlugin()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        self._runner.begin(item)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        self._process.pytest_runtest_makereport(item, call)
        report = yield
        self._runner.end(item, report)
        return report


class _WithoutEvidence:
    """Stands for a cell's evidence where there is none: a test that needs it is skipped."""

    def declare_allocations(self, allocations: object) -> None:
        """Nobody asks."""

    def request(self, injections: object) -> NoReturn:
        del injections
        pytest.skip(NO_EVIDENCE)

    def read(self) -> NoReturn:
        pytest.skip(NO_EVIDENCE)


def _nowhere_to_rerun(injections: str) -> NoReturn:
    raise CellError(f"no other process can run this cell with {injections}: --cuda-isolation=none")


def _own_evidence_file() -> EvidenceFile | None:
    """Open the file that this process records into; None where it was started without the interposer."""
    path = os.environ.get("CUDABATCH_EVIDENCE")
    if not path or "libcudabatch_interposer" not in os.environ.get("LD_AUDIT", ""):
        return None
    return EvidenceFile.open(Path(path))


def _free_slot(file: EvidenceFile) -> int:
    """Return the last slot that no other process has."""
    return next(slot for slot in reversed(range(file.slots)) if file.owner(slot) in (None, os.getpid()))
