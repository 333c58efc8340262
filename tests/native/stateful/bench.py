"""A driver and the model beside it: what both do at a call, and the order that makes the model right."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .driver import Driver
from .model import GLOBAL, INVALIDATED, OK, Graph, Memory, Piece, Stream, Work

__all__ = ["DEVICES", "PAGE", "PAGES", "Bench"]

DEVICES, PAGE, PAGES = 2, 4096, 4
NON_BLOCKING, PER_THREAD = 1, 2


class Bench:
    """Streams, memories and graphs of one sequence.

    The first stream is device 0's per-thread one, the second is of device 0 too; neither is ever captured.
    """

    def __init__(self, driver: Driver, schedule: str) -> None:
        self.driver = driver
        self.memories: list[Memory] = []
        self.graphs: list[Graph] = []
        driver.begin({"CUDABATCH_SIM_DEVICES": str(DEVICES), "CUDABATCH_SIM_SCHEDULE": schedule})
        assert driver.call("cuInit", 0) == OK
        self._contexts = [driver.made("cuDevicePrimaryCtxRetain", "out", device) for device in range(DEVICES)]
        self._events = []
        for context in reversed(self._contexts):
            assert driver.call("cuCtxSetCurrent", context) == OK
            self._events.insert(0, driver.made("cuEventCreate", "out", 0))
        self.current = 0
        self.streams = [Stream(PER_THREAD, 0)]
        for _ in range(3):
            self.create_stream()
        self._scratch = driver.pages(PAGES)

    @property
    def plain_stream(self) -> Stream:
        return self.streams[1]

    def pick_stream(self, pick: int) -> Stream:
        """Any stream, every other time a captured one, if there is one.

        The per-thread one only on its own device, since its handle means another elsewhere.
        """
        captured = self.captured()
        if captured and pick % 2 == 1:
            return captured[pick // 2 % len(captured)]
        streams = self.streams if self.current == 0 else self.streams[1:]
        return streams[pick // 2 % len(streams)]

    def captured(self) -> list[Stream]:
        return [stream for stream in self.streams if stream.capture is not None]

    def can_be_captured(self) -> list[Stream]:
        return [stream for stream in self.streams[2:] if stream.capture is None]

    def use_device(self, device: int) -> None:
        self.settle(self.streams[:1])
        assert self.driver.call("cuCtxSetCurrent", self._contexts[device]) == OK
        self.current = device

    def create_stream(self) -> None:
        self.streams.append(Stream(self.driver.made("cuStreamCreate", "out", NON_BLOCKING), self.current))

    # Order -------------------------------------------------------------------------------------------------

    def forget(self, streams: Sequence[Stream]) -> None:
        """All work of these streams is done."""
        for memory in self.memories:
            memory.users.difference_update(streams)

    def settle(self, streams: Sequence[Stream]) -> None:
        """Wait for streams that have work in some memory, none of which is captured."""
        for stream in streams:
            if any(stream in memory.users for memory in self.memories):
                assert self.driver.call("cuStreamSynchronize", stream.handle) == OK
                self.forget([stream])

    def order(self, stream: Stream, memories: Sequence[Memory]) -> None:
        """Let what is queued in ``stream`` next come behind all work in these memories."""
        for other in {user for memory in memories for user in memory.users} - {stream}:
            event = self._events[other.device]
            assert self.driver.call("cuEventRecord", event, other.handle) == OK
            assert self.driver.call("cuStreamWaitEvent", stream.handle, event, 0) == OK
        for memory in memories:
            memory.users = {stream}

    def unsafe(self) -> int:
        """What a call answers that captures may forbid: they are invalidated by it."""
        code = OK
        for stream in self.streams:
            if stream.capture is not None and stream.capture.mode == GLOBAL:
                code = stream.capture.disturb()
        return code

    def is_barred(self) -> bool:
        return any(stream.capture is not None and stream.capture.mode == GLOBAL for stream in self.streams)

    # Work --------------------------------------------------------------------------------------------------

    def queue(self, stream: Stream, works: Sequence[Work], call: Callable[[], int]) -> int:
        """Make a call that queues or captures ``works``; return what it should answer and did."""
        if stream.capture is None:
            self.order(stream, [memory for work in works for memory in work.memories])
        code = call()
        expected = OK
        for work in works:
            if stream.capture is not None:
                expected = stream.capture.take(work)
            else:
                work.apply()
        assert code == expected
        return code

    def refuse(self, expected: int, call: Callable[[], int]) -> None:
        assert call() == expected

    def fill(self, memory: Memory, value: int) -> None:
        """Fill fresh memory."""
        content = bytes([value]) * len(memory.content)
        if memory.is_host:
            self.driver.write(memory.address, content)
        else:
            stream = self.plain_stream
            memory.users = {stream}
            name = "cuMemsetD8Async"
            assert self.driver.call(name, memory.address, value, len(content), stream.handle) == OK
        memory.content[:] = content

    def read(self, piece: Piece) -> bytes:
        """Read bytes back, through a synchronous copy from device memory; its users are settled."""
        if piece.memory.is_host:
            return self.driver.read(piece.address, piece.size)
        code = self.driver.call("cuMemcpyDtoH_v2", self._scratch, piece.address, piece.size)
        assert code == OK
        return self.driver.read(self._scratch, piece.size)

    def compare(self, memory: Memory) -> None:
        """Every byte must be the model's."""
        self.settle(list(memory.users))
        if not memory.is_host and self.is_barred():
            return
        assert self.read(Piece(memory, 0, len(memory.content))) == bytes(memory.content)

    # Ends --------------------------------------------------------------------------------------------------

    def gone(self, memory: Memory) -> None:
        """Captured work in memory that is gone must never run."""
        self.memories.remove(memory)
        self.graphs = [
            graph for graph in self.graphs if not any(memory in work.memories for work in graph.works)
        ]
        for stream in self.streams:
            if stream.capture is not None and any(memory in work.memories for work in stream.capture.works):
                self.end_capture(stream, keep=False)

    def end_capture(self, stream: Stream, *, keep: bool = True) -> None:
        capture, stream.capture = stream.capture, None
        assert capture is not None
        code, handle = self.driver.call("cuStreamEndCapture", stream.handle, "out")
        if capture.invalidated:
            assert (code, handle) == (INVALIDATED, 0)
            return
        assert code == OK
        code, count = self.driver.call("cuGraphGetNodes", handle, 0, "out")
        assert (code, count) == (OK, len(capture.works))
        if keep:
            executable = self.driver.made("cuGraphInstantiateWithFlags", "out", handle, 0)
            self.graphs.append(Graph(executable, capture.works))
        assert self.driver.call("cuGraphDestroy", handle) == OK

    def finish(self) -> None:
        """End captures and the sequence, after a last look at every byte."""
        for stream in self.captured():
            self.end_capture(stream, keep=False)
        for memory in self.memories:
            self.compare(memory)
        self.driver.end()
