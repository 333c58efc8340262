"""What a row about a batch is, and the table that they are entered in by ``row``."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from pytest_cudabatch.contract.batch import Batch
from pytest_cudabatch.contract.entries import Shape

__all__ = ["ALL", "BATCH", "BATCH_ROWS", "BOX", "WITH_3D", "WITH_COPY", "BatchRow", "row"]

BATCH: tuple[Shape, ...] = ("batch",)
BOX: tuple[Shape, ...] = ("3d",)
WITH_3D: tuple[Shape, ...] = ("batch", "3d")
WITH_COPY: tuple[Shape, ...] = ("batch", "copy", "attributes")
ALL: tuple[Shape, ...] = ("batch", "3d", "copy", "attributes")


@dataclass(frozen=True)
class BatchRow:
    """A row: ``vary`` turns the valid batch into the row's. ``nine_only``: it is about failIdx itself."""

    name: str
    about: str
    shapes: Collection[Shape]
    vary: Callable[[Batch], None]
    alone: bool
    nine_only: bool


BATCH_ROWS: dict[str, BatchRow] = {}
"""By name, in the order of the tables; filled while the modules of rows are imported, and never changed."""

_Vary = Callable[[Batch], None]


def row(
    about: str, shapes: tuple[Shape, ...] = BATCH, *, alone: bool = False, nine_only: bool = False
) -> Callable[[_Vary], _Vary]:
    """Enter a function into the table under its own name. ``alone``: it gets a process of its own."""

    def enter(vary: _Vary) -> _Vary:
        name = vary.__name__.removeprefix("_").replace("_", "-")
        BATCH_ROWS[name] = BatchRow(name, about, shapes, vary, alone, nine_only)
        return vary

    return enter
