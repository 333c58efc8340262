"""Loading CUDA's libraries, and proving which file answers to a name afterwards."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

from pytest_cudabatch.errors import CudaBatchError

__all__ = ["LibraryError", "load", "loaded_file"]


class LibraryError(CudaBatchError):
    """A CUDA library could not be loaded, or another file than the wanted one answers to its name."""


class _SymbolOrigin(ctypes.Structure):
    """Dl_info of dladdr(3)."""

    _fields_ = (
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("symbol", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
    )


def load(path: Path, *, visible: bool) -> ctypes.CDLL:
    """Load the library at ``path``; ``visible`` to dlsym(RTLD_DEFAULT) and later libraries, or not.

    Raises LibraryError with the loader's own words where it cannot be loaded.
    """
    mode = os.RTLD_NOW | (os.RTLD_GLOBAL if visible else os.RTLD_LOCAL)
    try:
        return ctypes.CDLL(str(path.absolute()), mode=mode)
    except OSError as error:
        raise LibraryError(f"cannot load {path}: {error}") from error


def loaded_file(name: str, symbol: str) -> Path | None:
    """Return the file of the loaded library that answers to the SONAME ``name``, or None.

    ``symbol`` is any function that the library exports. Nothing gets loaded.
    """
    try:
        library = ctypes.CDLL(name, mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    except OSError:
        return None
    origin = _SymbolOrigin()
    dladdr = ctypes.CDLL(None).dladdr
    dladdr.argtypes = (ctypes.c_void_p, ctypes.POINTER(_SymbolOrigin))
    found = dladdr(ctypes.cast(getattr(library, symbol), ctypes.c_void_p), ctypes.byref(origin))
    return Path(os.fsdecode(origin.file)) if found and origin.file else None
