"""Versions, look-ups, and error texts."""

from __future__ import annotations

import ctypes
from typing import Any

from simulated import LITTER, Process, Words, scenario


@scenario
def versions(process: Process) -> list[int]:
    runtime = process.runtime
    return [runtime.out("cudaDriverGetVersion"), runtime.out("cudaRuntimeGetVersion")]


@scenario
def refused_driver(process: Process) -> dict[str, int]:
    version = Words([7])
    return {
        "cuInit": process.driver.cuInit(0),
        "cuInit again": process.driver.cuInit(0),
        "cuDriverGetVersion": process.driver.cuDriverGetVersion(version.address),
        "version": version[0],
    }


@scenario
def refused_runtime(process: Process) -> dict[str, int]:
    version = Words([7])
    return {
        "cudaRuntimeGetVersion": process.runtime.cudaRuntimeGetVersion(version.address),
        "version": version[0],
        "cudaDeviceSynchronize": process.runtime.cudaDeviceSynchronize(),
    }


@scenario
def look_ups(process: Process, asked: list[tuple[str, int, int]], form: int) -> list[dict[str, Any]]:
    return [_look_up(process, name, version, flags, form) for name, version, flags in asked]


def _look_up(process: Process, name: str, version: int, flags: int, form: int) -> dict[str, Any]:
    """Ask cuGetProcAddress in its form of 4 or 5 parameters, and name what lies at the address."""
    driver = process.driver
    function, status = Words([LITTER]), Words([99])
    text = ctypes.create_string_buffer(name.encode())
    words = [ctypes.addressof(text), function.address, version, flags]
    if form == 5:
        code = driver.cuGetProcAddress_v2(*words, status.address)
    else:
        code = driver.cuGetProcAddress(*words)
    return {"code": code, "symbol": _symbol(function[0]), "status": status[0] & 0xFFFFFFFF}


class _DlInfo(ctypes.Structure):
    _fields_ = (
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("symbol", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
    )


def _symbol(address: int) -> str | None:
    if address in (0, LITTER):
        return "untouched" if address else None
    found = _DlInfo()
    assert ctypes.CDLL(None).dladdr(ctypes.c_void_p(address), ctypes.byref(found)) != 0
    assert found.address == address
    return str(found.symbol.decode())


@scenario
def entry_point(
    process: Process, function: str, name: str, version: int | None, flags: int
) -> dict[str, Any]:
    pointer, status = Words([LITTER]), Words([99])
    text = ctypes.create_string_buffer(name.encode())
    words = [
        ctypes.addressof(text),
        pointer.address,
        *([] if version is None else [version]),
        flags,
        status.address,
    ]
    code = getattr(process.runtime, function)(*words)
    return {"code": code, "symbol": _symbol(pointer[0]), "status": status[0] & 0xFFFFFFFF}


@scenario
def without_driver(process: Process) -> dict[str, int]:
    runtime = process.runtime
    answer = Words([99])
    return {
        "cudaDriverGetVersion": runtime.cudaDriverGetVersion(answer.address),
        "driver version": answer[0] & 0xFFFFFFFF,
        "cudaMalloc": runtime.cudaMalloc(answer.address, 64),
        "cudaGetDeviceCount": runtime.cudaGetDeviceCount(answer.address),
        "batch": runtime.cudaMemcpyBatchAsync(*[LITTER] * 9),
    }


@scenario
def error_names(process: Process, code: int) -> list[Any]:
    answers: list[Any] = []
    for name in ("cudaGetErrorName", "cudaGetErrorString"):
        function = getattr(process.runtime.handle, name)
        function.restype = ctypes.c_char_p
        answers.append(function(code).decode())
    for name in ("cuGetErrorName", "cuGetErrorString"):
        text = ctypes.c_char_p()
        returned = process.driver.__getattr__(name)(code, ctypes.addressof(text))
        answers.append(returned if text.value is None else text.value.decode())
    return answers
