"""The state machine: each rule is a call, with the answer that the model expects."""

from __future__ import annotations

import sys
from typing import ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from .bench import DEVICES, PAGE, PAGES, Bench
from .driver import Driver
from .model import (
    ALREADY,
    GLOBAL,
    INVALID,
    NOT_READY,
    NOT_REGISTERED,
    OK,
    RELAXED,
    UNSUPPORTED,
    Capture,
    Memory,
    Piece,
    Work,
    copy_of,
    fill_of,
)

__all__ = ["DriverMachine"]

SIZES = st.sampled_from([1, 64, 511, 4096, 10_000])
PICKS = st.integers(0, 1 << 12)
SCHEDULES = st.sampled_from(["fair", "adversarial:1", "adversarial:2", "adversarial:77"])
ORDER_STREAM, ORDER_DURING_API_CALL, ORDER_ANY = 1, 2, 3
ATTRIBUTE_WORDS = 3  # of 64 bits: order and the hints' first half, then zeros

LARGEST = 4096
PIECES = st.tuples(PICKS, PICKS, st.integers(1, LARGEST))
"""Which memory, where in it, and how much; a piece may run past the end of an allocation."""


class DriverMachine(RuleBasedStateMachine):
    """Calls to ``driver``, which the test sets, and the model beside it."""

    driver: ClassVar[Driver]

    def __init__(self) -> None:
        super().__init__()
        self.bench: Bench | None = None

    @initialize(schedule=SCHEDULES)
    def start(self, schedule: str) -> None:
        self.bench = Bench(self.driver, schedule)
        for kind in ("device", "pinned", "pages"):
            self.allocate(kind, LARGEST, 1)

    def teardown(self) -> None:
        if self.bench is not None and sys.exc_info()[0] is None:  # a failure before says more
            self.bench.finish()

    @property
    def at(self) -> Bench:
        assert self.bench is not None
        return self.bench

    def piece(self, drawn: tuple[int, int, int]) -> Piece:
        """Of pages, which end nowhere that the driver knows, a piece that lies within them."""
        pick, place, size = drawn
        memory = self.at.memories[pick % len(self.at.memories)]
        start = place * 7 % len(memory.content)
        if memory.kind == "pages":
            size = min(size, len(memory.content) - start)
        return Piece(memory, start, size)

    # Devices and streams -----------------------------------------------------------------------------------

    @rule(device=st.integers(0, DEVICES - 1))
    def use_device(self, device: int) -> None:
        self.at.use_device(device)

    @precondition(lambda self: len(self.at.streams) < 6)
    @rule()
    def create_stream(self) -> None:
        self.at.create_stream()

    @rule(pick=PICKS)
    def synchronise(self, pick: int) -> None:
        stream = self.at.pick_stream(pick)
        expected = OK if stream.capture is None else stream.capture.disturb()
        assert self.driver.call("cuStreamSynchronize", stream.handle) == expected
        if expected == OK:
            self.at.forget([stream])

    @rule(pick=PICKS)
    def query(self, pick: int) -> None:
        stream = self.at.pick_stream(pick)
        code = self.driver.call("cuStreamQuery", stream.handle)
        if stream.capture is not None:
            assert code == stream.capture.disturb()
        elif code == OK:
            self.at.forget([stream])
        else:
            assert code == NOT_READY

    @rule()
    def synchronise_context(self) -> None:
        expected = self.at.unsafe()
        assert self.driver.call("cuCtxSynchronize") == expected
        if expected == OK:
            self.at.forget([stream for stream in self.at.streams if stream.device == self.at.current])

    # Memory ------------------------------------------------------------------------------------------------

    @precondition(lambda self: len(self.at.memories) < 10)
    @rule(kind=st.sampled_from(["device", "pinned", "pages", "pool"]), size=SIZES, value=st.integers(1, 255))
    def allocate(self, kind: str, size: int, value: int) -> None:
        if kind == "pages":
            address, size = self.driver.pages(PAGES), PAGES * PAGE
        elif kind == "pool":
            address = self.driver.made("cuMemAllocAsync", "out", size, self.at.plain_stream.handle)
        else:
            name, more = ("cuMemAlloc_v2", []) if kind == "device" else ("cuMemHostAlloc", [0])
            code, address = self.driver.call(name, "out", size, *more)
            expected = self.at.unsafe()
            assert code == expected
            if expected != OK:
                return
        others = (range(other.address, other.address + len(other.content)) for other in self.at.memories)
        assert not any(address < other.stop and other.start < address + size for other in others)
        memory = Memory(address, bytearray(size), kind)
        self.at.memories.append(memory)
        self.at.fill(memory, value)

    @precondition(lambda self: len(self.at.memories) > 3)
    @rule(pick=PICKS)
    def free(self, pick: int) -> None:
        memory = self.at.memories[pick % len(self.at.memories)]
        if memory.kind == "pages":
            return
        if memory.kind == "pool":
            stream = self.at.plain_stream
            self.at.order(stream, [memory])
            assert self.driver.call("cuMemFreeAsync", memory.address, stream.handle) == OK
            assert self.driver.call("cuMemFreeAsync", memory.address, stream.handle) == INVALID
        else:
            name = "cuMemFree_v2" if memory.kind == "device" else "cuMemFreeHost"
            expected = self.at.unsafe()
            assert self.driver.call(name, memory.address) == expected
            if expected != OK:
                return
            self.at.forget(self.at.streams)
            assert self.driver.call(name, memory.address) == INVALID
        self.at.gone(memory)

    @rule(pick=PICKS, first=st.integers(0, PAGES - 1), count=st.integers(1, PAGES))
    def register(self, pick: int, first: int, count: int) -> None:
        memory = self.some_pages(pick)
        known = range(first * PAGE, min(first + count, PAGES) * PAGE)
        expected = self.at.unsafe()
        if expected == OK and any(
            known.start < old.stop and old.start < known.stop for old in memory.registered
        ):
            expected = ALREADY
        arguments = (memory.address + known.start, len(known), 0)
        assert self.driver.call("cuMemHostRegister_v2", *arguments) == expected
        if expected == OK:
            memory.registered.append(known)

    @rule(pick=PICKS, first=st.integers(0, PAGES - 1))
    def unregister(self, pick: int, first: int) -> None:
        """Every other time what is there, if there is something."""
        memory = self.some_pages(pick // 2)
        if memory.registered and pick % 2 == 0:
            first = memory.registered[0].start // PAGE
        known = [old for old in memory.registered if old.start == first * PAGE]
        expected = self.at.unsafe()
        if expected == OK and not known:
            expected = NOT_REGISTERED
        assert self.driver.call("cuMemHostUnregister", memory.address + first * PAGE) == expected
        if expected != UNSUPPORTED:
            self.at.forget(self.at.streams)
        if expected == OK:
            memory.registered.remove(known[0])

    def some_pages(self, pick: int) -> Memory:
        pages = [memory for memory in self.at.memories if memory.kind == "pages"]
        return pages[pick % len(pages)]

    @rule(drawn=PIECES, value=st.integers(0, 255))
    def write(self, drawn: tuple[int, int, int], value: int) -> None:
        """The program writes its own memory, when nobody else is at it."""
        piece = self.piece(drawn)
        if not piece.memory.is_host or piece.end > len(piece.memory.content):
            return
        self.at.settle(list(piece.memory.users))
        self.driver.write(piece.address, bytes([value]) * piece.size)
        fill_of(piece, value).apply()

    @rule(pick=PICKS)
    def compare(self, pick: int) -> None:
        self.at.compare(self.at.memories[pick % len(self.at.memories)])

    # Work --------------------------------------------------------------------------------------------------

    @rule(pick=PICKS, to=PIECES, source=PIECES)
    def copy(self, pick: int, to: tuple[int, int, int], source: tuple[int, int, int]) -> None:
        stream, target = self.at.pick_stream(pick), self.piece(to)
        origin = self.piece((*source[:2], target.size))
        target = Piece(target.memory, target.start, origin.size)
        words = (target.address, origin.address, target.size, stream.handle)
        if target.can_be_copied and origin.can_be_copied:
            self.at.queue(
                stream, [copy_of(target, origin)], lambda: self.driver.call("cuMemcpyAsync", *words)
            )
        else:
            assert self.driver.call("cuMemcpyAsync", *words) == INVALID

    @rule(pick=PICKS, drawn=PIECES, value=st.integers(0, 255))
    def fill(self, pick: int, drawn: tuple[int, int, int], value: int) -> None:
        stream, piece = self.at.pick_stream(pick), self.piece(drawn)
        words = (piece.address, value, piece.size, stream.handle)
        if piece.is_known:
            self.at.queue(
                stream, [fill_of(piece, value)], lambda: self.driver.call("cuMemsetD8Async", *words)
            )
        else:
            assert self.driver.call("cuMemsetD8Async", *words) == INVALID

    @rule(
        pick=PICKS,
        pairs=st.lists(st.tuples(PIECES, PIECES), min_size=1, max_size=6),
        order=st.sampled_from([ORDER_STREAM, ORDER_STREAM, ORDER_DURING_API_CALL, ORDER_ANY, 0, 4]),
        nine=st.booleans(),
    )
    def batch(
        self,
        pick: int,
        pairs: list[tuple[tuple[int, int, int], tuple[int, int, int]]],
        order: int,
        nine: bool,
    ) -> None:
        """Copies that do not touch each other's memory: nothing orders them within a batch."""
        copies: list[tuple[Piece, Piece]] = []
        for to, source in pairs:
            origin = self.piece((*source[:2], min(to[2], 512)))
            target = self.piece((*to[:2], origin.size))
            origin = Piece(origin.memory, origin.start, target.size)
            busy = [piece for pair in copies for piece in pair]
            targets = [other for other, _ in copies]
            if not any(target.overlaps(other) for other in [*busy, origin]) and not any(
                origin.overlaps(other) for other in targets
            ):
                copies.append((target, origin))
        if copies:
            self.submit(pick, copies, order, nine=nine)

    def submit(self, pick: int, copies: list[tuple[Piece, Piece]], order: int, *, nine: bool) -> None:
        stream = self.at.pick_stream(pick)
        bad = [index for index, pair in enumerate(copies) if not all(piece.can_be_copied for piece in pair)]
        done = copies[: bad[0]] if bad else copies
        expected, failed = (INVALID, bad[0]) if bad else (OK, 2**64 - 1)
        if order not in {ORDER_STREAM, ORDER_DURING_API_CALL, ORDER_ANY}:
            expected, failed, done = INVALID, 2**64 - 1, []
        if stream.capture is not None:
            expected, failed, done = UNSUPPORTED, 2**64 - 1, []
        works = [copy_of(*pair) for pair in done]
        if order != ORDER_STREAM:  # the sources may be read at once
            self.at.settle([user for _, origin in done for user in origin.memory.users])
        if works:
            self.at.order(stream, [memory for work in works for memory in work.memories])
        assert self.submitted(stream.handle, copies, order, nine=nine) == (expected, failed if nine else None)
        self.apply(works)

    def submitted(
        self, stream: int, copies: list[tuple[Piece, Piece]], order: int, *, nine: bool
    ) -> tuple[int, int | None]:
        """Make the call with or without failIdx; return the code and failIdx."""
        head = [
            [target.address for target, _ in copies],
            [origin.address for _, origin in copies],
            [target.size for target, _ in copies],
            len(copies),
            [order, *[0] * (ATTRIBUTE_WORDS - 1)],
            [0],
            1,
        ]
        if nine:
            code, failed = self.driver.call("cuMemcpyBatchAsync", *head, "out", stream)
            return code, failed
        return self.driver.call("cuMemcpyBatchAsync_v2", *head, stream), None

    def apply(self, works: list[Work]) -> None:
        for work in works:
            work.apply()

    # Captures ----------------------------------------------------------------------------------------------

    @precondition(lambda self: self.at.can_be_captured())
    @rule(pick=PICKS, mode=st.sampled_from([GLOBAL, RELAXED, RELAXED]))
    def begin_capture(self, pick: int, mode: int) -> None:
        free = self.at.can_be_captured()
        stream = free[pick % len(free)]
        self.at.settle([stream])
        assert self.driver.call("cuStreamBeginCapture_v2", stream.handle, mode) == OK
        stream.capture = Capture(mode)

    @precondition(lambda self: self.at.captured())
    @rule(pick=PICKS)
    def end_capture(self, pick: int) -> None:
        captured = self.at.captured()
        self.at.end_capture(captured[pick % len(captured)])

    @precondition(lambda self: self.at.graphs)
    @rule(pick=PICKS, which=PICKS)
    def launch(self, pick: int, which: int) -> None:
        stream = self.at.pick_stream(pick)
        graph = self.at.graphs[which % len(self.at.graphs)]
        words = (graph.handle, stream.handle)
        self.at.queue(stream, graph.works, lambda: self.driver.call("cuGraphLaunch", *words))
