"""Drives shipped builds of sglang-kernel and vLLM through the suite; says what differs from what is known.

On a GPU host, from a bundle, and without a GPU, where torch and both packages are installed:

    python bench/shipped.py --platform device --out DIR --pytest BUNDLE/run.sh
    python bench/shipped.py --platform simulated --out DIR

Four runs, one report each in DIR: the gate on one pairing for either package, a second runtime loaded first,
and the batch of vLLM issue 49276 at its full size. Exit status 1 where a cell came to something else than
KNOWN says; the reports are written in any case.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

PACKAGES = ("sgl-kernel", "vllm")
ONE_PAIRING = "runtime>=13,<13.1 on driver>=13,<13.1"
"""Of the runtimes that torch's wheels bring; what a runtime's minor version changes, other cells show."""
TWO_MAJORS = "gate runtime>=12.8 on driver>=13,<13.1"
FINE = ("passed", "skipped")
DEVICE = ("device",)
FAULT = ("driver-fault", "crash")
"""The fault of large mixed batches: a call that does not return, or the loss of the context (719), which no
control can lay to the driver."""


@dataclass(frozen=True)
class Task:
    """One run of pytest: the name of its report, the packages, what is selected and which cases."""

    name: str
    packages: Sequence[str]
    select: str
    cases: str | None = None

    def command(self, pytest: Sequence[str], platform: str, workers: int, out: Path) -> list[str]:
        """Return the command line that runs it and writes its report into ``out``."""
        return [
            *pytest,
            *("-c", os.devnull, "--rootdir", str(out)),  # a checkout's own settings are for its own tests
            "--cuda-matrix",
            "--cuda-suite-only",
            f"--cuda-platform={platform}",
            *(f"--cuda-implementation={package}" for package in self.packages),
            f"--cuda-select={self.select}",
            f"--cuda-report={out / self.name}.json",
            *(("-k", self.cases) if self.cases else ()),
            *("-n", str(workers), "-p", "no:cacheprovider", "-q", "--tb=line"),
        ]


TASKS = (
    *(
        Task(f"gate-{package}", [package], f"gate {ONE_PAIRING}", "not test_two_runtimes")
        for package in PACKAGES
    ),
    Task("two-runtimes", PACKAGES, TWO_MAJORS, "test_the_other_major"),
    Task("reported-batch", PACKAGES, f"nightly {ONE_PAIRING}", "test_the_reported_batch"),
)


@dataclass(frozen=True)
class Known:
    """What cells of a package come to where they do not pass: verdict, then any of these findings.

    ``may`` says that they may pass as well: a fault of the driver comes and goes.
    """

    package: str
    cases: str
    verdict: str
    findings: Sequence[str]
    arity: tuple[int | None, int | None] = (None, None)
    platforms: Sequence[str] = ("device", "simulated")
    pairings: str = "cu13.*"
    may: bool = False

    def covers(self, cell: dict[str, Any]) -> bool:
        """Whether this says something of ``cell``."""
        return (
            cell["implementation"] == self.package
            and cell["platform"] in self.platforms
            and fnmatchcase(cell["pairing"], self.pairings)
            and fnmatchcase(cell["case"].removeprefix("cudabatch/"), self.cases)
        )

    def agrees(self, cell: dict[str, Any]) -> bool:
        """Whether ``cell`` came to it."""
        if self.may and cell["verdict"] == "passed":
            return True
        finding = cell["finding"] or {}
        return (
            cell["verdict"] == self.verdict
            and finding.get("code") in self.findings
            and (self.arity == (None, None) or (finding.get("given"), finding.get("taken")) == self.arity)
        )

    def __str__(self) -> str:
        return f"{self.verdict}, {' or '.join(self.findings)}{' (or passed)' if self.may else ''}"


KNOWN = (
    Known("sgl-kernel", "test_streams.py::test_special_streams[[]null]", "failed", ["legacy-stream"]),
    Known("sgl-kernel", "test_fallback.py::test_the_fallback_does*[[]null-*", "failed", ["legacy-stream"]),
    Known("sgl-kernel", "test_fallback.py::test_a_handled_error*[[]801]", "failed", ["error-left-behind"]),
    Known(
        "sgl-kernel",
        "test_two_runtimes.py::test_the_other_major*[[]global]",
        "crashed",
        ["split-owner", "wrong-abi"],
        (8, 9),
    ),
    Known("vllm", "test_empty.py::test_entries_without_bytes*", "failed", ["zero-size"]),
    Known("vllm", "test_empty.py::test_nothing_to_copy[[]3]", "failed", ["zero-size"]),
    Known("vllm", "test_fallback.py::test_the_fallback_does*[[]non-blocking*", "failed", ["no-driver-guard"]),
    Known("vllm", "test_fallback.py::test_the_fallback_does*[[]per-thread*", "failed", ["no-driver-guard"]),
    Known("vllm", "test_fallback.py::test_a_handled_error*[[]801]", "failed", ["no-driver-guard"]),
    Known("vllm", "test_fallback.py::test_an_error_of_a_single_copy*", "failed", ["no-driver-guard"]),
    Known("vllm", "test_contexts.py::test_a_thread_*", "failed", ["wrong-context"], platforms=DEVICE),
    Known("vllm", "test_large.py::test_the_reported_batch[[]h2d]", "crashed", FAULT[:1], platforms=DEVICE),
    Known("vllm", "test_large.py::*mixed*", "crashed", FAULT, platforms=DEVICE, may=True),
    Known("vllm", "test_large.py::test_repeated*", "crashed", FAULT, platforms=DEVICE, may=True),
    Known("vllm", "test_bytes.py::*h2d-mixed-*", "crashed", FAULT, platforms=DEVICE, may=True),
)
"""What is known of sglang-kernel 0.4.4 and vLLM 0.26.0; every other cell passes, or is skipped."""


def differences(cells: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield a line for each cell that came to something else than KNOWN says."""
    for cell in cells:
        known = next((known for known in KNOWN if known.covers(cell)), None)
        if known.agrees(cell) if known else cell["verdict"] in FINE:
            continue
        finding = cell["finding"] or {}
        yield (
            f"{cell['nodeid']}: expected {known or 'passed or skipped'}; got {cell['verdict']}"
            f"{', ' + finding['code'] if finding else ''}: {finding.get('summary', '')}"
        )


