"""Isolation: what it costs a test and what it survives, here and in the newest plugins of others.

Makes a virtual environment with pytest-forked, pytest-isolate, pytest-isolated and pytest-xdist on the newest
pytest on which all of them run, and this project (a bare fork, and plain pytest, beside them). Prints
milliseconds a test, medians of interleaved rounds, and the ratios of ours to each from the same rounds;
evidence and journal are on. With ``--torture``, the torture table of each. Exit status 1 where a ratio is
above its target, or a row of ours is not right.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

SOURCE = Path(__file__).parent.parent
sys.path[:0] = [str(Path(__file__).parent), str(SOURCE / "tests")]

from isolating.contenders import CONTENDERS, make_environment  # noqa: E402 - found by the line above
from isolating.cost import measure, ratios  # noqa: E402
from isolating.torture import RIGHT, judge_rows  # noqa: E402

OURS = "pytest-cudabatch"
TARGETS = {"pytest-forked": 1.1, "pytest-isolate": 0.6, "pytest-isolated": 0.05, "bare fork": 3.5}
"""The most that a cell may cost, as a multiple of each."""


def main() -> int:
    """Print the figures; see the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tests", type=int, default=200, help="tests of a run (default: 200)")
    parser.add_argument("--rounds", type=int, default=5, help="interleaved rounds (default: 5)")
    parser.add_argument("--torture", action="store_true", help="the torture table of each; takes its time")
    parser.add_argument("--python", type=Path, help="an interpreter that has all of them already")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="isolation-") as name:
        directory = Path(name)
        python = options.python or make_environment(directory / "venv", SOURCE)
        missed = _cost(python, directory, options) if options.rounds else False
        wrong = _torture(python, directory) if options.torture else False
    return int(missed or wrong)


def _cost(python: Path, directory: Path, options: argparse.Namespace) -> bool:
    figures = measure(python, directory, options.tests, options.rounds)
    print(f"milliseconds a test ({options.tests} trivial ones, {options.rounds} interleaved rounds)")
    for name, values in figures.items():
        print(f"  {name:18} {statistics.median(values):8.2f}  ({min(values):.2f} to {max(values):.2f})")
    found = ratios(figures, OURS)
    print(f"{OURS} as a multiple of")
    for name, target in TARGETS.items():
        print(f"  {name:18} {found[name]:8.3f}  (target: at most {target})")
    return any(found[name] > target for name, target in TARGETS.items())


def _torture(python: Path, directory: Path) -> bool:
    wrong = False
    for contender in CONTENDERS:
        if not contender.isolates:
            continue
        accounts = list(judge_rows(python, directory, contender))
        right = [account for account in accounts if account.verdict == RIGHT]
        causes = [account for account in accounts if account.row.signal or account.row.end == "exited"]
        named = sum(account.names_the_cause for account in causes)
        counts = f"{len(right)} of {len(accounts)} right, cause named in {named} of {len(causes)}"
        print(f"{contender.name}: {counts}")
        for account in accounts:
            if account.verdict != RIGHT:
                print(f"  {account.row.name}: {account.verdict}")
        wrong |= contender.is_ours and len(right) < len(accounts)
    return wrong


if __name__ == "__main__":
    sys.exit(main())
