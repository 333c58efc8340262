"""Byte equality with guard bytes, for every direction and mixture of sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_cudabatch import BatchCopy, PlanMaker

DIRECTIONS = ("h2d", "d2h", "d2d", "mixed")
MEBIBYTE = 1 << 20


@pytest.mark.cuda_cell(kind="bytes", tier="smoke")
@pytest.mark.parametrize("mixture", ["uniform", "mixed"])
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_a_batch_on_every_pairing(
    batch_copy: BatchCopy, copy_plan: PlanMaker, cuda_stream: int, direction: str, mixture: str
) -> None:
    """A batch of 100 copies, in each direction, of one size and of many."""
    batch_copy.check(copy_plan(direction, mixture, 100), cuda_stream)


@pytest.mark.cuda_cell(kind="bytes", pairings="class")
@pytest.mark.parametrize("count", [1, 2, 1025, 4096])
@pytest.mark.parametrize("mixture", ["uniform", "mixed"])
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_bytes_match(
    batch_copy: BatchCopy, copy_plan: PlanMaker, cuda_stream: int, direction: str, mixture: str, count: int
) -> None:
    """Every destination holds its source's bytes, and nothing beside the destinations was written."""
    batch_copy.check(copy_plan(direction, mixture, count, seed=count), cuda_stream)


@pytest.mark.cuda_cell(kind="bytes", pairings="class")
@pytest.mark.parametrize("size", [1, 3, 511, 4097, 65536, MEBIBYTE + 1, 4 * MEBIBYTE])
@pytest.mark.parametrize("direction", ["h2d", "d2h"])
def test_bytes_match_for_sizes(
    batch_copy: BatchCopy, copy_plan: PlanMaker, cuda_stream: int, direction: str, size: int
) -> None:
    """Copies of one size from one byte to 4 MiB, odd ones among them."""
    count = max(2, min(64, 8 * MEBIBYTE // size))
    batch_copy.check(copy_plan(direction, "uniform", count, sizes=[size]), cuda_stream)
