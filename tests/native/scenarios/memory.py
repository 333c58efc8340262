"""Device and pinned memory, single copies and fills."""

from __future__ import annotations

import ctypes
import itertools
import mmap
from typing import Any

from simulated import (
    LITTER,
    SIZE_MAX,
    Batch,
    Gate,
    Process,
    Words,
    in_fork,
    readable_pages,
    scenario,
)


@scenario
def dereference(process: Process, access: str) -> Any:
    def work() -> int:
        address = process.runtime.out("cudaMalloc", 4096)
        byte = ctypes.c_ubyte.from_address(address)
        if access == "write":
            byte.value = 1
        return byte.value

    return in_fork(work)


@scenario
def allocations(process: Process) -> dict[str, Any]:
    """Many sizes at once, some freed and allocated anew: none overlaps, and the sum is right."""
    runtime = process.runtime
    sizes = [1, 511, 512, 513, 4096, 1 << 20, 3, 7 << 20] * 8
    addresses = [runtime.out("cudaMalloc", size) for size in sizes]
    for index in range(0, len(sizes), 3):
        assert runtime.cudaFree(addresses[index]) == 0
        sizes[index] = sizes[index] // 2 + 1
        addresses[index] = runtime.out("cudaMalloc", sizes[index])
    spans = sorted(zip(addresses, sizes, strict=True))
    free, total = Words([0]), Words([0])
    assert runtime.cudaMemGetInfo(free.address, total.address) == 0
    return {
        "overlaps": sum(a + size > b for (a, size), (b, _) in itertools.pairwise(spans)),
        "misaligned": sum(address % 512 != 0 for address in addresses),
        "used": total[0] - free[0] - sum(sizes),
        "freed twice": [runtime.cudaFree(addresses[0]), runtime.cudaFree(addresses[0])],
        "inside": runtime.cudaFree(addresses[5] + 512),
        "null": [runtime.cudaFree(0), runtime.cudaFreeHost(0)],
        "too large": runtime.cudaMalloc(free.address, 1 << 50),
        "zero bytes": runtime.out("cudaMalloc", 0),
    }


@scenario
def pointer_attributes(process: Process) -> dict[str, Any]:
    runtime = process.runtime
    device, pinned = runtime.out("cudaMalloc", 4096), runtime.out("cudaMallocHost", 4096)
    pageable = Words([0])
    addresses = {"device": device + 100, "pinned": pinned + 100, "pageable": pageable.address}
    found: dict[str, Any] = {}
    for name, address in addresses.items():
        answer = (ctypes.c_uint64 * 16)(*[LITTER] * 16)
        assert runtime.cudaPointerGetAttributes(ctypes.addressof(answer), address) == 0
        kind, ordinal = answer[0] & 0xFFFFFFFF, ctypes.c_int(answer[0] >> 32).value
        pointers = ["same" if word == address else word for word in answer[1:3]]
        found[name] = [kind, ordinal, *pointers, sum(word != LITTER for word in answer)]
    return found


@scenario
def single_copies(process: Process) -> dict[str, Any]:
    """One copy per kind and way; where it succeeds the bytes are read back by another."""
    runtime = process.runtime
    size = 1000
    device, other = runtime.out("cudaMalloc", size), runtime.out("cudaMalloc", size)
    pinned = runtime.out("cudaMallocHost", size)
    pageable = ctypes.create_string_buffer(bytes(range(250)) * 4, size)
    host = ctypes.addressof(pageable)
    ctypes.memmove(pinned, bytes(range(250)) * 4, size)
    copies = {
        "pageable to device": (device, host, size, 1),
        "pinned to device": (device, pinned, size, 1),
        "device to device": (other, device, size, 3),
        "device to pinned": (pinned, other, size, 2),
        "device to pageable": (host, other, size, 2),
        "default": (pinned, device, size, 4),
        "host to host": (pinned, host, size, 0),
        "nothing": (device, host, 0, 1),
        "past the end": (device, host, size + 1, 1),
        "from past the end": (host, device + 1, size, 2),
        "null": (0, host, size, 1),
        "wrong kind": (host, pinned, size, 1),
        "device as host": (other, device, size, 1),
        "no such kind": (device, host, size, 5),
    }
    found: dict[str, Any] = {name: runtime.cudaMemcpy(*words) for name, words in copies.items()}
    found["bytes"] = [pageable.raw == bytes(range(250)) * 4, ctypes.string_at(pinned, size) == pageable.raw]
    return found


