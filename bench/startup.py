"""What the installed and unused plugin adds to a pytest run.

Runs ``pytest`` on one trivial test with the plugin and with ``-p no:cudabatch``, interleaved, and prints
the median difference in milliseconds, its quartiles, and the ratio. Also says whether numpy or rich were
imported. Exit status 1 where the median is above ``--limit`` milliseconds.
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

TEST = "def test_nothing():\n    pass\n"
CONFTEST = """
import sys

def pytest_unconfigure(config):
    print("imported:", sorted({"numpy", "rich"} & set(sys.modules)))
"""


def run(directory: Path, *options: str) -> tuple[float, str]:
    """Return the wall time of one pytest run in seconds, and what it printed."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, str(directory)]
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=directory)
    return time.perf_counter() - start, done.stdout


def main() -> int:
    """Print the figures; see the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=30, help="interleaved pairs of runs (default: 30)")
    parser.add_argument("--limit", type=float, default=15.0, help="most milliseconds to add")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        (directory / "test_nothing.py").write_text(TEST, encoding="utf-8")
        (directory / "conftest.py").write_text(CONFTEST, encoding="utf-8")
        imported = next(line for line in run(directory)[1].splitlines() if line.startswith("imported:"))
        run(directory, "-p", "no:cudabatch")
        differences, ratios = [], []
        for _ in range(options.pairs):
            # The order within a pair is drawn, so that neither side always finds the warmer machine.
            sides = [(), ("-p", "no:cudabatch")]
            random.shuffle(sides)
            seconds = {side: run(directory, *side)[0] for side in sides}
            differences.append(1e3 * (seconds[()] - seconds["-p", "no:cudabatch"]))
            ratios.append(seconds[()] / seconds["-p", "no:cudabatch"])
    low, median, high = statistics.quantiles(differences, n=4)
    print(f"interleaved pairs: {options.pairs}")
    print(f"the plugin adds {median:.1f} ms (quartiles {low:.1f} to {high:.1f})")
    print(f"ratio to -p no:cudabatch: {statistics.median(ratios):.3f}")
    print(imported)
    return int(median > options.limit)


if __name__ == "__main__":
    sys.exit(main())
