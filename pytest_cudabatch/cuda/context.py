"""Whether a process's context still works, asked without making one or loading anything."""

from __future__ import annotations

import ctypes
import os

from pytest_cudabatch.errors import CudaError

__all__ = ["STICKY_ERRORS", "lost_context"]

STICKY_ERRORS = frozenset({700, 702, 710, 714, 715, 716, 717, 718, 719, 720})
"""Errors that leave the context unusable: cudaErrorIllegalAddress to cudaErrorCooperativeLaunchTooLarge of
driver_types.h, whose comments say that the process must be terminated. cuda.h has the same numbers."""


def lost_context() -> CudaError | None:
    """Wait for the work of the calling thread's context; return the error that has made it unusable, if any.

    A kernel or copy may fail long after the call that started it has returned 0. None also where no libcuda
    is loaded, or the thread has no context.
    """
    try:
        driver = ctypes.CDLL("libcuda.so.1", mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    except OSError:
        return None
    context = ctypes.c_void_p()
    if driver.cuCtxGetCurrent(ctypes.byref(context)) != 0 or not context.value:
        return None
    code = int(driver.cuCtxSynchronize())
    return CudaError("cuCtxSynchronize", code) if code in STICKY_ERRORS else None
