"""F15: counts around the sizes at which implementations and drivers were seen to break."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_cudabatch import BatchCopy, PlanMaker

LIMIT = 32 << 20
"""Most bytes of a plan: what a laptop and a small CI runner have to spare."""

EDGES = (1, 2, 1023, 1024, 1025, 4095, 4096, 4097, 8191, 8192, 8193, 16384, 32768, 65535, 65536)
LARGE = (51828, 65537, 131072)
"""51,828 is the batch of the public report (vLLM issue 49276)."""

REPORTED_SIZES = (128, 256, 512, 576, 1024, 1152, 4096, 8192, 16384)
REPORTED_GAPS = (0, 64, 256, 4096)
"""Bytes of the pages in that report's batch, and between them on the host; 185 MB in all."""


@pytest.mark.cuda_cell(kind="F15", pairings="class")
@pytest.mark.parametrize("mixture", ["uniform", "mixed"])
@pytest.mark.parametrize(
    "count", [*LARGE, *(pytest.param(count, marks=pytest.mark.cuda_cell(tier="nightly")) for count in EDGES)]
)
def test_counts_to_the_device(
    batch_copy: BatchCopy, copy_plan: PlanMaker, cuda_stream: int, count: int, mixture: str
) -> None:
    """Host to device, the direction in which drivers were seen to crash on mixed sizes."""
    batch_copy.check(copy_plan("h2d", mixture, count, seed=count, nbytes_limit=LIMIT), cuda_stream)


@pytest.mark.cuda_cell(kind="F15", pairings="class", tier="nightly")
@pytest.mark.parametrize("mixture", ["uniform", "mixed"])
@pytest.mark.parametrize("count", [*EDGES, *LARGE])
def test_counts_to_the_host(
    batch_copy: BatchCopy, copy_plan: PlanMaker, cuda_stream: int, count: int, mixture: str
) -> None:
    """Device to host, the other way."""
    batch_copy.check(copy_plan("d2h", mixture, count, seed=count, nbytes_limit=LIMIT), cuda_stream)


@pytest.mark.cuda_cell(kind="F15", pairings="class")
def test_repeated_batches(batch_copy: BatchCopy, copy_plan: PlanMaker, cuda_stream: int) -> None:
    """The same large batch ten times: a fault of the driver was seen on later submissions only."""
    plan = copy_plan("h2d", "mixed", 19634, nbytes_limit=LIMIT, closest=True)
    for _ in range(10):
        plan.fill()
        batch_copy.check(plan, cuda_stream)


@pytest.mark.cuda_cell(kind="F15", pairings="class", tier="nightly")
@pytest.mark.parametrize("direction", ["h2d", "d2h"])
def test_the_reported_batch(
    batch_copy: BatchCopy, copy_plan: PlanMaker, cuda_stream: int, direction: str
) -> None:
    """The batch of the public report at its full size, several times: pages of a cache, packed."""
    plan = copy_plan(direction, "mixed", 51828, 1, sizes=REPORTED_SIZES, gaps=REPORTED_GAPS)
    for _ in range(4):
        plan.fill()
        batch_copy.check(plan, cuda_stream)
