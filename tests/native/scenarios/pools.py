"""Memory pools, memory that streams allocate and free, fills by element, what a capture tells of itself."""

from __future__ import annotations

import ctypes
from typing import Any

from simulated import NON_BLOCKING, Gate, Process, Words, scenario

DEVICE, HOST, HOST_NUMA = 1, 2, 3
THRESHOLD, USED, MOST_USED, LIMIT = 4, 7, 8, 13
POINTER_POOL = 17


def properties(location: tuple[int, int], *, kind: int = 1, handles: int = 0, limit: int = 0) -> Words:
    """A CUmemPoolProps: allocation type, handle types, location, security, limit, then reserved bytes."""
    return Words([kind | handles << 32, location[0] | location[1] << 32, 0, limit, *[0] * 7])


def create(process: Process, location: tuple[int, int], **more: int) -> tuple[int, int]:
    """Make a pool: the code, and its handle."""
    pool, asked = Words([0]), properties(location, **more)
    return process.driver.cuMemPoolCreate(pool.address, asked.address), pool[0]


def attribute(process: Process, pool: int, which: int) -> list[int]:
    value = Words([0])
    return [process.driver.cuMemPoolGetAttribute(pool, which, value.address), value[0]]


@scenario
def stream_ordered(process: Process, location: int) -> dict[str, Any]:
    """Allocate, use, free and allocate again while the stream is held up."""
    driver = process.start_driver()
    stream = driver.out("cuStreamCreate", NON_BLOCKING)
    pool = create(process, (location, 0))[1]
    address = driver.out("cuMemAllocFromPoolAsync", 4096, pool, stream)
    target = driver.out("cuMemHostAlloc", 4096, 0)
    gate = Gate()
    assert driver.cuLaunchHostFunc(stream, gate.address, 0) == 0
    found: dict[str, Any] = {
        "fill": driver.cuMemsetD32Async(address, 0x01020304, 1024, stream),
        "copy": driver.cuMemcpyAsync(target, address, 4096, stream),
        "free": driver.cuMemFreeAsync(address, stream),
        "freed twice": driver.cuMemFreeAsync(address, stream),
        "copied after": driver.cuMemcpyAsync(target, address, 4096, stream),
        "used before": attribute(process, pool, USED),
    }
    other = driver.out("cuMemAllocFromPoolAsync", 4096, pool, stream)
    gate.open()
    assert driver.cuStreamSynchronize(stream) == 0
    return {
        **found,
        "reused early": other == address,
        "bytes": ctypes.string_at(target, 4096) == bytes([4, 3, 2, 1]) * 1024,
        "used after": attribute(process, pool, USED),
        "most used": attribute(process, pool, MOST_USED),
        "freed at once": driver.cuMemFree_v2(other) if location == DEVICE else driver.cuMemFreeHost(other),
    }


@scenario
def pools(process: Process) -> dict[str, Any]:
    """What makes a pool, what does not, its limit, its end, and which is the current one."""
    driver = process.start_driver()
    stream = driver.out("cuStreamCreate", NON_BLOCKING)

    limited = create(process, (DEVICE, 0), limit=3 << 20)[1]
    kept = driver.out("cuMemAllocFromPoolAsync", 3 << 20, limited, stream)
    default, location = driver.out("cuDeviceGetDefaultMemPool", 0), Words([DEVICE])
    scratch, of_pointer = Words([0]), Words([0])
    found: dict[str, Any] = {
        "no such device": create(process, (DEVICE, 9))[0],
        "no such node": create(process, (HOST_NUMA, 1))[0],
        "no location": create(process, (0, 0))[0],
        "no kind": create(process, (DEVICE, 0), kind=0)[0],
        "handle types": create(process, (DEVICE, 0), handles=1)[0],
        "limit": attribute(process, limited, LIMIT),
        "beyond the limit": driver.cuMemAllocFromPoolAsync(scratch.address, 2 << 20, limited, stream),
        "pool of the pointer": driver.cuPointerGetAttribute(of_pointer.address, POINTER_POOL, kept) == 0
        and of_pointer[0] == limited,
        "current": driver.out("cuDeviceGetMemPool", 0) == default,
        "set": driver.cuDeviceSetMemPool(0, limited),
        "now current": driver.out("cuMemGetMemPool", location.address, 1) == limited,
        "of no bytes": driver.cuMemAllocAsync(scratch.address, 0, stream),
        "destroyed": driver.cuMemPoolDestroy(limited),
    }
    return {
        **found,
        "destroyed twice": driver.cuMemPoolDestroy(limited),
        "default destroyed": driver.cuMemPoolDestroy(default),
        "current again": driver.out("cuDeviceGetMemPool", 0) == default,
        "kept": driver.cuMemsetD8_v2(kept, 1, 3 << 20),
        "freed": driver.cuMemFreeAsync(kept, stream),
        "at last": driver.cuStreamSynchronize(stream),
    }


