"""Several devices: what belongs to which of them, and what does not mix."""

from __future__ import annotations

import ctypes
from typing import Any

from contexts import in_new_thread
from simulated import NON_BLOCKING, Gate, Process, Words, in_fork, scenario

DEVICE_ORDINAL, CONTEXT = 9, 1


def count(process: Process) -> int:
    return process.runtime.out("cudaGetDeviceCount") & 0xFFFFFFFF


def current(process: Process) -> int:
    return process.runtime.out("cudaGetDevice") & 0xFFFFFFFF


def attribute(process: Process, name: int, address: int) -> int:
    found = Words([0])
    assert process.driver.cuPointerGetAttribute(found.address, name, address) == 0
    return found[0]


@scenario
def devices(process: Process) -> dict[str, Any]:
    runtime = process.runtime
    names = []
    for device in range(count(process)):
        buffer = ctypes.create_string_buffer(16)
        assert runtime.cudaDeviceGetPCIBusId(ctypes.addressof(buffer), 16, device) == 0
        names.append(buffer.value.decode())
    chosen = [current(process), runtime.cudaSetDevice(1), current(process)]
    return {
        "names": names,
        "chosen": chosen,
        "no such": [runtime.cudaSetDevice(device) for device in (2, -1)],
        "still": current(process),
        "in a new thread": in_new_thread(lambda: current(process)),
    }


@scenario
def memory_of_devices(process: Process) -> dict[str, Any]:
    runtime = process.runtime
    addresses, contexts, free = [], [], []
    for device in (0, 1):
        assert runtime.cudaSetDevice(device) == 0
        addresses.append(runtime.out("cudaMalloc", 1 << 20))
        contexts.append(process.driver.out("cuCtxGetCurrent"))
        left, total = Words([0]), Words([0])
        assert runtime.cudaMemGetInfo(left.address, total.address) == 0
        free.append(total[0] - left[0])
    host = runtime.out("cudaMallocHost", 4)
    codes = [runtime.cudaMemset(addresses[0], 5, 4), runtime.cudaMemcpy(addresses[1], addresses[0], 4, 3)]
    codes.append(runtime.cudaMemcpy(host, addresses[1], 4, 2))
    return {
        "ordinals": [attribute(process, DEVICE_ORDINAL, address) for address in addresses],
        "contexts": [
            attribute(process, CONTEXT, address) == contexts[i] for i, address in enumerate(addresses)
        ],
        "used": free,
        "codes": codes,
        "copied": ctypes.string_at(host, 4).hex(),
        "a host access": in_fork(lambda: ctypes.string_at(addresses[1], 1)[0]),
    }


@scenario
def streams_of_devices(process: Process) -> dict[str, Any]:
    """A gate on the second device's legacy stream holds up what is ordered with it, and only that."""
    runtime = process.runtime
    target = runtime.out("cudaMallocHost", 3)
    ctypes.memset(target, 0, 3)
    first = runtime.out("cudaStreamCreate")
    event = runtime.out("cudaEventCreate")
    assert runtime.cudaSetDevice(1) == 0
    second = runtime.out("cudaStreamCreate")
    gate = Gate()
    gate.close(process, 1)
    found = {
        "foreign event": runtime.cudaEventRecord(event, second),
        "held": runtime.cudaMemsetAsync(target, 1, 1, second),
        "query": runtime.cudaStreamQuery(second),
        "free": [runtime.cudaMemsetAsync(target + 1, 1, 1, first), runtime.cudaStreamSynchronize(first)],
    }
    assert runtime.cudaSetDevice(0) == 0
    found["the first device"] = runtime.cudaDeviceSynchronize()
    found["before"] = ctypes.string_at(target, 2).hex()
    found["across"] = [runtime.cudaEventRecord(event, first), runtime.cudaStreamWaitEvent(second, event, 0)]
    gate.open()
    assert runtime.cudaSetDevice(1) == 0
    found["the second device"] = runtime.cudaDeviceSynchronize()
    found["after"] = ctypes.string_at(target, 2).hex()
    return found


@scenario
def a_reset_is_of_one_device(process: Process) -> list[Any]:
    runtime = process.runtime
    kept = runtime.out("cudaMalloc", 4)
    stream = runtime.out("cudaStreamCreateWithFlags", NON_BLOCKING)
    assert runtime.cudaSetDevice(1) == 0
    gone = runtime.out("cudaMalloc", 4)
    codes = [runtime.cudaDeviceReset(), runtime.cudaFree(gone)]
    return [*codes, runtime.cudaMemsetAsync(kept, 0, 4, stream), runtime.cudaStreamSynchronize(stream)]
