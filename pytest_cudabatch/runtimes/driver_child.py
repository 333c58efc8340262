"""Asks libcuda what driver it is; a script of inquiry.py, run by path, importing nothing of this package.

``driver_child.py FD [LIBRARY]`` writes to the file descriptor FD. CUDA's answers: cuda.h (CUresult,
cuDriverGetVersion needs no cuInit); the driver's release: nvml.h.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys

_NAME_BYTES = 256


class _Reporter:
    """Writes each fact at once, so that it outlives a crash in the next step."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def __call__(self, **facts: object) -> None:
        os.write(self._descriptor, json.dumps(facts).encode() + b"\n")


class _SymbolOwner(ctypes.Structure):
    """Dl_info of dlfcn.h: the file and base of the library that holds an address, and the symbol there."""

    _fields_ = (
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("symbol", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
    )


def _loaded_path(cuda: ctypes.CDLL) -> str | None:
    """Return the file that the loader took, with symbolic links resolved."""
    owner = _SymbolOwner()
    function = ctypes.cast(cuda.cuDriverGetVersion, ctypes.c_void_p)
    if not ctypes.CDLL(None).dladdr(function, ctypes.byref(owner)):
        return None
    return os.path.realpath(os.fsdecode(owner.file))


def _report_release(report: _Reporter) -> None:
    """Report the driver's release by NVML, where the host has it."""
    report(step="nvmlSystemGetDriverVersion")
    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
        initialise, query = nvml.nvmlInit_v2, nvml.nvmlSystemGetDriverVersion
    except (OSError, AttributeError):
        return
    text = ctypes.create_string_buffer(_NAME_BYTES)
    if initialise() == 0 and query(text, ctypes.c_uint(_NAME_BYTES)) == 0:
        report(release=text.value.decode(errors="replace"))


def _report_gpus(cuda: ctypes.CDLL, report: _Reporter) -> int:
    """Report the devices by name and return how many there are."""
    count = ctypes.c_int(0)
    report(step="cuDeviceGetCount", count_code=cuda.cuDeviceGetCount(ctypes.byref(count)))
    gpus = []
    for ordinal in range(count.value):
        device, text = ctypes.c_int(0), ctypes.create_string_buffer(_NAME_BYTES)
        report(step="cuDeviceGetName")
        if cuda.cuDeviceGet(ctypes.byref(device), ordinal) == 0:
            cuda.cuDeviceGetName(text, _NAME_BYTES, device)
        gpus.append(text.value.decode(errors="replace"))
    report(gpus=gpus)
    return count.value


def _report_context(cuda: ctypes.CDLL, report: _Reporter) -> None:
    """Report whether the first device gives a context, which a name alone does not promise."""
    device, context = ctypes.c_int(0), ctypes.c_void_p()
    report(step="cuDevicePrimaryCtxRetain")
    cuda.cuDeviceGet(ctypes.byref(device), 0)
    code = cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
    report(context_code=code)
    if code == 0:
        release = getattr(cuda, "cuDevicePrimaryCtxRelease_v2", None) or cuda.cuDevicePrimaryCtxRelease
        release(device)


def _main(descriptor: int, library: str) -> None:
    report = _Reporter(descriptor)
    report(step="loading " + library)
    try:
        cuda = ctypes.CDLL(library)
    except OSError as error:
        report(load_error=str(error), end=True)
        return
    report(path=_loaded_path(cuda))
    version = ctypes.c_int(0)
    report(step="cuDriverGetVersion")
    if cuda.cuDriverGetVersion(ctypes.byref(version)) == 0:
        report(version=version.value)
    _report_release(report)
    report(step="cuInit")
    code = cuda.cuInit(0)
    report(init_code=code)
    if code == 0 and _report_gpus(cuda, report) > 0:
        _report_context(cuda, report)
    report(end=True)
    os._exit(0)  # the facts are told; what libcuda does at exit is not asked


if __name__ == "__main__":
    _main(int(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "libcuda.so.1")
