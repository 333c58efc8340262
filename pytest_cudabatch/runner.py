"""Runs cells: an item goes to its zygote, its outcome and evidence become a verdict and pytest's reports."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_cudabatch import devices
from pytest_cudabatch.cells import Batch, BatchCell, Environment, Json, Outcome, RunDirectory, Stop, Zygote
from pytest_cudabatch.errors import CellError
from pytest_cudabatch.finding_codes import Code
from pytest_cudabatch.interposer import Evidence, EvidenceFile, environment
from pytest_cudabatch.pairings import KnownIssue, load_known_issues
from pytest_cudabatch.plugin import is_cell, lacks_pairing
from pytest_cudabatch.run import RUN_ID_VARIABLE, RUN_VARIABLE, Run, marker_problem
from pytest_cudabatch.scheduling import affinity, without_group, worker_number
from pytest_cudabatch.sharing import BATCH_LIMIT, SharedProcesses
from pytest_cudabatch.suite import SUITE_DIRECTORY, Suite, SuiteCell
from pytest_cudabatch.temporary import TEMPORARY_VARIABLE
from pytest_cudabatch.trial import Trial, verdict_of
from pytest_cudabatch.verdicts import CellIdentity, Verdict
from pytest_cudabatch.zygote_plugin import identity_of

__all__ = ["BUDGET_SPENT", "REFUSED_ATTRIBUTE", "SPOILED", "CellRunner"]

SLOTS = 16
"""Slots of an evidence file. Cells take them in turn, so that a leftover process of one cell, killed late,
cannot write into the evidence of the next."""

NATIVE_STACKS_VARIABLE = "CUDABATCH_NATIVE_STACKS"
"""Set to 0 in the user's environment, it keeps debuggers from being attached."""

KEEP_ALL = ("-o", f"tmp_path_retention_count={sys.maxsize}")
"""The controller keeps or removes the temporary directories of a run as a whole."""

BUDGET_SPENT = "--cuda-budget was spent before this cell"

REFUSED_ATTRIBUTE = "cudabatch_refused"
"""The attribute of the only report of a cell that did not run; it says why, also from an xdist worker."""

SPOILED = "cudabatch_spoiled"
"""The user property of a cell that spoiled the process that it shared; it says how."""


class CellHost:
    """One zygote with its evidence file."""

    def __init__(self, plain: Environment, directory: Path, run: Run) -> None:
        """Add evidence and the run to the environment ``plain``; keep their files in ``directory``."""
        self.evidence_path = directory / f"{plain.name}.evidence"
        slots = SLOTS + (BATCH_LIMIT if run.isolation == "pairing" else 0)
        self.evidence = EvidenceFile.create(self.evidence_path, slots=slots)
        run_file = directory / f"{plain.name}.run.json"
        run.write(run_file)
        variables = {
            **plain.variables,
            **environment(self.evidence_path),
            RUN_VARIABLE: str(run_file),
            RUN_ID_VARIABLE: run.id,
        }
        self.zygote = Zygote(replace(plain, variables=variables))
        self._cells = 0
        self._start_failure: CellError | None = None

    def run(self, nodeid: str, deadline: float, injections: str | None = None) -> tuple[Outcome, Evidence]:
        """Run one cell; return how it ended and what the interposer saw of it.

        ``injections`` are rules beside those of the run, which come first.
        """
        self._start()
        slot, payload = self._take_slot()
        payload["injections"] = injections
        outcome = self.zygote.run(nodeid, deadline=deadline, payload=payload)
        return outcome, self.evidence.read(slot)

    def run_batch(self, deadlines: Mapping[str, float]) -> tuple[Batch, dict[str, Evidence]]:
        """Run cells, by node id and deadline, in one process; return what came of it, and their evidence."""
        self._start()
        slots = {nodeid: self._take_slot() for nodeid in deadlines}
        batch = self.zygote.run_batch(
            [BatchCell(nodeid, slots[nodeid][1], deadline) for nodeid, deadline in deadlines.items()]
        )
        return batch, {nodeid: self.evidence.read(slots[nodeid][0]) for nodeid in batch.outcomes}

    def _take_slot(self) -> tuple[int, dict[str, Json]]:
        """Clear the next slot; return its number and the payload that tells a cell of it."""
        slot = self._cells % self.evidence.slots
        self._cells += 1
        self.evidence.clear(slot)
        return slot, {"slot": slot, "evidence": str(self.evidence_path)}

    def _start(self) -> None:
        """Start the zygote, once: one that cannot start costs the run its time only for the first cell."""
        if self._start_failure is not None:
            raise CellError("its zygote did not start; the first cell's report says why")
        try:
            self.zygote.start()
        except CellError as error:
            self._start_failure = error
            raise

    def close(self) -> None:
        """End the zygote and let the evidence go."""
        self.zygote.close()
        self.evidence.close()


