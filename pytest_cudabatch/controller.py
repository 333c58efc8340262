"""The plugin's part in a session with ``--cuda-matrix``: the controller's, and an xdist worker's.

The controller decides what the run is (platform, pairings, implementations) once and hands it to its
workers. Whoever runs tests, the only process or each worker, has zygotes of its own.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Generator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_cudabatch import devices
from pytest_cudabatch.cells import ImportGuard, Watchman
from pytest_cudabatch.command_line import inherited_arguments
from pytest_cudabatch.discovery import find_pairings
from pytest_cudabatch.errors import UsageError
from pytest_cudabatch.in_process import InProcessRunner
from pytest_cudabatch.ledger import Ledger
from pytest_cudabatch.plugin import RUN
from pytest_cudabatch.progress import Progress
from pytest_cudabatch.reports import HostFacts, Journal, write_report
from pytest_cudabatch.run import RUN_ID_VARIABLE, TIERS, Run
from pytest_cudabatch.runner import CellRunner
from pytest_cudabatch.scheduling import BY_PAIRING, pairing_scheduler
from pytest_cudabatch.screen import Screen
from pytest_cudabatch.settings import Settings
from pytest_cudabatch.suite import is_asked_for, named_in_suite
from pytest_cudabatch.temporary import CellTemporaries
from pytest_cudabatch.trial import CELL_ATTRIBUTE
from pytest_cudabatch.verdicts import Cell

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController

__all__ = ["Controller", "Worker", "take_part"]

WORKER_INPUT = "cudabatch"


def take_part(config: pytest.Config) -> None:
    """Join the session as its controller or as one of its workers.

    Raises pytest.UsageError (exit status 4) for bad input, one line for each problem.
    """
    worker_input: dict[str, Any] | None = getattr(config, "workerinput", None)
    if worker_input is not None:
        run = Run.from_json(json.loads(worker_input[WORKER_INPUT]))
        part: Worker = Worker(config, run)
    else:
        try:
            part = Controller.for_session(config)
        except UsageError as error:
            raise pytest.UsageError(*error.problems) from None
    config.stash[RUN] = part.run
    config.args[:] = part.run.project_arguments
    # An import error in one file must not keep the cells of all others from running.
    config.option.continue_on_collection_errors = True
    config.pluginmanager.register(part, "cudabatch-run")
    config.pluginmanager.register(ImportGuard(part.run.timeout), "cudabatch-import-guard")


class Worker:
    """Collects and runs cells; all that an xdist worker does."""

    def __init__(self, config: pytest.Config, run: Run) -> None:
        self.config = config
        self.run = run
        self.runner = InProcessRunner(config, run) if run.isolation == "none" else CellRunner(config, run)

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(
        self, collector: pytest.Collector
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        """Add the suite beside whatever the arguments name."""
        report = yield
        if isinstance(collector, pytest.Session) and self.run.suite:
            report.result.append(self.runner.suite_node(collector))
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Deselect what is not a cell."""
        others = [item for item in items if not self.runner.includes(item)]
        if others:
            config.hook.pytest_deselected(items=others)
            items[:] = [item for item in items if item not in set(others)]

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Remember which of the project's files have cells to run."""
        self.runner.expect(session.items)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> bool | None:
        """Run every item, all of which are cells, as the isolation has it."""
        return self.runner.run_item(item)

    @pytest.hookimpl(optionalhook=True)
    def pytest_timeout_set_timer(self, item: pytest.Item, settings: Any) -> bool | None:
        """Take pytest-timeout's limit over for the cell's own deadline, which can end a native hang."""
        return self.runner.limit(item, settings.timeout)

    @pytest.hookimpl(optionalhook=True)
    def pytest_timeout_cancel_timer(self, item: pytest.Item) -> bool | None:
        """Nothing to cancel where no timer was set."""
        del item
        return None if self.run.isolation == "none" else True

    def pytest_unconfigure(self) -> None:
        """End the zygotes."""
        self.runner.close()


