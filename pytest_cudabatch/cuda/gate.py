"""Gates: work that holds a stream up until it is let through."""

from __future__ import annotations

import ctypes
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_cudabatch.cuda.runtime import Runtime

__all__ = ["Gate"]

_SEMAPHORE_BYTES = 32  # sizeof(sem_t) of 64-bit glibc and musl
_kept: list[object] = []  # semaphores that a stream may still wait for when the process ends


class Gate:
    """A host function on ``stream`` that waits until the gate is opened.

    It waits in C and needs nothing of the interpreter. What was queued before runs, what is queued behind it
    does not. A program that waits for the stream, or frees memory, must have the gate opened by somebody
    else: ``open_in`` lets a timer do that.
    """

    def __init__(self, runtime: Runtime, stream: int) -> None:
        self._library = ctypes.CDLL(None)
        self._semaphore = ctypes.create_string_buffer(_SEMAPHORE_BYTES)
        self._timer: threading.Timer | None = None
        _kept.append(self._semaphore)
        self._library.sem_init(self._semaphore, 0, 0)
        wait = ctypes.cast(self._library.sem_wait, ctypes.c_void_p).value
        assert wait is not None  # a function of the C library has an address
        runtime.launch_host_function(stream, wait, ctypes.addressof(self._semaphore))

    def open(self) -> None:
        """Let the stream go on. Idempotent."""
        self._library.sem_post(self._semaphore)

    def open_in(self, seconds: float) -> None:
        """Let the stream go on after so many seconds, whatever this thread does meanwhile."""
        self._timer = threading.Timer(seconds, self.open)
        self._timer.daemon = True
        self._timer.start()
