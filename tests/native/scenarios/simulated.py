"""What scenarios use: the two libraries over ctypes, a batch that can be spoilt, and forked trials.

Imported in scenario processes only, which have no site-packages. Every argument is passed as 64 bits, so
that a wrong arity is nothing but a longer or shorter list.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

SIZE_MAX = 2**64 - 1
LITTER = 0xDEAD << 48
"""A word that is no address on any machine: what lies in the stack slot behind a wrong call's arguments."""
UNTOUCHED = 5
"""What failIdx holds before a call."""
NON_BLOCKING = 1
HOST_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
ORDER_STREAM, ORDER_DURING_API_CALL, ORDER_ANY = 1, 2, 3


def call(function: Any, *arguments: int) -> int:
    """Call a C function with 64-bit words and return its int."""
    function.restype = ctypes.c_int
    return int(function(*(ctypes.c_uint64(argument & SIZE_MAX) for argument in arguments)))


class Words:
    """An array of 64-bit words in memory; its address goes to C."""

    def __init__(self, values: Sequence[int]) -> None:
        self._array = (ctypes.c_uint64 * max(1, len(values)))(*values)
        self.address = ctypes.addressof(self._array)

    def __getitem__(self, index: int) -> int:
        return int(self._array[index])


class Library:
    """One of the two libraries, or C's if None: ``library.cudaMalloc(...)`` returns the code."""

    def __init__(self, path: str | None) -> None:
        self.handle = ctypes.CDLL(path)

    def __getattr__(self, name: str) -> Callable[..., int]:
        function = getattr(self.handle, name)
        return lambda *arguments: call(function, *arguments)

    def out(self, name: str, *arguments: int) -> int:
        """Call a function that must succeed; return what it wrote through its first parameter."""
        written = Words([0])
        code = getattr(self, name)(written.address, *arguments)
        if code != 0:
            raise RuntimeError(f"{name} returned {code}")
        return written[0]

    def address(self, name: str) -> int:
        return ctypes.cast(getattr(self.handle, name), ctypes.c_void_p).value or 0


@dataclass
class Process:
    """What a scenario is given: the libraries that it asked for, loaded the way a program has them."""

    driver_path: str | None
    runtime_path: str | None
    _driver: Library | None = None
    _runtime: Library | None = None

    @property
    def driver(self) -> Library:
        if self._driver is None:
            assert self.driver_path is not None
            self._driver = Library(self.driver_path)
        return self._driver

    @property
    def runtime(self) -> Library:
        if self._runtime is None:
            assert self.runtime_path is not None
            if self.driver_path is not None:
                assert self.driver is not None  # first: the runtime finds it by its SONAME
            self._runtime = Library(self.runtime_path)
        return self._runtime

    @property
    def fail_index_is_taken(self) -> bool:
        return self.runtime_path is not None and self.runtime_path.endswith(".12")

    def start_driver(self) -> Library:
        """Initialise the driver API and make the primary context current."""
        driver = self.driver
        assert driver.cuInit(0) == 0
        assert driver.cuCtxSetCurrent(driver.out("cuDevicePrimaryCtxRetain", 0)) == 0
        return driver


@dataclass
class Attributes:
    order: int = ORDER_STREAM
    source_hint: tuple[int, int] = (0, 0)
    destination_hint: tuple[int, int] = (0, 0)
    flags: int = 0

    def words(self) -> list[int]:
        return [self.order, *self.source_hint, *self.destination_hint, self.flags]


