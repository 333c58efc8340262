"""The 3D batch call: boxes with pitches, its errors, and the wrong arity."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from capture import end
from simulated import (
    NON_BLOCKING,
    ORDER_STREAM,
    UNTOUCHED,
    Gate,
    Process,
    Words,
    in_fork,
    scenario,
)

POINTER, ARRAY = 1, 2
SPAN = 1 << 16


@dataclass(frozen=True)
class Operand:
    """A box's place: the address of its first byte, and the bytes of a row and the rows of a layer, or 0."""

    address: int
    row_length: int = 0
    layer_height: int = 0
    kind: int = POINTER

    def packed(self) -> bytes:
        return struct.pack("=iiQQQii", self.kind, 0, self.address, self.row_length, self.layer_height, 0, 0)

    def offsets(self, extent: tuple[int, int, int]) -> list[int]:
        """Where each row begins, from the address on."""
        width, height, depth = extent
        row = self.row_length or width
        layer = row * (self.layer_height or height)
        return [z * layer + y * row for z in range(depth) for y in range(height)]


@dataclass(frozen=True)
class Operation:
    source: Operand
    destination: Operand
    extent: tuple[int, int, int] = (16, 4, 3)
    order: int = ORDER_STREAM
    flags: int = 0

    def packed(self) -> bytes:
        tail = struct.pack("=QQQiI", *self.extent, self.order, self.flags)
        return self.source.packed() + self.destination.packed() + tail


