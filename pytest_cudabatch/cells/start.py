"""Starts pytest in a zygote: a script, run by its path, that imports nothing of the package it lies in.

Its first argument is the directory whose modules can be imported, as under ``python -m pytest``, or "" for
none, where a checkout would shadow the installed package; the others are pytest's.
"""

from __future__ import annotations

import ctypes
import importlib.util
import runpy
import sys
from pathlib import Path

_OPENSSL_INIT_NO_ATEXIT = 0x80000
"""Of <openssl/crypto.h>."""


def _keep_openssl_from_cleaning_up() -> None:
    """Leave what OpenSSL holds to the process's end: freeing it there costs each cell 350 page faults.

    Whoever asks it first decides, and pytest imports hashlib, so it is asked here.
    """
    found = importlib.util.find_spec("_hashlib")
    if found is None or found.origin is None or not Path(found.origin).is_file():
        return  # built without it, or with one inside the interpreter
    initialise = getattr(ctypes.CDLL(found.origin), "OPENSSL_init_crypto", None)
    if initialise is not None:
        initialise(ctypes.c_uint64(_OPENSSL_INIT_NO_ATEXIT), None)


def _start() -> None:
    _, directory, *arguments = sys.argv
    sys.path[:1] = [directory] if directory else []  # in place of this file's own directory
    sys.argv[1:] = arguments
    _keep_openssl_from_cleaning_up()
    runpy.run_module("pytest", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    _start()
