"""One call's arguments: a valid batch, which a row then spoils or varies in one way."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pytest_cudabatch.contract.bench import UNTOUCHED, Bench
from pytest_cudabatch.contract.entries import Entry
from pytest_cudabatch.contract.words import LITTER, Pages, Words

__all__ = ["Attributes", "Batch"]

_STREAM_ORDER = 1
_COPY_DEFAULT = 4
_POINTER_OPERAND = 1


@dataclass
class Attributes:
    """cudaMemcpyAttributes: a location hint is its type and its id."""

    order: int = _STREAM_ORDER
    source_hint: tuple[int, int] = (0, 0)
    destination_hint: tuple[int, int] = (0, 0)
    flags: int = 0

    def values(self) -> list[int]:
        """Return the six ints of the struct in their order."""
        return [self.order, *self.source_hint, *self.destination_hint, self.flags]


class _Operation(ctypes.Structure):
    """cudaMemcpy3DBatchOp between two pointers (driver_types.h since 12.8): 112 bytes."""

    _fields_ = (
        ("source_type", ctypes.c_int),
        ("source", ctypes.c_void_p),
        ("source_row_length", ctypes.c_size_t),
        ("source_layer_height", ctypes.c_size_t),
        ("source_hint", ctypes.c_int * 2),
        ("destination_type", ctypes.c_int),
        ("destination", ctypes.c_void_p),
        ("destination_row_length", ctypes.c_size_t),
        ("destination_layer_height", ctypes.c_size_t),
        ("destination_hint", ctypes.c_int * 2),
        ("width", ctypes.c_size_t),
        ("height", ctypes.c_size_t),
        ("depth", ctypes.c_size_t),
        ("order", ctypes.c_int),
        ("flags", ctypes.c_uint),
    )


@dataclass
class Batch:
    """A batch on a bench. As built: one copy of 64 bytes, pinned to device, order STREAM, own stream.

    ``count`` and ``attribute_count`` are told to the call instead of the true ones where given.
    ``indices_address`` replaces the address of the attribute indices; ``end_at_hole`` lets the arrays of
    addresses and sizes end at a page that nobody may touch. ``wrong_list`` calls with the other ABI's
    parameter list, ``thread`` makes the call from a thread of its own. ``capture`` is the mode in which the
    stream is captured meanwhile, ``beside`` that in which another one is, and whether another thread does so.
    ``operation`` changes members of the 3D operations, ``call_flags`` is their call's. ``registered`` and
    ``readable`` are (address, bytes): memory that is to be registered before, and memory outside the bench's
    buffers that the host may read. ``undo`` is called afterwards.
    """

    bench: Bench
    stream: int
    destinations: list[int] = field(default_factory=list)
    sources: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    attributes: list[Attributes] = field(default_factory=lambda: [Attributes()])
    indices: list[int] = field(default_factory=lambda: [0])
    count: int | None = None
    attribute_count: int | None = None
    null_attributes: bool = False
    null_fail_index: bool = False
    indices_address: int | None = None
    wrong_list: bool = False
    capture: int | None = None
    beside: tuple[int, bool] | None = None
    thread: bool = False
    operation: dict[str, int] = field(default_factory=dict)
    call_flags: int = 0
    end_at_hole: bool = False
    registered: list[tuple[int, int]] = field(default_factory=list)
    fail_index: Words = field(default_factory=lambda: Words([UNTOUCHED]))
    readable: list[tuple[int, int]] = field(default_factory=list)
    kept: list[Any] = field(default_factory=list)
    undo: list[Callable[[], object]] = field(default_factory=list)

    @classmethod
    def build(cls, bench: Bench) -> Batch:
        """Make the valid batch, with a new stream."""
        batch = cls(bench, bench.new_stream())
        batch.set_copies(1)
        return batch

    def set_copies(self, copies: int, size: int = 64) -> None:
        """Make it a batch of ``copies`` copies, with gaps between both sources and destinations."""
        self.destinations = [self.bench.device + index * 2 * size for index in range(copies)]
        self.sources = [self.bench.pinned + 7 + index * 3 * size for index in range(copies)]
        self.sizes = [size] * copies

    def pageable(self, content: bytes) -> int:
        """Return the address of pageable memory that holds ``content``."""
        buffer = ctypes.create_string_buffer(content, len(content))
        self.kept.append(buffer)
        self.readable.append((ctypes.addressof(buffer), len(content)))
        return ctypes.addressof(buffer)

    def register(self, address: int, nbytes: int) -> None:
        """Have the memory registered with CUDA during the call."""
        self.registered.append((address, nbytes))

    def words(self, entry: Entry) -> list[int]:
        """Return the argument words for ``entry``, by its own parameter list or by the wrong one."""
        takes_fail_index = entry.has_fail_index(self.bench.runtime.abi)
        given = takes_fail_index != self.wrong_list
        fail_index = [0 if self.null_fail_index else self.fail_index.address] if given else []
        litter = [LITTER] if takes_fail_index and self.wrong_list else []
        if entry.shape == "batch":
            return [*self._batch_words(), *fail_index, self.stream, *litter]
        if entry.shape == "3d":
            operations = self._operations()
            return [self._told_count(), operations, *fail_index, self.call_flags, self.stream, *litter]
        if entry.shape == "attributes":
            attributes = self._ints(self.attributes[0].values())
            return [self.destinations[0], self.sources[0], self.sizes[0], attributes, self.stream]
        return [self.destinations[0], self.sources[0], self.sizes[0], _COPY_DEFAULT, self.stream]

    def checkable(self) -> list[tuple[int, int, int]]:
        """Return destination, source and size of the copies whose arrival can be seen."""
        copies = zip(self.destinations, self.sources, self.sizes, strict=True)
        return [
            (destination, source, size)
            for destination, source, size in copies
            if size > 0
            and destination != source
            and self.bench.owns(destination, size)
            and (self.bench.owns(source, size) or self._is_readable(source, size))
        ]

    def _is_readable(self, address: int, nbytes: int) -> bool:
        return any(start <= address and address + nbytes <= start + length for start, length in self.readable)

    def _told_count(self) -> int:
        return len(self.sizes) if self.count is None else self.count

    def _batch_words(self) -> list[int]:
        arrays = [Words(values) for values in (self.destinations, self.sources, self.sizes, self.indices)]
        self.kept += arrays
        attributes = self._ints([value for each in self.attributes for value in each.values()])
        return [
            *(self._placed(array, len(self.sizes)) for array in arrays[:3]),
            self._told_count(),
            0 if self.null_attributes else attributes,
            arrays[3].address if self.indices_address is None else self.indices_address,
            len(self.attributes) if self.attribute_count is None else self.attribute_count,
        ]

    def _placed(self, array: Words, count: int) -> int:
        """Return the array's address, or that of a copy of it that ends at a hole."""
        if not self.end_at_hole:
            return array.address
        start = Pages().hole - 8 * count
        ctypes.memmove(start, array.address, 8 * count)
        return start

    def _ints(self, values: Sequence[int]) -> int:
        array = (ctypes.c_int * len(values))(*values)
        self.kept.append(array)
        return ctypes.addressof(array)

    def _operations(self) -> int:
        operations = (_Operation * len(self.sizes))()
        copies = zip(operations, self.destinations, self.sources, self.sizes, strict=True)
        for operation, destination, source, size in copies:
            operation.source_type = operation.destination_type = _POINTER_OPERAND
            operation.source, operation.destination = source, destination
            operation.width, operation.height, operation.depth = size, 1, 1
            operation.order, operation.flags = self.attributes[0].order, self.attributes[0].flags
            for name, value in self.operation.items():
                setattr(operation, name, value)
        self.kept.append(operations)
        return ctypes.addressof(operations)