@dataclass
class Batch3D:
    """One call's arguments; by default one valid operation with pitches, pinned to device."""

    process: Process
    stream: int
    pinned: int
    device: int
    operations: list[Operation] = field(default_factory=list)
    flags: int = 0
    count: int | None = None
    null_operations: bool = False

    @classmethod
    def build(cls, process: Process) -> Batch3D:
        runtime = process.runtime
        batch = cls(
            process,
            stream=runtime.out("cudaStreamCreateWithFlags", NON_BLOCKING),
            pinned=runtime.out("cudaMallocHost", SPAN),
            device=runtime.out("cudaMalloc", SPAN),
        )
        ctypes.memmove(batch.pinned, bytes(range(251)) * (SPAN // 251), SPAN // 251 * 251)
        assert runtime.cudaMemset(batch.device, 0xEE, SPAN) == 0
        batch.operations = [Operation(Operand(batch.pinned + 3, 40, 6), Operand(batch.device + 512, 33, 5))]
        return batch

    def words(self, fail_index: Words | None) -> list[int]:
        """Return the argument words; without ``fail_index`` those of the four-parameter function."""
        packed = b"".join(operation.packed() for operation in self.operations)
        self._kept = ctypes.create_string_buffer(packed, max(1, len(packed)))
        operations = 0 if self.null_operations else ctypes.addressof(self._kept)
        count = len(self.operations) if self.count is None else self.count
        fail_words = [] if fail_index is None else [fail_index.address]
        return [count, operations, *fail_words, self.flags, self.stream]

    def submit(self, function: Callable[..., int], *, five: bool) -> tuple[int, int]:
        fail_index = Words([UNTOUCHED])
        code = function(*self.words(fail_index if five else None))
        return code, fail_index[0]

    def device_bytes(self) -> bytes:
        buffer = ctypes.create_string_buffer(SPAN)
        assert self.process.runtime.cudaDeviceSynchronize() == 0
        assert self.process.runtime.cudaMemcpy(ctypes.addressof(buffer), self.device, SPAN, 2) == 0
        return buffer.raw

    def expected_device_bytes(self, source: bytes) -> bytes:
        """What the device buffer holds afterwards; the sources of all operations lie in the pinned one."""
        wanted = bytearray(b"\xee" * SPAN)
        for operation in self.operations:
            width = operation.extent[0]
            starts = (
                operation.source.offsets(operation.extent),
                operation.destination.offsets(operation.extent),
            )
            for from_offset, to_offset in zip(*starts, strict=True):
                origin = operation.source.address - self.pinned + from_offset
                place = operation.destination.address - self.device + to_offset
                wanted[place : place + width] = source[origin : origin + width]
        return bytes(wanted)


def function_of(process: Process, entry: str) -> Callable[..., int]:
    library = process.runtime if entry.startswith("cuda") else process.driver
    return getattr(library, entry)  # type: ignore[no-any-return]


CASES: dict[str, Callable[[Batch3D], None]] = {}


def case(function: Callable[[Batch3D], None]) -> Callable[[Batch3D], None]:
    CASES[function.__name__] = function
    return function


def _change(batch: Batch3D, **changes: Any) -> None:
    batch.operations = [replace(batch.operations[0], **changes)]


def _second(batch: Batch3D, **changes: Any) -> None:
    batch.operations = [batch.operations[0], replace(batch.operations[0], **changes)]


@case
def pitched(batch: Batch3D) -> None:
    pass


@case
def tightly_packed(batch: Batch3D) -> None:
    _change(batch, source=Operand(batch.pinned), destination=Operand(batch.device + 7))


@case
def one_row(batch: Batch3D) -> None:
    _change(batch, extent=(61, 1, 1), source=Operand(batch.pinned), destination=Operand(batch.device))


@case
def two_operations(batch: Batch3D) -> None:
    _second(batch, destination=Operand(batch.device + 8192, 17), extent=(17, 5, 2), order=3, flags=1)


@case
def up_to_the_end(batch: Batch3D) -> None:
    _change(batch, destination=Operand(batch.device + SPAN - (2 * 165 + 3 * 33 + 16), 33, 5))


@case
def past_the_end(batch: Batch3D) -> None:
    _second(batch, destination=Operand(batch.device + SPAN - (2 * 165 + 3 * 33 + 16) + 1, 33, 5))


@case
def nothing(batch: Batch3D) -> None:
    batch.count = 0


@case
def no_operations(batch: Batch3D) -> None:
    batch.null_operations = True


@case
def width_zero(batch: Batch3D) -> None:
    _change(batch, extent=(0, 4, 3))


@case
def height_zero_in_the_second(batch: Batch3D) -> None:
    _second(batch, extent=(16, 0, 3))


@case
def depth_zero(batch: Batch3D) -> None:
    _change(batch, extent=(16, 4, 0))


@case
def rows_too_short(batch: Batch3D) -> None:
    _second(batch, source=Operand(batch.pinned, 15))


@case
def layers_too_low(batch: Batch3D) -> None:
    _change(batch, source=Operand(batch.pinned, 16, 3))


@case
def beyond_all_memory(batch: Batch3D) -> None:
    _second(batch, extent=(1, 1 << 40, 1))


@case
def more_bytes_than_there_are_numbers(batch: Batch3D) -> None:
    _change(batch, extent=(1 << 33, 1 << 33, 1 << 33))


@case
def null_destination(batch: Batch3D) -> None:
    _second(batch, destination=Operand(0))


@case
def an_array(batch: Batch3D) -> None:
    _change(batch, source=Operand(batch.pinned, kind=ARRAY))


@case
def order_zero(batch: Batch3D) -> None:
    _second(batch, order=0)


@case
def flags_of_the_call(batch: Batch3D) -> None:
    batch.flags = 1


@case
def stream_null(batch: Batch3D) -> None:
    batch.stream = 0


@case
def stream_legacy(batch: Batch3D) -> None:
    batch.stream = 1


@case
def stream_per_thread(batch: Batch3D) -> None:
    batch.stream = 2


def _answer(process: Process, name: str, entry: str, five: bool) -> list[Any]:
    batch = Batch3D.build(process)
    CASES[name](batch)
    source = ctypes.string_at(batch.pinned, SPAN)
    code, fail_index = batch.submit(function_of(process, entry), five=five)
    expected = batch.expected_device_bytes(source) if code == 0 else b"\xee" * SPAN
    return [code, fail_index, batch.device_bytes() == expected]


@scenario
def batch_3d_contract(process: Process, entry: str, five: bool) -> dict[str, Any]:
    assert process.runtime is not None  # loaded, not used: what follows is a fork before the first use
    return {name: in_fork(lambda name=name: _answer(process, name, entry, five)) for name in CASES}


@scenario
def batch_3d_wrong_arity(process: Process, entry: str, five: bool, behind: int) -> Any:
    """Call with the other number of parameters, and ``behind`` in the register behind them."""

    def wrong() -> dict[str, Any]:
        batch = Batch3D.build(process)
        fail_index = Words([UNTOUCHED])
        code = function_of(process, entry)(*batch.words(fail_index if five else None), behind)
        return {
            "code": code,
            "fail_index": fail_index[0],
            "last error": process.runtime.cudaGetLastError(),
            "copied nothing": batch.device_bytes() == b"\xee" * SPAN,
        }

    return in_fork(wrong)


@scenario
def batch_3d_source_overwritten(process: Process, order: int) -> bool:
    """Behind a blocked stream only DURING_API_CALL has read the source when the call returns."""
    batch = Batch3D.build(process)
    batch.operations = [replace(batch.operations[0], order=order)]
    before = ctypes.string_at(batch.pinned, SPAN)
    gate = Gate()
    gate.close(process, batch.stream)
    assert batch.submit(process.runtime.cudaMemcpy3DBatchAsync, five=False)[0] == 0
    ctypes.memset(batch.pinned, 0x11, SPAN)
    gate.open()
    old = batch.expected_device_bytes(before)
    new = batch.expected_device_bytes(b"\x11" * SPAN)
    return {old: True, new: False}[batch.device_bytes()]


@scenario
def batch_3d_under_capture(process: Process) -> list[Any]:
    batch = Batch3D.build(process)
    assert process.runtime.cudaStreamBeginCapture(batch.stream, 0) == 0
    code, _ = batch.submit(process.runtime.cudaMemcpy3DBatchAsync, five=False)
    return [code, end(process, batch.stream)]


@scenario
def batch_3d_null_stream_entry(process: Process, five: bool) -> tuple[int, int]:
    batch = Batch3D.build(process)
    batch.stream = 0
    return batch.submit(process.runtime.cudaMemcpy3DBatchAsync_ptsz, five=five)