class Controller(Worker):
    """Decides what the run is, and hears and reports every cell's verdict."""

    def __init__(self, config: pytest.Config, run: Run, settings: Settings, host: HostFacts) -> None:
        self.temporaries = None if run.isolation == "none" else CellTemporaries(config)
        if self.temporaries is not None:
            run = replace(run, temporary=str(self.temporaries.path))
        super().__init__(config, run)
        self.settings = settings
        self.host = host
        self.ledger = Ledger()
        self.shortcomings: list[str] = []
        self.not_found: list[str] = []
        self._watchman: Watchman | None = None
        screen = Screen(config, run, settings, host, self.ledger, self.not_found, self.shortcomings)
        config.pluginmanager.register(screen, "cudabatch-screen")
        if run.isolation != "none":
            config.pluginmanager.register(Progress(config, self.ledger), "cudabatch-progress")

    @classmethod
    def for_session(cls, config: pytest.Config) -> Controller:
        """Check the settings, find the pairings, and split the arguments between project and suite.

        Raises UsageError with every problem found.
        """
        settings = Settings.from_config(config)
        platform, pairings, host = find_pairings(settings)
        if settings.schedule.adversarial and platform != "simulated":
            raise UsageError(
                f"--cuda-schedule: {settings.schedule} is for simulated CUDA, not for {platform}"
            )
        config.hook.pytest_cudabatch_modify_pairings(config=config, pairings=pairings)
        start, root = config.invocation_params.dir, config.rootpath
        named = {argument: named_in_suite(argument, start, root) for argument in config.args}
        suite_ids = tuple(name for name in named.values() if name is not None)
        by_id = bool(suite_ids) or any("::" in argument for argument in config.args)
        own = () if settings.suite_only else tuple(a for a in config.args if named[a] is None)
        run = Run(
            id=Run.new_id(),
            started=Run.now(),
            platform=platform,
            pairings=tuple(pairings),
            implementations=settings.implementations,
            # A cell that is named by its id runs, however large it is.
            tier=TIERS[-1] if by_id else settings.tier,
            selection=settings.selection,
            injections=settings.injections,
            timeout=settings.timeout,
            ends=None if settings.budget is None else time.time() + settings.budget,
            excuses_known_issues=not settings.known_issues_fail,
            matrix_directory=str(settings.matrix_directory) if settings.matrix_directory else None,
            suite=settings.suite and (bool(suite_ids) or not by_id),
            suite_ids=suite_ids or None,
            project_arguments=own,
            zygote_arguments=inherited_arguments(config),
            isolation=settings.isolation,
            devices=tuple(devices.visible(os.environ.get(devices.VARIABLE), len(host.gpus))),
            distribution=str(config.getoption("dist", "no")),
            search_path=tuple(entry for entry in sys.path if entry),
            schedule=str(settings.schedule),
        )
        return cls(config, run, settings, host)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_setupnodes(self) -> None:
        """Mark whatever the workers will be, and have it watched, before the first of them is started."""
        os.environ[RUN_ID_VARIABLE] = self.run.id
        self._watchman = Watchman(RUN_ID_VARIABLE, self.run.id)

    def pytest_unconfigure(self) -> None:
        """End the zygotes and the watch over workers, and give the cells' temporary directory up."""
        super().pytest_unconfigure()
        if self.temporaries is not None:
            self.temporaries.close()
        if self._watchman is not None:
            self._watchman.close()
            os.environ.pop(RUN_ID_VARIABLE, None)

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: WorkerController) -> None:
        """Hand the run to an xdist worker, so that all collect the same cells."""
        node.workerinput[WORKER_INPUT] = json.dumps(self.run.to_json())

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        """Open the journals, so that they tell of everything from here on."""
        if self.config.option.collectonly:
            return
        self.ledger.journals = [Journal(path) for path in self.settings.reports if path.suffix == ".jsonl"]
        for journal in self.ledger.journals:
            journal.run(self._described_run, self.host.to_json())

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> Any:
        """Keep the cells of a pairing together where they share processes."""
        if self.run.isolation == "pairing" and self.run.distribution in BY_PAIRING:
            return pairing_scheduler(config, log, [pairing.id for pairing in self.run.pairings])
        return None

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Remember that a cell is about to run, here or in an xdist worker."""
        self.ledger.start(nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the cell that its last report carries, also from an xdist worker."""
        data = getattr(report, CELL_ATTRIBUTE, None)
        cell = None if data is None else Cell.from_json(data, self.run.pairing(data["pairing"]))
        self.ledger.hear(report, cell)
        if cell is not None:
            self.config.hook.pytest_cudabatch_cell_finished(config=self.config, cell=cell)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Keep what could not be collected for the report."""
        if report.failed:
            self.ledger.error(f"{report.nodeid or 'session'}: {last_line(report.longreprtext)}")

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Deselect what is not a cell; refuse an id of the suite that names none."""
        super().pytest_collection_modifyitems(config, items)
        missing = self._missing([item.nodeid for item in items])
        if missing:
            raise pytest.UsageError(*missing)

    def _missing(self, collected: Sequence[str]) -> list[str]:
        """Say which ids that were asked for name no cell of the suite."""
        return [
            f"not found in the suite: {name}"
            for name in self.run.suite_ids or ()
            if not any(is_asked_for(nodeid, [name]) for nodeid in collected)
        ]

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Remember what will run."""
        super().pytest_collection_finish(session)
        self.ledger.plan(self.run.planned(item.nodeid for item in session.items))

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: WorkerController, ids: Sequence[str]) -> None:
        """Remember what the workers will run; an id that names nothing is refused here, for all of them."""
        del node
        self.ledger.plan(self.run.planned(ids))
        self.not_found[:] = self._missing(ids)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the report files, and hold the run against what was required of it."""
        if self.config.option.collectonly:
            return
        for path in self.settings.reports:
            if path.suffix == ".json":
                self._write_report(path)
        self.shortcomings.extend(journal.problem for journal in self.ledger.journals if journal.problem)
        self._judge_run(session)
        for journal in self.ledger.journals:
            journal.finished(int(session.exitstatus))

    def _write_report(self, path: Path) -> None:
        try:
            write_report(path, self._described_run, self.host, self.ledger.cells, list(self.ledger.errors()))
        except OSError as error:
            self.shortcomings.append(f"--cuda-report: cannot write {path}: {error.strerror}")

    @property
    def _described_run(self) -> dict[str, Any]:
        """The report's ``run`` object."""
        return {
            "id": self.run.id,
            "started": self.run.started,
            "isolation": self.run.isolation,
            "schedule": "adversarial" if self.settings.schedule.adversarial else "fair",
            "seed": self.settings.schedule.seed,
            "selection": " ".join(part for part in (self.run.tier, self.run.selection) if part),
        }

    def _judge_run(self, session: pytest.Session) -> None:
        """Give the exit status of a run that pytest itself would call good."""
        if self.not_found:
            session.exitstatus = pytest.ExitCode.USAGE_ERROR
        if session.exitstatus != pytest.ExitCode.OK:
            return
        strict_on = self.run.platform if self.settings.strict else None
        self.shortcomings.extend(self.ledger.shortcomings(self.settings.required, strict_on))
        if self.shortcomings:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        elif self.ledger.nothing_ran and self.run.isolation != "none":
            session.exitstatus = pytest.ExitCode.NO_TESTS_COLLECTED


def last_line(text: str) -> str:
    """Return the last line with something on it: in a traceback, the error itself."""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "unknown error")