@dataclass
class Batch:
    """One call's arguments. By default a valid one: a copy of 64 bytes, pinned to device, order STREAM."""

    process: Process
    stream: int
    pinned: int
    device: int
    destinations: list[int] = field(default_factory=list)
    sources: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    attributes: list[Attributes] = field(default_factory=lambda: [Attributes()])
    first_copies: list[int] = field(default_factory=lambda: [0])
    count: int | None = None
    attribute_count: int | None = None
    null_attributes: bool = False
    null_fail_index: bool = False
    first_copies_address: int | None = None

    SPAN = 1 << 16

    @classmethod
    def build(cls, process: Process, copies: int = 1) -> Batch:
        runtime = process.runtime
        pinned = runtime.out("cudaMallocHost", cls.SPAN)
        batch = cls(
            process,
            stream=runtime.out("cudaStreamCreateWithFlags", NON_BLOCKING),
            pinned=pinned,
            device=runtime.out("cudaMalloc", cls.SPAN),
        )
        ctypes.memmove(pinned, bytes(range(256)) * (cls.SPAN // 256), cls.SPAN)
        batch.set_copies(copies)
        return batch

    def set_copies(self, copies: int, size: int = 64) -> None:
        self.destinations = [self.device + index * 2 * size for index in range(copies)]
        self.sources = [self.pinned + 7 + index * 3 * size for index in range(copies)]
        self.sizes = [size] * copies

    def words(self, fail_index: Words | None, *, nine: bool) -> list[int]:
        """Return the argument words; ``fail_index`` None passes NULL."""
        self._kept = [
            Words(self.destinations),
            Words(self.sources),
            Words(self.sizes),
            Words(self.first_copies),
        ]
        flat = [word for attributes in self.attributes for word in attributes.words()]
        self._attribute_words = (ctypes.c_int * max(6, len(flat)))(*flat)
        head = [
            *(array.address for array in self._kept[:3]),
            len(self.sizes) if self.count is None else self.count,
            0 if self.null_attributes else ctypes.addressof(self._attribute_words),
            self._kept[3].address if self.first_copies_address is None else self.first_copies_address,
            len(self.attributes) if self.attribute_count is None else self.attribute_count,
        ]
        fail_word = [0 if fail_index is None else fail_index.address] if nine else []
        return [*head, *fail_word, self.stream]

    def submit(self, function: Callable[..., int], *, nine: bool) -> tuple[int, int]:
        """Make the call; return the code and what failIdx holds then."""
        fail_index = Words([UNTOUCHED])
        code = function(*self.words(None if self.null_fail_index else fail_index, nine=nine))
        return code, fail_index[0]

    def bytes_arrived(self) -> bool:
        """Wait for the device and compare every destination with its source, which must lie in ours."""
        runtime = self.process.runtime
        assert runtime.cudaDeviceSynchronize() == 0
        return all(
            self.read(destination, size) == self.read(source, size)
            for destination, source, size in zip(self.destinations, self.sources, self.sizes, strict=True)
        )

    def read(self, address: int, size: int) -> bytes:
        buffer = ctypes.create_string_buffer(size)
        assert self.process.runtime.cudaMemcpy(ctypes.addressof(buffer), address, size, 4) == 0
        return buffer.raw


class Gate:
    """Work that holds a stream up until it is opened."""

    def __init__(self) -> None:
        self._open = threading.Event()
        self.function = HOST_FUNCTION(lambda _: self._open.wait() and None)
        keep(self.function)
        self.address = ctypes.cast(self.function, ctypes.c_void_p).value or 0

    def close(self, process: Process, stream: int) -> None:
        assert process.runtime.cudaLaunchHostFunc(stream, self.address, 0) == 0

    def open(self) -> None:
        self._open.set()


def readable_pages(count: int) -> int:
    """Return the address of zeroed pages of the program's own."""
    pages = mmap.mmap(-1, count * mmap.PAGESIZE)
    keep(pages)
    return ctypes.addressof(ctypes.c_char.from_buffer(pages))


def page_before_a_hole(size: int) -> int:
    """Return the address of the last ``size`` readable bytes before a page that nobody may touch."""
    start = readable_pages(2)
    libc = ctypes.CDLL(None)
    assert call(libc.mprotect, start + mmap.PAGESIZE, mmap.PAGESIZE, 0) == 0
    return start + mmap.PAGESIZE - size


def keep(used: object) -> None:
    """Never free ``used``: the worker may still be using it when the interpreter ends."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(used))


def in_fork(work: Callable[[], Any]) -> Any:
    """Run ``work`` in a forked child; return its result, or the name of the signal that ended it."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(write_end, json.dumps(work()).encode())
            os._exit(0)
        finally:
            os._exit(1)
    os.close(write_end)
    with open(read_end, "rb") as results:  # noqa: PTH123  # a descriptor, not a path
        result = results.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return signal.Signals(os.WTERMSIG(status)).name
    assert os.WEXITSTATUS(status) == 0, "the forked child raised; see stderr"
    return json.loads(result)


SCENARIOS: dict[str, Callable[..., Any]] = {}


def scenario(function: Callable[..., Any]) -> Callable[..., Any]:
    assert function.__name__ not in SCENARIOS
    SCENARIOS[function.__name__] = function
    return function


def main() -> None:
    name, text = sys.argv[1:]
    request = json.loads(text)
    process = Process(request["driver"], request["runtime"])
    sys.stdout.write(json.dumps(SCENARIOS[name](process, **request["arguments"])))