class CellRunner:
    """The zygotes of one pytest session, each started when its first cell or its list of cells is wanted."""

    def __init__(self, config: pytest.Config, run: Run) -> None:
        self._config = config
        self._run = run
        self._directory: RunDirectory | None = None
        self._hosts: dict[str, CellHost] = {}
        self._project_files: tuple[str, ...] = ()
        self._limits: dict[str, float] = {}
        self._stop: Stop | None = None
        self._worker = worker_number(config)
        self._shared = SharedProcesses(self._run_company, self._company_of)
        self._known_issues: Sequence[KnownIssue] = ()
        if run.excuses_known_issues:
            own = Path(run.matrix_directory) if run.matrix_directory else None
            self._known_issues = load_known_issues(own)

    def suite_node(self, session: pytest.Session) -> pytest.Collector:
        """Return the suite's node; collecting it starts the suite's zygote."""
        return Suite.over(session, self.suite, self._run.suite_ids)

    def includes(self, item: pytest.Item) -> bool:
        """Whether the run asks for this item; of the suite's, its zygote has left the others out."""
        own = is_cell(item) and not lacks_pairing(item) and self._run.includes(item)
        return own or isinstance(item, SuiteCell)

    def suite(self) -> Zygote:
        """Return the suite's zygote, started: it knows every cell of the suite."""
        zygote = self._suite_host().zygote
        zygote.start()
        return zygote

    def expect(self, items: Sequence[pytest.Item]) -> None:
        """Say which cells will run: the project's zygote collects no other files; some share a process."""
        own = [item for item in items if not isinstance(item, SuiteCell)]
        self._project_files = tuple(dict.fromkeys(str(item.path) for item in own))
        # Whoever replaces a worker that died may have got the cell that killed it.
        replaces = self._worker is not None and self._worker[0] >= self._worker[1]
        if self._run.isolation == "pairing" and not replaces:
            self._shared.expect(items)

    def _suite_host(self) -> CellHost:
        return self._host("suite", self._suite_environment)

    def _project_host(self) -> CellHost:
        return self._host("project", self._project_environment)

    def _host(self, name: str, plain: Callable[[], Environment]) -> CellHost:
        if name not in self._hosts:
            self._directory = self._directory or RunDirectory()
            self._hosts[name] = CellHost(plain(), self._directory.path, self._run)
        return self._hosts[name]

    def _places(self) -> dict[str, str]:
        """Return the variables that say where cells keep files, and which GPUs an xdist worker has."""
        places = {TEMPORARY_VARIABLE: self._run.temporary} if self._run.temporary else {}
        if self._worker is None or self._run.platform != "device":
            return places
        return {**places, devices.VARIABLE: ",".join(devices.share(self._run.devices, *self._worker))}

    def _suite_environment(self) -> Environment:
        """Keep everything out that is meant for the project's tests."""
        files = sorted(SUITE_DIRECTORY.glob("test_*.py"))
        return Environment(
            name="suite",
            arguments=(
                *("-c", str(SUITE_DIRECTORY / "pytest.ini"), "--rootdir", str(SUITE_DIRECTORY)),
                *("--noconftest", "--import-mode=importlib"),
                *("-p", "no:cacheprovider", "-p", "pytest_cudabatch.plugin"),
                *KEEP_ALL,
                *map(str, files),
            ),
            variables={
                "PYTEST_ADDOPTS": "",
                "PYTEST_PLUGINS": "",
                "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
                **self._places(),
            },
            directory=self._config.invocation_params.dir,
            native_stacks=_wants_native_stacks(),
        )

    def _project_environment(self) -> Environment:
        """Let the project's own configuration, conftest and plugins apply."""
        config = self._config
        start = config.invocation_params.dir
        return Environment(
            name="project",
            arguments=(
                *self._run.zygote_arguments,
                *KEEP_ALL,
                *("-o", "addopts=", "--rootdir", str(config.rootpath)),
                *(("-c", str(config.inipath)) if config.inipath else ()),
                *self._project_files,
            ),
            variables={"PYTEST_ADDOPTS": "", **self._places()},
            directory=start,
            imports_directory=str(start) in sys.path or "" in sys.path,
            native_stacks=_wants_native_stacks(),
        )

    def limit(self, item: pytest.Item, seconds: float | None) -> bool:
        """Let ``item`` take at most ``seconds``; the smaller of this and ``--cuda-timeout`` wins."""
        if seconds:
            self._limits[item.nodeid] = seconds
        return True

    def run_item(self, item: pytest.Item) -> bool:
        """Run one cell and report it to this session, phase by phase; True: it is done."""
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        reports = self._reports(item) if self._fits() else [_budget_spent(item)]
        for report in reports:
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        if self._stop is not None:
            _end_session(item.session, self._stop)
        return True

    def _fits(self) -> bool:
        """Whether the budget lets another cell start."""
        return self._run.ends is None or time.time() < self._run.ends

    def _reports(self, item: pytest.Item) -> list[pytest.TestReport]:
        problem = marker_problem(item)
        if problem is None:
            try:
                return self._run_in_zygote(item)
            except Exception as error:  # noqa: BLE001 - a fault of ours costs this cell, not the run
                known = isinstance(error, CellError)
                problem = str(error) if known else f"{type(error).__name__}: {error} (please report this)"
        return [_machinery_failure(item, problem)]

    def _run_in_zygote(self, item: pytest.Item) -> list[pytest.TestReport]:
        """Run a cell, in company where it may; anything but a pass in company is asked again alone."""
        shared = self._shared.answer(item)
        if shared is not None:
            reports = self._trial(item, *shared)
            if verdict_of(reports) in (Verdict.PASSED, Verdict.SKIPPED):
                self._forward_warnings(item, shared[0])
                return reports
        outcome, evidence = self._host_of(item).run(self._zygote_id(item), self._deadline(item))
        self._stop = outcome.stop
        self._forward_warnings(item, outcome)
        reports = self._trial(item, outcome, evidence)
        spoiled = self._shared.spoiled_by(item)
        if spoiled is not None:
            for report in reports:
                report.user_properties.append((SPOILED, spoiled))
        return reports

    def _run_company(self, items: Sequence[pytest.Item]) -> tuple[Batch, Mapping[str, Evidence]]:
        """Run cells of one pairing in one process."""
        names = {self._zygote_id(item): item for item in items}
        batch, evidence = self._host_of(items[0]).run_batch(
            {name: self._deadline(item) for name, item in names.items()}
        )
        batch = replace(
            batch,
            outcomes={names[name].nodeid: outcome for name, outcome in batch.outcomes.items()},
            spoiled_by=names[batch.spoiled_by].nodeid if batch.spoiled_by else None,
        )
        return batch, {names[name].nodeid: seen for name, seen in evidence.items()}

    def _company_of(self, item: pytest.Item) -> tuple[object, ...] | None:
        """Return what the cells that may share a process with ``item`` have in common; None: it is alone."""
        names = self._identity(item)
        near = affinity(item.nodeid, self._run.distribution)
        # What a run injects into every cell, such as a refused look-up, would reach the first of them only.
        if names["alone"] or names["pairing"] is None or near is None or self._run.injections is not None:
            return None
        return isinstance(item, SuiteCell), names["implementation"], names["pairing"], near

    def _host_of(self, item: pytest.Item) -> CellHost:
        return self._suite_host() if isinstance(item, SuiteCell) else self._project_host()

    def _zygote_id(self, item: pytest.Item) -> str:
        if isinstance(item, SuiteCell):
            return item.collected.nodeid
        return without_group(item.nodeid, self._run.distribution)

    def _identity(self, item: pytest.Item) -> Mapping[str, Any]:
        if isinstance(item, SuiteCell):
            return item.identity
        return identity_of(item, without_group(item.nodeid, self._run.distribution))

    def _deadline(self, item: pytest.Item) -> float:
        return min(self._run.timeout, self._limits.get(item.nodeid, self._run.timeout))

    def _trial(self, item: pytest.Item, outcome: Outcome, evidence: Evidence) -> list[pytest.TestReport]:
        """Judge what a cell's process did and return its reports."""
        names, host, zygote_id = self._identity(item), self._host_of(item), self._zygote_id(item)
        trial = Trial(
            identity=CellIdentity(
                nodeid=item.nodeid,
                case=names["case"],
                kind=names["kind"],
                implementation=names["implementation"],
                pairing=self._run.pairing(names["pairing"]),
                declared=Code(names["finding"]) if names["finding"] else None,
            ),
            outcome=outcome,
            evidence=evidence,
            rerun=lambda injections: (
                host.run(zygote_id, self._deadline(item), injections) if self._fits() else None
            ),
        )
        collected = host.zygote.item(zygote_id)
        return trial.reports(item, collected, self._known_issues)

    def _forward_warnings(self, item: pytest.Item, outcome: Outcome) -> None:
        for warning in outcome.warnings:
            item.config.hook.pytest_warning_recorded.call_historic(
                kwargs={
                    "warning_message": warning.warning_message(),
                    "when": warning.when,
                    "nodeid": item.nodeid,
                    "location": warning.location,
                }
            )

    def close(self) -> None:
        """End all zygotes and remove the run's files."""
        for host in self._hosts.values():
            host.close()
        self._hosts.clear()
        if self._directory is not None:
            self._directory.close()


