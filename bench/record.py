"""What recording costs a program: nothing but evidence, and with a trace.

Runs the same program (batches of ``--descriptors`` copies on simulated CUDA, each synchronised) alone and
under ``cudabatch record``, with ``--trace`` and without, interleaved in an order drawn for each round; the
program times its calls itself. Prints medians in microseconds a batch, and the median of the rounds' ratios.
The same for ``python -c "import numpy"``, start to end. Exit status 1 where a trace costs more than
``--limit`` microseconds a batch.
"""

from __future__ import annotations

import argparse
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from pytest_cudabatch import native
from pytest_cudabatch.interposer import EvidenceFile, environment

PROGRAM = """
import sys, time
from pathlib import Path
from pytest_cudabatch.copies import BoundPlan, Direction, Mixture, make_plan
from pytest_cudabatch.cuda import Runtime
from pytest_cudabatch.implementations import load

descriptors, batches = map(int, sys.argv[3:])
runtime = Runtime.open(Path(sys.argv[1]), driver=Path(sys.argv[2]))
stream, implementation = runtime.stream_create(), load("reference").open()
with BoundPlan(make_plan(Direction.H2D, Mixture.MIXED, descriptors, 0), runtime) as plan:
    plan.fill()
    implementation.copy(plan, stream)
    runtime.stream_synchronize(stream)
    seconds = 0.0
    for _ in range(batches):
        start = time.perf_counter()
        implementation.copy(plan, stream)
        seconds += time.perf_counter() - start
        runtime.stream_synchronize(stream)
print(1e6 * seconds / batches)
"""
RECORD = [sys.executable, "-m", "pytest_cudabatch", "record"]


def prefixes(directory: Path) -> dict[str, list[str]]:
    """Return what stands before the program's command, by the name of the case."""
    quiet = ["-o", str(directory / "recording.txt")]
    return {
        "alone": [],
        "recorded": [*RECORD, *quiet, "--"],
        "traced": [*RECORD, *quiet, "--trace", str(directory / "trace"), "--"],
    }


def measure(
    cases: dict[str, list[str]], command: list[str], rounds: int, directory: Path
) -> dict[str, list[float]]:
    """Return, for each case, what each round's program printed, or how many seconds it took if nothing."""
    figures: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(rounds):
        names = list(cases)
        random.shuffle(names)
        for name in names:
            start = time.perf_counter()
            done = subprocess.run(
                [*cases[name], *command], capture_output=True, text=True, check=True, cwd=directory
            )
            seconds = time.perf_counter() - start
            figures[name].append(float(done.stdout) if done.stdout else seconds)
    return figures


def show(title: str, unit: str, figures: dict[str, list[float]]) -> None:
    """Print the median of each case, and its ratio to the case alone within the rounds."""
    print(title)
    for name, values in figures.items():
        ratios = [value / base for value, base in zip(values, figures["alone"], strict=True)]
        print(f"  {name:<9} {statistics.median(values):9.3f} {unit}, ratio {statistics.median(ratios):.3f}")


def main() -> int:
    """Print the figures; see the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--descriptors", type=int, default=1000, help="copies in a batch (default: 1000)")
    parser.add_argument("--batches", type=int, default=500, help="batches in a run (default: 500)")
    parser.add_argument("--rounds", type=int, default=9, help="interleaved rounds (default: 9)")
    parser.add_argument(
        "--limit", type=float, default=100.0, help="most microseconds that a trace may cost a batch"
    )
    options = parser.parse_args()
    libraries = ("simcuda/runtime-13.0/libcudart.so.13", "simcuda/driver-13.0/libcuda.so.1")
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        cases = prefixes(directory)
        command = [sys.executable, "-c", PROGRAM, *(str(native.library(library)) for library in libraries)]
        command += [str(options.descriptors), str(options.batches)]
        batches = measure(cases, command, options.rounds, directory)
        show(f"a batch of {options.descriptors} descriptors, the call alone", "us", batches)
        size = (directory / "trace").stat().st_size
        print(f"  the trace has {size} bytes for {options.batches + 1} batches")
        start = [sys.executable, "-c", "import numpy"]
        with EvidenceFile.create(directory / "evidence", self_claimed=True) as file:
            audited = [f"{name}={value}" for name, value in environment(file.path).items()]
            started = measure({"alone": [], "recorded": ["env", *audited]}, start, options.rounds, directory)
        show('python -c "import numpy", start to end, without cudabatch\'s own start', "s", started)
    cost = statistics.median(batches["traced"]) - statistics.median(batches["recorded"])
    print(f"a trace costs {cost:.1f} us a batch")
    return int(cost > options.limit)


if __name__ == "__main__":
    sys.exit(main())
