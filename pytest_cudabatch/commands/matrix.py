"""``cudabatch matrix``: the pairings of the matrix files, and what is expected of each."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from pytest_cudabatch.errors import CudaBatchError, UsageError
from pytest_cudabatch.implementations import load
from pytest_cudabatch.pairings import DriverEntry, Matrix, Pairing, RuntimeEntry, load_matrix, select

__all__ = ["configure", "run"]

_COLUMNS = ("pairing", "runtime route", "driver route", "reference", "basis", "source")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.add_argument("--json", action="store_true", help="print the pairings as JSON")
    parser.add_argument(
        "--matrix-dir",
        metavar="DIR",
        type=Path,
        help="a directory with the project's own matrix files, merged over ours",
    )
    parser.add_argument(
        "--select", metavar="EXPR", help='the pairings to print, such as "runtime>=12.8,<13 on driver>=13"'
    )


def run(options: argparse.Namespace) -> int:
    """Print the pairings in the matrix's order. Raises CudaBatchError where none is selected."""
    if options.matrix_dir is not None and not options.matrix_dir.is_dir():
        raise UsageError(f"--matrix-dir: there is no directory {str(options.matrix_dir)!r}")
    matrix = load_matrix(options.matrix_dir)
    pairings = _selected(tuple(_pairings(matrix)), options.select)
    if not pairings:
        raise CudaBatchError(f"--select: no pairing matches {options.select!r}")
    rows = list(_describe(matrix, pairings))
    text = json.dumps({"pairings": rows}, indent=1) if options.json else "\n".join(_table(rows))
    sys.stdout.write(text + "\n")
    return 0


def _pairings(matrix: Matrix) -> Iterator[Pairing]:
    """Yield the legal pairings; nothing runs here, so they have no libraries."""
    for runtime, driver, basis in matrix.legal_pairs():
        yield Pairing(
            RuntimeEntry(
                version=runtime.version,
                release=str(runtime.version),
                abi=runtime.abi,
                exports_batch=runtime.exports_batch,
                path=None,
                source="simulated",
            ),
            DriverEntry(driver.version),
            platform="simulated",
            basis=basis,
        )


def _selected(pairings: Sequence[Pairing], expression: str | None) -> Sequence[Pairing]:
    if expression is None:
        return pairings
    try:
        return select(pairings, expression)
    except UsageError as error:
        raise UsageError(*(f"--select: {problem}" for problem in error.problems)) from error


def _describe(matrix: Matrix, pairings: Iterable[Pairing]) -> Iterator[dict[str, Any]]:
    """Yield what is expected of each pairing, as JSON data."""
    from pytest_cudabatch.copies import Direction, Mixture, make_plan  # noqa: PLC0415 - brings numpy

    reference = load("reference")
    plan = make_plan(Direction.H2D, Mixture.UNIFORM, count=1, seed=0)
    for pairing in pairings:
        assert pairing.driver.version is not None  # those of the matrix all have a driver
        ground = matrix.ground(pairing.runtime.version, pairing.driver.version)
        assert ground is not None  # they are legal
        yield {
            "id": pairing.id,
            "runtime": {
                "version": str(pairing.runtime.version),
                "abi": pairing.runtime.abi.value,
                "exports_batch": pairing.runtime.exports_batch,
            },
            "driver": pairing.driver.describe(),
            "routes": {"runtime": pairing.runtime_route, "driver": pairing.driver_route},
            "reference": str(reference.expected_path(plan, pairing)),
            "basis": pairing.basis,
            "source": ground.source,
        }


def _table(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield the lines of a table; its last column is as wide as it needs."""
    cells = [_COLUMNS, *(_cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(_COLUMNS) - 1)]
    for line in cells:
        yield "  ".join([*(text.ljust(width) for text, width in zip(line, widths, strict=False)), line[-1]])


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    routes = ["yes" if row["routes"][name] else "no" for name in ("runtime", "driver")]
    return (row["id"], *routes, row["reference"], row["basis"], row["source"])
