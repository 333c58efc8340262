"""Calls into C with any number of 64-bit words: a wrong parameter list is only a longer or shorter one."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Sequence
from typing import Any

__all__ = ["LITTER", "MissingFunctionError", "Pages", "Words", "call", "function_at", "function_of"]

LITTER = 0xDEAD << 48
"""A word that is no address on any machine: what lies behind the arguments of a call with too few."""

_WORD = 2**64 - 1


class MissingFunctionError(Exception):
    """A library does not have the function ``name``."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(name)


def function_of(library: ctypes.CDLL, name: str) -> Any:
    """Return the exported function, for ``call``. Raises MissingFunctionError."""
    try:
        return getattr(library, name)
    except AttributeError:
        raise MissingFunctionError(name) from None


def function_at(address: int) -> Any:
    """Return the function at ``address``, for ``call``."""
    return ctypes.CFUNCTYPE(ctypes.c_int)(address)


def call(function: Any, *words: int) -> int:
    """Call a C function with 64-bit words and return its int."""
    function.restype = ctypes.c_int
    return int(function(*(ctypes.c_uint64(word & _WORD) for word in words)))


class Words:
    """An array of 64-bit words in memory. It must be kept while C may use its ``address``."""

    def __init__(self, values: Sequence[int]) -> None:
        self._array = (ctypes.c_uint64 * max(1, len(values)))(*values)
        self.address = ctypes.addressof(self._array)

    def __getitem__(self, index: int) -> int:
        return int(self._array[index])


class Pages:
    """Anonymous memory with a page behind it that nobody may touch. It stays until the process ends."""

    def __init__(self, nbytes: int = mmap.PAGESIZE) -> None:
        self.nbytes = nbytes
        self._map = mmap.mmap(-1, nbytes + mmap.PAGESIZE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self._map))
        self.hole = self.address + nbytes
        if call(ctypes.CDLL(None).mprotect, self.hole, mmap.PAGESIZE, 0) != 0:
            raise OSError("mprotect refused to close a page")
        _KEPT.append(self)


_KEPT: list[Pages] = []
"""Every mapping made, since CUDA may use its address after the call; only ever appended to."""
