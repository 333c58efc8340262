"""What the interposer costs: with it and without it, interleaved, as ratios from one run.

Three figures: ``python -c "import numpy"``, as a cell's process and as one of ``cudabatch record``, in CPU
time, which a busy machine disturbs least; one recorded call, by batch calls of no descriptors, for which
nothing else is done; batches of 1,000 descriptors until they have arrived. Each side of a pair is a process
of its own, and which goes first is drawn.

Exit status 1 where a median is above its limit: 1.05 for the import, 1.5 µs for a recorded call, 1.02 for the
batches on a device (on the simulated one the CPU copies: no limit).
"""

from __future__ import annotations

import argparse
import ctypes
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pytest_cudabatch import native
from pytest_cudabatch.copies import BoundPlan, Direction, Mixture, make_plan
from pytest_cudabatch.cuda import Runtime
from pytest_cudabatch.implementations import load
from pytest_cudabatch.interposer import EvidenceFile, environment

IMPORT_LIMIT, CALL_LIMIT_NS, BATCH_LIMIT = 1.05, 1500.0, 1.02
CALLS, BATCHES, DESCRIPTORS = 20_000, 200, 1_000
SECONDS = 120


@dataclass(frozen=True)
class Pair:
    """One figure of both sides, in nanoseconds."""

    recorded: float
    plain: float

    @property
    def ratio(self) -> float:
        """How much longer it takes with the interposer."""
        return self.recorded / self.plain


def import_time(variables: dict[str, str]) -> float:
    """Return the CPU time of a process that imports numpy; that of the system for it is in it."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-c", "import numpy"], env={**os.environ, **variables}, check=True, timeout=SECONDS
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1e9 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def worker_time(what: str, runtime: Path, driver: Path | None, variables: dict[str, str]) -> float:
    """Return what a worker process measured."""
    command = [sys.executable, __file__, "--work", what, "--runtime", str(runtime)]
    command += ["--driver", str(driver)] if driver else []
    done = subprocess.run(
        command,
        env={**os.environ, **variables},
        check=True,
        timeout=SECONDS,
        stdout=subprocess.PIPE,
        text=True,
    )
    return float(done.stdout)


def work(what: str, runtime: Runtime) -> float:
    """Do what a worker is for and return its nanoseconds: of one call, or the median batch's."""
    return time_of_calls(runtime) if what == "calls" else time_of_batches(runtime)


def time_of_calls(runtime: Runtime) -> float:
    """Call with no descriptors: the driver refuses that at once, after both calls have been recorded."""
    library = ctypes.CDLL(str(runtime.path))
    function = library.cudaMemcpyBatchAsync
    function.argtypes = [ctypes.c_void_p] * runtime.abi.parameters
    arguments = [None] * (runtime.abi.parameters - 1) + [runtime.stream_create()]
    function(*arguments)
    start = time.perf_counter_ns()
    for _ in range(CALLS):
        function(*arguments)
    return (time.perf_counter_ns() - start) / CALLS


def time_of_batches(runtime: Runtime) -> float:
    """Copy batches by the reference, each until it has arrived."""
    bound = load("reference").open()
    stream = runtime.stream_create()
    times = []
    with BoundPlan(make_plan(Direction.H2D, Mixture.MIXED, DESCRIPTORS, seed=1), runtime) as plan:
        plan.fill()
        for _ in range(BATCHES):
            start = time.perf_counter_ns()
            code = bound.copy(plan, stream)
            runtime.stream_synchronize(stream)
            times.append(time.perf_counter_ns() - start)
            assert code == 0, f"CUDA error {code}"
    return statistics.median(times)


def measured(
    pairs: int, measure: Callable[[dict[str, str]], float], *, record: bool = True
) -> tuple[list[Pair], int]:
    """Measure interleaved pairs; also return how many calls were recorded in the last.

    With ``record`` a process takes a slot by itself, and what it executes is watched besides.
    """
    found = []
    calls = 0
    for number in range(-1, pairs):  # the first warms the machine
        with tempfile.TemporaryDirectory() as name:
            path = Path(name) / "evidence"
            with EvidenceFile.create(path, self_claimed=record) as evidence_file:
                sides = {"recorded": environment(path), "plain": {}}
                order = random.sample(sorted(sides), 2)
                took = {side: measure(sides[side]) for side in order}
                calls = sum(
                    site.calls for process in evidence_file.processes() for site in process.evidence.sites
                )
        if number >= 0:
            found.append(Pair(**took))
    return found, calls


def report(title: str, pairs: list[Pair], limit: float | None) -> bool:
    """Print the median ratio with its quartiles; say whether it is within the limit."""
    low, median, high = statistics.quantiles([pair.ratio for pair in pairs], n=4)
    plain = statistics.median(pair.plain for pair in pairs) / 1e3
    bound = f", limit {limit}" if limit else ""
    print(f"{title}: {median:.3f} (quartiles {low:.3f} to {high:.3f}{bound}); without: {plain:.1f} µs")
    return limit is None or median <= limit


def report_calls(pairs: list[Pair], calls: int) -> bool:
    """Print what one recorded call adds; say whether that is within the limit."""
    per_call = calls / (CALLS + 1)
    added = [(pair.recorded - pair.plain) / per_call for pair in pairs]
    low, median, high = statistics.quantiles(added, n=4)
    print(
        f"a recorded call adds {median:.0f} ns (quartiles {low:.0f} to {high:.0f}, limit "
        f"{CALL_LIMIT_NS:.0f}); {per_call:.1f} are recorded of each"
    )
    return median <= CALL_LIMIT_NS


def options_of(arguments: list[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--platform", choices=("simulated", "device"), default="simulated")
    parser.add_argument("--runtime", type=Path, help="the libcudart; on a device this is needed")
    parser.add_argument("--driver", type=Path, help="another libcuda than the host's")
    parser.add_argument("--pairs", type=int, default=15, help="interleaved pairs of a figure (default: 15)")
    parser.add_argument("--work", choices=("calls", "batches"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.platform == "simulated" and options.runtime is None:
        options.runtime = native.library("simcuda/runtime-13.0/libcudart.so.13")
        options.driver = native.library("simcuda/driver-13.0/libcuda.so.1")
    if options.runtime is None:
        parser.error("--platform=device needs --runtime")
    return options


def main(arguments: list[str] | None = None) -> int:
    """Print the figures; see the module's docstring."""
    options = options_of(arguments)
    if options.work:
        print(work(options.work, Runtime.open(options.runtime, driver=options.driver)))
        return 0

    def worker(what: str) -> Callable[[dict[str, str]], float]:
        return lambda variables: worker_time(what, options.runtime, options.driver, variables)

    print(f"interleaved pairs: {options.pairs}; {options.platform}, {options.runtime.name}")
    within = True
    for record, where in ((False, "in a cell"), (True, "under cudabatch record")):
        pairs, _ = measured(options.pairs, import_time, record=record)
        within &= report(f'python -c "import numpy" {where}', pairs, IMPORT_LIMIT)
    within &= report_calls(*measured(options.pairs, worker("calls")))
    batches, _ = measured(options.pairs, worker("batches"))
    limit = BATCH_LIMIT if options.platform == "device" else None
    within &= report(f"batches of {DESCRIPTORS:,} descriptors", batches, limit)
    return int(not within)


if __name__ == "__main__":
    sys.exit(main())
