"""What a contract process works on: one runtime, one buffer of each kind, and the driver's functions."""

from __future__ import annotations

import ctypes
from typing import Any

from pytest_cudabatch.contract.entries import Entry
from pytest_cudabatch.contract.words import MissingFunctionError, Words, call, function_at, function_of
from pytest_cudabatch.cuda import Runtime

__all__ = ["DEVICE_SOURCE", "HOST_TARGET", "SPAN", "UNTOUCHED", "Bench"]

SPAN = 1 << 20
"""Bytes of each buffer."""

UNTOUCHED = 0xDEAD
"""What failIdx holds before a call."""

_FILLED = 1 << 16
"""Bytes at the start of each buffer that rows use."""

HOST_TARGET = DEVICE_SOURCE = _FILLED // 2
"""Offsets: from here on the pinned buffer is blank and the device's has the pattern; before, the reverse."""

_PATTERN = bytes((index * 37 + index // 251) % 251 for index in range(_FILLED // 2))
_BLANK = 0xFF
"""A byte that the pattern, whose bytes are below 251, does not have."""


class Bench:
    """A runtime with memory: ``pinned`` and ``device`` are addresses of SPAN bytes each."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        runtime.check("cudaSetDevice", 0)
        self.pinned = runtime.malloc_host(SPAN).address
        self.device = runtime.malloc(SPAN).address
        self._library = ctypes.CDLL(str(runtime.path))
        self._driver = ctypes.CDLL("libcuda.so.1")  # the one that the runtime has loaded by this name

    def function(self, entry: Entry) -> Any:
        """Return the function of ``entry``, for ``call``. Raises MissingFunctionError."""
        if entry.lookup is not None:
            return function_at(self._looked_up(entry.name, *entry.lookup))
        return function_of(self._library if entry.of_runtime else self._driver, entry.name)

    def call(self, name: str, *words: int) -> int:
        """Call any function of the runtime by its name. Raises MissingFunctionError."""
        return call(function_of(self._library, name), *words)

    def exported_name(self, address: int, names: tuple[str, ...]) -> str:
        """Return under which of ``names`` the driver exports ``address``; ``"nothing"`` for NULL."""
        if address == 0:
            return "nothing"
        for name in names:
            exported = getattr(self._driver, name, None)
            if exported is not None and ctypes.cast(exported, ctypes.c_void_p).value == address:
                return name
        return "a function that is not exported"

    def new_stream(self) -> int:
        """Create a non-blocking stream."""
        return self.runtime.stream_create(non_blocking=True)

    def reset(self, added: int = 0) -> None:
        """Fill both buffers: where rows read (see HOST_TARGET) the pattern plus ``added``, else blanks."""
        half = _FILLED // 2
        ctypes.memmove(self.pinned, bytes(value + added for value in _PATTERN) if added else _PATTERN, half)
        ctypes.memset(self.pinned + half, _BLANK, half)
        self.runtime.memset(self.device, _BLANK, half)
        self.runtime.memcpy(self.device + half, self.pinned, half)
        self.runtime.device_synchronize()

    def owns(self, address: int, nbytes: int) -> bool:
        """Whether the bytes lie in the part of a buffer that rows use."""
        return any(
            start <= address and address + nbytes <= start + _FILLED for start in (self.pinned, self.device)
        )

    def equal(self, destination: int, source: int, nbytes: int) -> bool:
        """Whether both hold the same bytes, whatever memory they are."""
        return self._read(destination, nbytes) == self._read(source, nbytes)

    def _read(self, address: int, nbytes: int) -> bytes:
        if not self.owns(address, nbytes):
            return ctypes.string_at(address, nbytes)
        buffer = ctypes.create_string_buffer(max(1, nbytes))
        self.runtime.memcpy(ctypes.addressof(buffer), address, nbytes)
        return buffer.raw[:nbytes]

    def _looked_up(self, entry_name: str, name: str, version: int, flags: int) -> int:
        text, found, status = ctypes.create_string_buffer(name.encode()), Words([0]), Words([0])
        lookup = function_of(self._driver, "cuGetProcAddress_v2")
        code = call(lookup, ctypes.addressof(text), found.address, version, flags, status.address)
        if code != 0 or found[0] == 0:
            raise MissingFunctionError(entry_name)
        return found[0]
