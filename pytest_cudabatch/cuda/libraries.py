"""Loading CUDA's libraries, and proving which file answers to a name afterwards."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

from pytest_cudabatch.errors import CudaBatchError

__all__ = ["LibraryError", "load", "load_by_soname", "loaded_file"]


class LibraryError(CudaBatchError):
    """A CUDA library could not be loaded, or another file than the wanted one answers to its name."""


class _LoadedObject(ctypes.Structure):
    """The public head of struct link_map of <link.h>."""

    _fields_ = (("base", ctypes.c_void_p), ("file", ctypes.c_char_p))


_LINK_MAP = 2  # RTLD_DI_LINKMAP of <dlfcn.h>


def load(path: Path, *, visible: bool) -> ctypes.CDLL:
    """Load the library at ``path``; ``visible`` to dlsym(RTLD_DEFAULT) and later libraries, or not.

    Raises LibraryError with the loader's own words where it cannot be loaded.
    """
    return _load(str(path.absolute()), os.RTLD_GLOBAL if visible else os.RTLD_LOCAL)


def load_by_soname(name: str) -> ctypes.CDLL:
    """Load the library that the loader itself finds under ``name``, out of sight of other libraries.

    Raises LibraryError with the loader's own words where there is none.
    """
    return _load(name, os.RTLD_LOCAL)


def _load(name: str, visibility: int) -> ctypes.CDLL:
    try:
        return ctypes.CDLL(name, mode=os.RTLD_NOW | visibility)
    except OSError as error:
        raise LibraryError(f"cannot load {name}: {error}") from error


def loaded_file(name: str) -> Path | None:
    """Return the file of the loaded library that answers to the SONAME ``name``, or None.

    Nothing gets loaded. The loader's own record is asked and not the address of a function, which an
    interposer may have replaced.
    """
    try:
        library = ctypes.CDLL(name, mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    except OSError:
        return None
    loaded = ctypes.POINTER(_LoadedObject)()
    failed = ctypes.CDLL(None).dlinfo(ctypes.c_void_p(library._handle), _LINK_MAP, ctypes.byref(loaded))
    return None if failed else Path(os.fsdecode(loaded.contents.file))
