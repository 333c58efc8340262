"""What a user of cuda.core writes: buffers, streams, events and a batch copy. Prints ``exact``."""

from __future__ import annotations

import ctypes
import sys

from cuda.core import Buffer, Device, EventOptions, LegacyPinnedMemoryResource, MemoryResource, Stream
from cuda.core.utils import copy_batch

SIZE, COPIES = 256, 8


def buffers(resource: MemoryResource, stream: Stream) -> list[Buffer]:
    return [resource.allocate(SIZE, stream=stream) for _ in range(COPIES)]


def main() -> None:
    device = Device()
    device.set_current()
    assert device.properties.memory_pools_supported
    stream, other = device.create_stream(), device.create_stream()
    pinned = LegacyPinnedMemoryResource()
    sources, targets = buffers(pinned, stream), buffers(pinned, stream)
    there = buffers(device.memory_resource, stream)
    for index, buffer in enumerate(sources):
        ctypes.memset(int(buffer.handle), index + 1, SIZE)
        ctypes.memset(int(targets[index].handle), 0, SIZE)
    began = stream.record(options=EventOptions(timing_enabled=True))
    copy_batch(stream, sources, there)
    there[0].fill(b"\x07\x08", stream=stream)
    done = stream.record(options=EventOptions(timing_enabled=True))
    other.wait(done)
    copy_batch(other, there, targets)
    sources[0].copy_to(there[1], stream=other)
    other.sync()
    assert done - began >= 0
    expected = [b"\x07\x08" * (SIZE // 2), *(bytes([index + 1]) * SIZE for index in range(1, COPIES))]
    assert [ctypes.string_at(int(buffer.handle), SIZE) for buffer in targets] == expected
    for buffer in (*sources, *there, *targets):
        buffer.close()
    stream.sync()
    sys.stdout.write("exact\n")


if __name__ == "__main__":
    main()
