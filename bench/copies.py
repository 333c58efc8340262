"""How fast batched copies are: implementations side by side on the same plans, on a GPU or simulated CUDA.

Each contender has a process of its own behind a watchdog. All of them take turns, in a new order each round,
so that whatever the machine does meets them alike; ``batch-unchunked`` comes apart, after the others, as
real drivers were seen to crash on it. A contender that crashes, hangs, answers an error or copies wrong bytes
is told so, and the others go on. All bytes of a plan are compared once for each contender, before it is
measured.

Submit is the time until the call returns, complete the time until the stream is synchronised after it. Each
has its median and 99th percentile with a 95 % bootstrap interval over rounds. The ratios are of median
completion times: to one contiguous copy of as many bytes, and to the loop over cudaMemcpyAsync; below 1 is
faster. On simulated CUDA the figures say that the bench works, and nothing about a GPU.

``--own-cost`` measures what the reference costs by itself, on a driver whose batch function does nothing.
Exit status 0 where all that could take part was measured right, 1 where one crashed, hung, failed or copied
wrong bytes (``batch-unchunked`` may: that is what it is there to show), 4 for bad arguments.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from copying.contenders import DEFAULT, OWN
from copying.contest import Contest, Settings
from copying.crew import Host
from copying.own_cost import measure_own_cost
from copying.presets import PRESETS
from copying.report import describe, print_own_cost, print_plan
from rich.console import Console

from pytest_cudabatch.cuda import SimulatedVersions
from pytest_cudabatch.errors import UsageError
from pytest_cudabatch.implementations import check
from pytest_cudabatch.pairings import load_matrix, simulated_pairings
from pytest_cudabatch.runtimes import RuntimeFile, fetched, probe

SCHEMA = 1
SIMULATED_COUNT = 4096
"""Descriptors of a large plan where nothing is said and nothing is real."""
PROBE_SECONDS = 30.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the bench; see the module's docstring."""
    options = _parser().parse_args(arguments)
    try:
        report, results_are_right = _run(options)
    except UsageError as error:
        print(f"copies.py: {error}", file=sys.stderr)
        return 4
    if options.json is not None:
        options.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    return 0 if results_are_right else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--runtime", metavar="FILE|RELEASE", help="libcudart to use (default: the newest fetched one)")
    add(
        "--simulated",
        metavar="PAIRING",
        nargs="?",
        const="cu13.0-d13.0",
        help="simulated CUDA instead of a GPU (default pairing: %(const)s)",
    )
    add("--preset", nargs="+", choices=PRESETS, default=list(PRESETS), help="plans (default: all)")
    add("--implementations", nargs="+", default=list(DEFAULT), metavar="NAME", help="default: all built in")
    add("--rounds", type=_positive, default=10, help="most rounds of a plan (default: %(default)s)")
    add(
        "--seconds",
        type=float,
        default=10.0,
        help="after how long no round of a plan is started (default: %(default)s)",
    )
    add("--limit", type=float, default=60.0, help="seconds until a contender hangs (default: %(default)s)")
    add("--chunk", type=_positive, default=1024, help="descriptors a call, for those without an own limit")
    add("--count", type=_positive, help=f"descriptors of the large plans ({SIMULATED_COUNT} if simulated)")
    add("--seed", type=int, default=0, help="of plans, turns and bootstrap (default: %(default)s)")
    add("--own-cost", action="store_true", help="measure the reference's own cost instead")
    add("--json", type=Path, metavar="FILE", help="write the figures there, too")
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def _run(options: argparse.Namespace) -> tuple[dict[str, Any], bool]:
    console = Console(width=None if sys.stdout.isatty() else 140)
    if options.own_cost:
        cost = measure_own_cost("reference")
        print_own_cost(cost, console)
        return {"schema": SCHEMA, "own_cost": cost}, True
    for name in options.implementations:
        if name not in OWN:
            check(name)
    host, facts = _simulated(options.simulated) if options.simulated else _device(options.runtime)
    settings = Settings(
        presets=[name for name in PRESETS if name in options.preset],
        contenders=list(dict.fromkeys(options.implementations)),
        count=options.count or (SIMULATED_COUNT if options.simulated else None),
        seed=options.seed,
        chunk=options.chunk,
        rounds=options.rounds,
        seconds=options.seconds,
        limit=options.limit,
    )
    start = time.monotonic()
    results = Contest(host, settings, lambda text: print(text, file=sys.stderr)).run()
    report = {
        "schema": SCHEMA,
        **facts,
        "seed": settings.seed,
        "chunk": settings.chunk,
        "seconds": round(time.monotonic() - start, 1),
        "plans": describe(results, settings),
    }
    console.print("  ".join(f"{key}: {value}" for key, value in report.items() if key != "plans"))
    for plan in report["plans"]:
        print_plan(plan, console)
    return report, all(result.apart or result.status in {"measured", "skipped"} for result in results)


def _simulated(identity: str) -> tuple[Host, dict[str, Any]]:
    """Return the simulated pairing of that id, and what the report says of it."""
    pairings = {pairing.id: pairing for pairing in simulated_pairings(load_matrix())}
    if identity not in pairings:
        raise UsageError(f"there is no pairing {identity!r}; known: {', '.join(pairings)}")
    runtime, driver = pairings[identity].runtime, pairings[identity].driver
    if runtime.path is None or driver.version is None:
        raise UsageError(f"pairing {identity!r} has no runtime file or no driver: nothing can copy there")
    host = Host(runtime.path, driver.path, SimulatedVersions(driver.version, runtime.version).variables())
    return host, {"platform": "simulated", "runtime": runtime.release, "driver": str(driver.version)}


def _device(wanted: str | None) -> tuple[Host, dict[str, Any]]:
    """Return this host's driver with the wanted runtime, and what the report says of them."""
    runtime = _runtime_file(wanted)
    driver = probe(PROBE_SECONDS)
    if not driver.context:
        raise UsageError(f"no GPU to run on: {driver.reason}; --simulated needs none")
    facts = {
        "platform": "device",
        "runtime": runtime.release,
        "driver": str(driver.version),
        "driver_release": driver.release,
        "gpu": driver.gpus[0],
    }
    return Host(runtime.path, None, {}), facts


def _runtime_file(wanted: str | None) -> RuntimeFile:
    if wanted is not None and Path(wanted).exists():
        return RuntimeFile.read(Path(wanted))
    known = {runtime.release: runtime for runtime in fetched()}
    if wanted is None and known:
        return list(known.values())[-1]
    if wanted in known:
        return known[wanted]
    raise UsageError(
        f"there is no runtime {wanted or ''} (fetched: {', '.join(known) or 'none'}); "
        "name a libcudart, or run: cudabatch fetch"
    )


if __name__ == "__main__":
    sys.exit(main())