def _wants_native_stacks() -> bool:
    return os.environ.get(NATIVE_STACKS_VARIABLE) != "0"


def _end_session(session: pytest.Session, stop: Stop) -> None:
    """End the session as pytest.exit in the cell demands."""
    if hasattr(session.config, "workerinput"):
        # An exit in the midst of an item is a crash to xdist; this ends all workers after theirs.
        session.shouldstop = stop.reason
    else:
        pytest.exit(stop.reason, returncode=stop.returncode)


def _budget_spent(item: pytest.Item) -> pytest.TestReport:
    """Report a cell that was not started because the budget was spent."""
    return _refusal(item, BUDGET_SPENT, lambda: pytest.skip(BUDGET_SPENT))


def _machinery_failure(item: pytest.Item, problem: str) -> pytest.TestReport:
    """Report that the cell could not be run at all; its own code is not to blame."""
    text = f"the cell could not be run: {problem}"
    return _refusal(item, text.partition("\n")[0], lambda: pytest.fail(text, pytrace=False))


def _refusal(item: pytest.Item, reason: str, end: Callable[[], None]) -> pytest.TestReport:
    call = pytest.CallInfo.from_call(end, when="setup")
    report: pytest.TestReport = item.ihook.pytest_runtest_makereport(item=item, call=call)
    setattr(report, REFUSED_ATTRIBUTE, reason)
    return report
