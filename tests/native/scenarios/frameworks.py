"""What a framework does beside copying: properties, registered kernels, functions that are not simulated."""

from __future__ import annotations

import ctypes
from typing import Any

from simulated import Process, Words, scenario


@scenario
def unsupported(process: Process, times: int) -> dict[str, Any]:
    """Call functions that are not simulated, several times each, and read the last error between."""
    runtime, driver = process.runtime, process.driver
    driver.cuInit(0)
    return {
        "driver": [driver.cuMemAdvise(0, 0, 0, 0) for _ in range(times)],
        "runtime": [[runtime.cudaMemAdvise(0, 0, 0, 0), runtime.cudaGetLastError()] for _ in range(times)],
        "cleared": runtime.cudaGetLastError(),
    }


@scenario
def unsupported_look_up(process: Process, name: str, version: int) -> list[int]:
    """Look a function up that is not simulated, and call it: the look-up's code and status, the answer."""
    function, status = Words([0]), Words([99])
    text = ctypes.create_string_buffer(name.encode())
    code = process.driver.cuGetProcAddress_v2(
        ctypes.addressof(text), function.address, version, 0, status.address
    )
    if function[0] == 0:
        return [code, status[0] & 0xFFFFFFFF]
    return [code, status[0] & 0xFFFFFFFF, ctypes.CFUNCTYPE(ctypes.c_int)(function[0])()]


@scenario
def properties(process: Process, entry: str, size: int, offsets: dict[str, int]) -> dict[str, Any]:
    """Read a device's properties into a buffer with a guard behind it."""
    buffer = ctypes.create_string_buffer(b"\xee" * (size + 64), size + 64)
    code = getattr(process.runtime, entry)(ctypes.addressof(buffer), 0)
    members = {name: int.from_bytes(buffer.raw[at : at + 4], "little") for name, at in offsets.items()}
    return {
        "code": code,
        "name": buffer.raw[:256].rstrip(b"\0").decode(),
        "members": members,
        "guard": buffer.raw[size:] == b"\xee" * 64,
        "last byte": buffer.raw[size - 1],
    }


@scenario
def launch(process: Process, kernels: list[str], launched: int) -> dict[str, Any]:
    """Register kernels as a compiler's host code does, and launch one by each of its ways, twice."""
    runtime = process.runtime
    stubs = [ctypes.create_string_buffer(1) for _ in kernels]
    names = [ctypes.create_string_buffer(name.encode()) for name in kernels]
    register = runtime.handle.__cudaRegisterFatBinary
    register.restype = ctypes.c_void_p
    image = register(None)
    for stub, name in zip(stubs, names, strict=True):
        address, text = ctypes.addressof(stub), ctypes.addressof(name)
        getattr(runtime, "__cudaRegisterFunction")(image, address, text, text, 0xFFFFFFFF, 0, 0, 0, 0, 0)
    getattr(runtime, "__cudaRegisterFatBinaryEnd")(image)
    function = ctypes.addressof(stubs[launched])
    kernel = Words([0])
    found = getattr(runtime, "__cudaGetKernel")(kernel.address, function)
    refused = [
        runtime.cudaLaunchKernelExC(0, function, 0),
        runtime.cudaLaunchKernelExC(0, kernel[0], 0),
        runtime.cudaLaunchKernelExC(0, 0x10, 0),
    ]
    return {
        "image": image is not None,
        "kernel": found,
        "refused": refused,
        "last": runtime.cudaGetLastError(),
    }


@scenario
def stream_queries(process: Process) -> dict[str, int]:
    """Ask a stream for its priority and flags, a device for its range of priorities and its peers."""
    runtime = process.runtime
    stream, lowest, highest, can = Words([0]), Words([0]), Words([0]), Words([7])
    assert runtime.cudaStreamCreateWithPriority(stream.address, 1, -2) == 0
    assert runtime.cudaDeviceGetStreamPriorityRange(lowest.address, highest.address) == 0
    priority, flags = Words([0]), Words([0])
    assert runtime.cudaStreamGetPriority(stream[0], priority.address) == 0
    assert runtime.cudaStreamGetFlags(stream[0], flags.address) == 0
    assert runtime.cudaDeviceCanAccessPeer(can.address, 0, 1) == 0
    event = runtime.out("cudaEventCreate")
    return {
        "priority": ctypes.c_int(priority[0] & 0xFFFFFFFF).value,
        "flags": flags[0],
        "highest": ctypes.c_int(highest[0] & 0xFFFFFFFF).value,
        "peer": can[0] & 0xFFFFFFFF,
        "recorded": runtime.cudaEventRecordWithFlags(event, stream[0], 0),
    }
