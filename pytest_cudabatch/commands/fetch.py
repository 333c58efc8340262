"""``cudabatch fetch 12.9 13.0.96``: real CUDA runtimes into the user's cache."""

from __future__ import annotations

import argparse
import json
import sys

from pytest_cudabatch.commands.index_options import add_index_options, index_of
from pytest_cudabatch.runtimes import RuntimeFile, fetch

__all__ = ["configure", "describe", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.add_argument(
        "versions",
        nargs="+",
        metavar="VERSION",
        help="a minor version for its newest patch level (12.9), or an exact release (12.9.79)",
    )
    parser.add_argument("--json", action="store_true", help="print what was fetched as JSON")
    add_index_options(parser)


def run(options: argparse.Namespace) -> int:
    """Fetch, and say what lies where."""
    runtimes = fetch(options.versions, index=index_of(options))
    if options.json:
        text = json.dumps({"runtimes": [describe(runtime) for runtime in runtimes]}, indent=1)
    else:
        text = "\n".join(f"{runtime.release:<9} {runtime.abi.value}  {runtime.path}" for runtime in runtimes)
    sys.stdout.write(text + "\n")
    return 0


def describe(runtime: RuntimeFile) -> dict[str, object]:
    """Return a fetched runtime as JSON data."""
    return {
        "release": runtime.release,
        "abi": runtime.abi.value,
        "exports_batch": runtime.exports_batch,
        "source": runtime.source,
        "path": str(runtime.path),
    }