@scenario
def unordered_free(process: Process) -> list[int]:
    """Memory of the program, of no pool: pinned, a pointer inside device memory, and device memory."""
    driver = process.start_driver()
    stream = driver.out("cuStreamCreate", NON_BLOCKING)
    pinned, device = driver.out("cuMemHostAlloc", 64, 0), driver.out("cuMemAlloc_v2", 64)
    codes = [driver.cuMemFreeAsync(address, stream) for address in (pinned, device + 8, device, 0)]
    return [*codes, driver.cuStreamSynchronize(stream), driver.cuMemFree_v2(device)]


@scenario
def element_fills(process: Process) -> dict[str, Any]:
    driver = process.start_driver()
    device, back = driver.out("cuMemAlloc_v2", 64), ctypes.create_string_buffer(64)
    codes = [
        driver.cuMemsetD8_v2(device, 0x11, 64),
        driver.cuMemsetD16_v2(device + 2, 0x2233, 3),
        driver.cuMemsetD32_v2(device + 8, 0x44556677, 2),
    ]
    refused = [driver.cuMemsetD16_v2(device + 1, 0, 1), driver.cuMemsetD32_v2(device + 2, 0, 1)]
    beyond = [driver.cuMemsetD32_v2(device, 0, 17), driver.cuMemsetD32_v2(device, 0, 1 << 62)]
    assert driver.cuMemcpyDtoH_v2(ctypes.addressof(back), device, 64) == 0
    return {"codes": codes, "misaligned": refused, "beyond": beyond, "bytes": back.raw[:18].hex()}


@scenario
def growing_capture(process: Process) -> dict[str, Any]:
    """Graph and dependencies of a capture, before and after its first node; its graph cannot be destroyed."""
    driver = process.start_driver()
    stream = driver.out("cuStreamCreate", NON_BLOCKING)
    device = driver.out("cuMemAlloc_v2", 64)

    def ask() -> list[Any]:
        status, number, graph, nodes, edges, count = (Words([0]) for _ in range(6))
        outs = (status, number, graph, nodes, edges, count)
        assert driver.cuStreamGetCaptureInfo_v3(stream, *(out.address for out in outs)) == 0
        node = ctypes.c_void_p.from_address(nodes[0]).value if count[0] else None
        return [status[0], graph[0], count[0], node]

    outside = ask()
    assert driver.cuStreamBeginCapture_v2(stream, 2) == 0
    begun = ask()
    assert driver.cuMemsetD8Async(device, 1, 64, stream) == 0
    grown = ask()
    destroyed = driver.cuGraphDestroy(grown[1])
    graph, node, count = Words([0]), Words([0]), Words([1])
    allocated = driver.cuMemAllocAsync(node.address, 64, stream)
    assert driver.cuStreamEndCapture(stream, graph.address) == 0
    assert driver.cuGraphGetNodes(graph[0], node.address, count.address) == 0
    return {
        "outside": outside,
        "begun": [begun[0], begun[1] == graph[0], *begun[2:]],
        "grown": [grown[0], grown[1] == graph[0], grown[2], grown[3] == node[0]],
        "destroyed": destroyed,
        "allocated": allocated,
        "ended": driver.cuGraphDestroy(graph[0]),
    }