@scenario
def fills(process: Process) -> dict[str, Any]:
    runtime = process.runtime
    device, back = runtime.out("cudaMalloc", 300), ctypes.create_string_buffer(300)
    codes = [
        runtime.cudaMemset(device, 0x1FF, 300),
        runtime.cudaMemsetAsync(device + 100, 7, 100, 0),
        runtime.cudaMemset(device + 100, 7, 201),
        runtime.cudaMemcpy(ctypes.addressof(back), device, 300, 2),
    ]
    return {"codes": codes, "right": back.raw == b"\xff" * 100 + b"\x07" * 100 + b"\xff" * 100}


@scenario
def reset(process: Process) -> list[Any]:
    runtime = process.runtime
    batch = Batch.build(process)
    event = runtime.out("cudaEventCreate")
    assert runtime.cudaDeviceReset() == 0
    dead = [runtime.cudaFree(batch.device), runtime.cudaEventQuery(event)]
    dead.append(in_fork(lambda: ctypes.c_uint64.from_address(batch.stream).value))
    again = Batch.build(process)
    assert again.submit(runtime.cudaMemcpyBatchAsync, nine=process.fail_index_is_taken)[0] == 0
    return [*dead, again.bytes_arrived()]


@scenario
def registrations(process: Process) -> dict[str, Any]:
    """Two pages, registered one by one: what that makes of copies, and what may not be registered."""
    runtime, page = process.runtime, mmap.PAGESIZE
    start, device = readable_pages(2), runtime.out("cudaMalloc", 2 * page)
    pinned = runtime.out("cudaMallocHost", page)
    hole = 0x10000  # below everything that the loader and mmap hand out, and above what is never mapped
    stream = runtime.out("cudaStreamCreateWithFlags", 1)

    def copies() -> list[int]:
        """Across the middle, by an asynchronous and a synchronous copy."""
        across = (device, start + page - 32, 64, 1)
        return [runtime.cudaMemcpyAsync(*across, stream), runtime.cudaMemcpy(*across)]

    found: dict[str, Any] = {"pageable": copies()}
    found["register"] = [runtime.cudaHostRegister(start, page, 0)]
    found["half"] = copies()
    found["register"].append(runtime.cudaHostRegister(start + page, page, 1))
    found["two"] = copies()
    refused = {
        "registered": (start, page, 0),
        "overlapping": (start + 1, 1, 0),
        "pinned": (pinned, page, 0),
        "device": (device, page, 0),
        "device, free": (device + (1 << 30), page, 0),
        "unmapped": (hole, page, 0),
        "beyond the end": (start + page, SIZE_MAX, 0),
        "nothing": (start, 0, 0),
        "null": (0, page, 0),
        "flags": (start, page, 16),
        "read-only": (start, page, 8),
        "I/O memory": (start, page, 4),
    }
    found |= {name: runtime.cudaHostRegister(*words) for name, words in refused.items()}
    found["unregister"] = [runtime.cudaHostUnregister(start + offset) for offset in (0, 0, page + 1, page)]
    found["unregister pinned"] = runtime.cudaHostUnregister(pinned)
    found["pageable again"] = [*copies(), runtime.cudaHostRegister(start, 2 * page, 0), *copies()]
    found["end"] = runtime.cudaStreamSynchronize(stream)
    return found


@scenario
def host_flags(process: Process) -> dict[str, Any]:
    runtime = process.runtime
    registered = readable_pages(1)
    assert runtime.cudaHostRegister(registered, 64, 3) == 0
    addresses = {
        "default": runtime.out("cudaHostAlloc", 64, 0),
        "all": runtime.out("cudaHostAlloc", 64, 7),
        "registered": registered,
        "device": runtime.out("cudaMalloc", 64),
        "unknown": registered + 64,
    }
    found: dict[str, Any] = {"no such flag": runtime.cudaHostAlloc(Words([0]).address, 64, 8)}
    for name, address in addresses.items():
        flags, pointer = Words([0]), Words([0])
        codes = [
            runtime.cudaHostGetFlags(flags.address, address),
            runtime.cudaHostGetDevicePointer(pointer.address, address, 0),
        ]
        found[name] = [*codes, flags[0], "same" if pointer[0] == address else pointer[0]]
    return found


@scenario
def unregistering_waits(process: Process) -> list[int]:
    """Forgetting a range waits for the work that reads it."""
    runtime = process.runtime
    registered, device = readable_pages(1), runtime.out("cudaMalloc", 64)
    stream = runtime.out("cudaStreamCreateWithFlags", 1)
    assert runtime.cudaHostRegister(registered, 64, 0) == 0
    gate = Gate()
    gate.close(process, stream)
    assert runtime.cudaMemcpyAsync(device, registered, 64, 1, stream) == 0
    before = runtime.cudaStreamQuery(stream)
    gate.open()
    return [before, runtime.cudaHostUnregister(registered), runtime.cudaStreamQuery(stream)]
