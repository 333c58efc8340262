"""What a run says of itself on the terminal, before its cells and after them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from pytest_cudabatch.ledger import Ledger
from pytest_cudabatch.reports import HostFacts
from pytest_cudabatch.run import Run
from pytest_cudabatch.scheduling import without_group
from pytest_cudabatch.settings import DEFAULT_TIMEOUT, Settings
from pytest_cudabatch.suite import SUITE_NAME

__all__ = ["Screen"]

ISOLATION_NOTES = {
    "cell": "",
    "pairing": "; a process per pairing",
    "none": "; NO ISOLATION: a crash or a hang ends this run",
}

IN_PROCESS_ONLY = {"usepdb": "--pdb", "trace": "--trace", "setupshow": "--setup-show"}
"""Options that need pytest's own process: a cell has no terminal."""


@dataclass(frozen=True, eq=False)  # older releases of pytest hash their plugins
class Screen:
    """The header and the summary; a plugin of the controller.

    ``not_found`` and ``shortcomings`` are lines that the controller adds to while the run ends.
    """

    config: pytest.Config
    run: Run
    settings: Settings
    host: HostFacts
    ledger: Ledger
    not_found: list[str]
    shortcomings: list[str]

    def pytest_report_header(self) -> list[str]:
        """Say what the run is about to do, and what of the command line cannot work."""
        run = self.run
        runtimes = {pairing.runtime.version for pairing in run.pairings}
        drivers = {pairing.driver.version for pairing in run.pairings} - {None}
        where = {"simulated": "simulated CUDA", "no-driver": "real runtimes without a driver"}.get(
            run.platform, f"{run.platform}: {', '.join(self.host.gpus)}"
        )
        if self.settings.schedule.adversarial:
            where += f", schedule {run.schedule}"
        return [
            f"cuda matrix: {where}; pairings: {len(run.pairings)} (runtimes: {len(runtimes)}, "
            f"drivers: {len(drivers)}); {', '.join(run.implementations)}{ISOLATION_NOTES[run.isolation]}",
            *self._useless_options(),
        ]

    def _useless_options(self) -> Iterator[str]:
        for name, option in IN_PROCESS_ONLY.items():
            if self.run.isolation != "none" and self.config.getoption(name, False):
                yield f"cuda matrix: {option} does nothing in cells; add --cuda-isolation=none"

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Draw the matrix and explain its failures, where any cell ran."""
        for problem in self.not_found:
            terminalreporter.line(f"ERROR: {problem}", red=True)
        for shortcoming in self.shortcomings:
            terminalreporter.line(f"FAILED {shortcoming}", red=True)
        for title, lines in self._lists().items():
            if lines:
                terminalreporter.section(title)
                for line in lines:
                    terminalreporter.line(line)
        if not self.ledger.cells:
            return
        from pytest_cudabatch.reports.terminal import Summary  # noqa: PLC0415 - when there is something to draw

        terminalreporter.section("cuda matrix")
        summary = Summary(
            cells=self.ledger.cells,
            command=self._rerun_command(),
            shown=self._as_argument,
            width=self.config.get_terminal_writer().fullwidth,
            colour=terminalreporter.hasmarkup,
            unicode=(sys.stdout.encoding or "").lower().startswith("utf"),
        )
        terminalreporter.write(summary.text())

    def _lists(self) -> dict[str, list[str]]:
        """Return what deserves a list of its own, by title."""
        return {
            "spoiled the process that they shared; the others ran again": [
                f"{nodeid}: {how}" for nodeid, how in self.ledger.spoilers.items()
            ],
            "not started: --cuda-budget was spent": self.ledger.unstarted,
            "skipped everywhere": [
                f"{case}: {reason}" for case, reason in self.ledger.skipped_everywhere().items()
            ],
        }

    def _rerun_command(self) -> list[str]:
        """Return the command line that, with a cell's id after it, runs that cell again."""
        settings = self.settings
        command = ["pytest", "--cuda-matrix"]
        if settings.platform != "auto":
            command.append(f"--cuda-platform={settings.platform}")
        if settings.matrix_directory is not None:
            command.append(f"--cuda-matrix-dir={settings.matrix_directory}")
        if settings.implementations != ("reference",):
            command.extend(f"--cuda-implementation={name}" for name in settings.implementations)
        command.extend(f"--cuda-runtime={path}" for path in settings.runtimes)
        if settings.injections is not None:
            command.append(f"--cuda-inject={settings.injections}")
        if settings.schedule.adversarial:
            command.append(f"--cuda-schedule={settings.schedule}")
        if settings.timeout != DEFAULT_TIMEOUT:
            command.append(f"--cuda-timeout={settings.timeout:g}")
        if settings.known_issues_fail:
            command.append("--cuda-known-issues=fail")
        return command

    def _as_argument(self, nodeid: str) -> str:
        """Return an id as an argument from where pytest was started, which need not be rootdir."""
        if nodeid.startswith(f"{SUITE_NAME}/"):
            return nodeid
        nodeid = without_group(nodeid, self.run.distribution)
        file, separator, rest = nodeid.partition("::")
        path = os.path.relpath(self.config.rootpath / file, self.config.invocation_params.dir)
        return f"{path}{separator}{rest}"
