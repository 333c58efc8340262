"""A result file as a page: ``python -m copying.page RESULT.json``, run in bench/, prints docs/copies.md."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

__all__ = ["page"]

HEAD = """\
# How fast the copies are

Measured by `bench/copies.py` on an {gpu}, driver {driver_release} (CUDA {driver}), runtime {runtime}: one
process per contender, taking turns on the same plans; all bytes were compared first. Medians of the time
until the copies were complete, with 95 % bootstrap intervals. Submit times, 99th percentiles and ratios
are in [the result file](../matrix/observed/copies/{file}), from which this page is generated.

`reference` is `cudabatch_dispatch.h`: at most 1,024 copies a call. `batch-unchunked` is one call for all of
them, run apart, after the others; `per-copy` is a C loop over `cudaMemcpyAsync`.
"""

TAIL = """
## What follows

* One unchunked call of 51,828 mixed host-to-device copies crashes in this driver (vLLM issue 49276); in
  calls of 1,024 the same copies are right, and fast.
* Batches pay: `reference` takes {gain:.2f} of the time of the loop on that plan.
* The times of large batches come in two modes, about 24 and 40 ms, for every contender that uses the batch
  call, so intervals are wide; compare inside one run only.
"""


def page(results: Mapping[str, Any], file: str) -> str:
    """Return the page for ``results``, which lie in ``file``."""
    host = {key: results[key] for key in ("driver", "driver_release", "runtime")}
    parts = [HEAD.format(gpu=results["gpu"].removeprefix("NVIDIA "), file=file, **host)]
    parts += ["\n".join(_plan(plan)) for plan in results["plans"]]
    mixed = {result["contender"]: result for result in results["plans"][0]["results"]}
    parts.append(TAIL.format(gain=mixed["reference"]["ratio_to_per_copy"]["value"]))
    return "\n".join(parts)


def _plan(plan: Mapping[str, Any]) -> Iterator[str]:
    megabytes = plan["bytes"] / 1e6
    yield f"## {plan['name']}: {plan['descriptors']:,} copies, {megabytes:,.1f} MB, {plan['direction']}"
    yield ""
    yield "| contender | milliseconds | GB/s | times contiguous | times per-copy |"
    yield "| --- | --- | --- | --- | --- |"
    for result in plan["results"]:
        if result["status"] == "measured":
            yield _measured(result)
        elif result["status"] != "skipped":
            yield f"| {result['contender']} | {result['status']}, {result['signal']} | | | |"
    yield ""


def _measured(result: Mapping[str, Any]) -> str:
    median = {key: value / 1e3 for key, value in result["completion_us"]["median"].items()}
    digits = 2 if median["value"] >= 1 else 4
    time = f"{median['value']:.{digits}f} ({median['low']:.{digits}f} to {median['high']:.{digits}f})"
    ratios = " | ".join(f"{result[key]['value']:.2f}" for key in ("ratio_to_contiguous", "ratio_to_per_copy"))
    return f"| {result['contender']} | {time} | {result['gb_per_s']:.2f} | {ratios} |"


if __name__ == "__main__":
    path = Path(sys.argv[1])
    sys.stdout.write(page(json.loads(path.read_text(encoding="utf-8")), path.name))
