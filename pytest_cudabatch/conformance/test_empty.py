"""F18: copies of no bytes, and batches of no copies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_cudabatch import BatchCopy, PlanMaker


@pytest.mark.cuda_cell(kind="F18", finding="zero-size")
@pytest.mark.parametrize("empty", [(0,), (15,), tuple(range(0, 16, 2))], ids=["first", "last", "half"])
def test_entries_without_bytes(
    batch_copy: BatchCopy, copy_plan: PlanMaker, cuda_stream: int, empty: tuple[int, ...]
) -> None:
    """The batch call rejects a batch with one empty entry; a library's caller has such entries."""
    batch_copy.check(copy_plan("h2d", "mixed", 16, empty=empty), cuda_stream)


@pytest.mark.cuda_cell(kind="F18", finding="zero-size")
@pytest.mark.parametrize("count", [0, 3])
def test_nothing_to_copy(batch_copy: BatchCopy, copy_plan: PlanMaker, cuda_stream: int, count: int) -> None:
    """No entries, or none with bytes: success, and no byte is written."""
    plan = copy_plan("h2d", "uniform", count, empty=1.0)
    batch_copy.check(plan, cuda_stream, announce=("none", "fallback"))
