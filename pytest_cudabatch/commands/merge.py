"""``cudabatch merge``: reports and journals, of one run or several, as one report and as JUnit XML."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from pytest_cudabatch.errors import CudaBatchError, UsageError
from pytest_cudabatch.reports import (
    Merged,
    RunRecord,
    conflict_lines,
    junit_xml,
    merge,
    read_records,
    write_whole,
)
from pytest_cudabatch.verdicts import Verdict

__all__ = ["configure", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.add_argument(
        "files",
        metavar="FILE",
        nargs="+",
        type=Path,
        help="a report (.json), a merged one, or a journal (.jsonl), also of a run that was killed",
    )
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the report to FILE")
    parser.add_argument("--junit", metavar="FILE", type=Path, help="write JUnit XML to FILE")


def run(options: argparse.Namespace) -> int:
    """Merge, write what was asked for, and print the totals, conflicts and unfinished cells.

    Raises UsageError for files that cannot be read, all of them at once, and CudaBatchError for one that
    cannot be written. The status is 0 whatever the cells came to: merging is no judgement.
    """
    merged = merge(_read(options.files))
    if options.json is not None:
        _write(options.json, (json.dumps(merged.to_json(), indent=1) + "\n").encode())
    if options.junit is not None:
        _write(options.junit, junit_xml(merged))
    sys.stdout.write("\n".join(_summary(merged)) + "\n")
    return 0


def _read(files: Iterable[Path]) -> list[RunRecord]:
    records: list[RunRecord] = []
    problems: list[str] = []
    for path in files:
        try:
            records.extend(read_records(path))
        except UsageError as error:
            problems.extend(error.problems)
    if (error_of_all := UsageError.collect(problems)) is not None:
        raise error_of_all
    return records


def _write(path: Path, data: bytes) -> None:
    try:
        write_whole(path, data)
    except OSError as error:
        raise CudaBatchError(f"cannot write {path}: {error.strerror}") from error


def _summary(merged: Merged) -> Iterator[str]:
    """Say what there is. Platforms never share a total."""
    yield f"runs: {len(merged.records)}, cells: {len(merged.cells)}"
    for platform in sorted({cell.key.platform or "no platform" for cell in merged.cells}):
        own = [cell for cell in merged.cells if (cell.key.platform or "no platform") == platform]
        verdicts = Counter(cell.chosen.cell.verdict for cell in own)
        counts = [f"{verdicts[v.value]} {v.value}" for v in Verdict if verdicts[v.value]]
        yield f"{platform} cells: {', '.join(counts)}"
    if merged.conflicts:
        yield f"conflicts: {len(merged.conflicts)}; each stands as its worst, with its rate"
        yield from (f"  {line}" for line in conflict_lines(merged))
    for number, record in enumerate(merged.records):
        unfinished = merged.unfinished(number)
        if unfinished:
            yield f"not finished in {record.source}: {len(unfinished)}"
            yield from (f"  {cell.nodeid} ({state})" for cell, state in unfinished.items())
        for error in record.errors:
            yield f"error in {record.source}: {error.summary}"
            yield from (f"  {cell.nodeid}" for cell in error.cells)