def run(task: Task, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Run one task and return its cells. Raises SystemExit where it wrote no report."""
    report: Path = arguments.out / f"{task.name}.json"
    started = time.perf_counter()
    command = task.command(arguments.pytest, arguments.platform, arguments.workers, arguments.out)
    log = arguments.out / f"{task.name}.log"
    with log.open("w", encoding="utf-8") as output:
        done = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, check=False)
    if not report.is_file():
        raise SystemExit(f"{task.name}: no report; exit status {done.returncode}\n{log.read_text()[-3000:]}")
    cells: list[dict[str, Any]] = json.loads(report.read_text(encoding="utf-8"))["cells"]
    counts = {
        verdict: sum(cell["verdict"] == verdict for cell in cells)
        for verdict in (*FINE, "failed", "crashed", "hung")
    }
    told = ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)
    print(f"{task.name}: {told} in {time.perf_counter() - started:.0f} s", flush=True)
    return cells


def main() -> int:
    """Run all tasks, and say what differs; see the module's docstring."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--pytest",
        nargs="+",
        default=[sys.executable, "-m", "pytest"],
        help="the pytest to run (a bundle's run.sh)",
    )
    parser.add_argument("--platform", choices=["device", "simulated"], required=True)
    parser.add_argument("--workers", type=int, default=6, help="processes that run cells (default: 6)")
    parser.add_argument("--out", type=Path, required=True, help="a directory for reports and logs")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    cells = [cell for task in TASKS for cell in run(task, arguments)]
    found = list(differences(cells))
    for line in found:
        print(f"DIFFERS {line}")
    print(f"{len(cells)} cells, {len(found)} differ from what is known")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
