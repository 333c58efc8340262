"""Rows about batches of 3D copies: extents, pitches, operands and flags."""

from __future__ import annotations

from pytest_cudabatch.contract.batch import Batch
from pytest_cudabatch.contract.row_table import BOX, row


@row("A box of 64 bytes, 3 rows and 2 layers", BOX)
def _box(batch: Batch) -> None:
    batch.operation = {"height": 3, "depth": 2}


@row("The same, rows 128 bytes and layers 4 rows apart on both sides", BOX)
def _box_with_pitches(batch: Batch) -> None:
    pitches = {f"{end}_{part}": value for end in ("source", "destination") for part, value in _PITCHES}
    batch.operation = {"height": 3, "depth": 2, **pitches}


_PITCHES = (("row_length", 128), ("layer_height", 4))


@row("Rows that are shorter than the box is wide", BOX)
def _box_with_short_rows(batch: Batch) -> None:
    batch.operation = {"height": 3, "depth": 2, "source_row_length": 32}


@row("Layers that are lower than the box", BOX)
def _box_with_low_layers(batch: Batch) -> None:
    batch.operation = {"height": 3, "depth": 2, "destination_layer_height": 2}


@row("Width 0", BOX)
def _box_width_zero(batch: Batch) -> None:
    batch.operation = {"width": 0}


@row("Height 0", BOX)
def _box_height_zero(batch: Batch) -> None:
    batch.operation = {"height": 0}


@row("Depth 0", BOX)
def _box_depth_zero(batch: Batch) -> None:
    batch.operation = {"depth": 0}


@row("An operand of type 0, which is none", BOX)
def _operand_type_zero(batch: Batch) -> None:
    batch.operation = {"source_type": 0}


@row("Two operations, the flags of the call 1", BOX)
def _call_flags_one(batch: Batch) -> None:
    batch.set_copies(2)
    batch.call_flags = 1


@row("Flags 2 of an operation, which is none", BOX)
def _operation_flags_two(batch: Batch) -> None:
    batch.operation = {"flags": 2}


@row("Three operations, the second of no width", BOX)
def _operation_second_of_three_empty(batch: Batch) -> None:
    batch.set_copies(3)
    batch.sizes[1] = 0


@row("Three operations, the second to NULL", BOX)
def _operation_second_of_three_to_null(batch: Batch) -> None:
    batch.set_copies(3)
    batch.destinations[1] = 0
