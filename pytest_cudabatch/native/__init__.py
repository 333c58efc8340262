"""Where the built native libraries lie: a leaf that every room may import.

The C sources lie beside this file; the libraries built from them are installed under ``lib/``, which
an editable install keeps in another directory than the sources.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from pytest_cudabatch.errors import InstallationError

__all__ = ["library"]


def library(name: str) -> Path:
    """Return the path of an installed native library.

    ``name`` is relative to ``pytest_cudabatch/native/lib``, such as ``simcuda/driver-13.0/libcuda.so.1``.
    Raises InstallationError where the file is missing, which means that the package was not built.
    """
    path = Path(str(files("pytest_cudabatch") / "native" / "lib"), name)
    if not path.is_file():
        raise InstallationError(
            f"native library {name!r} is missing at {path}: install the package (pip install .), "
            "a source tree alone has no built libraries"
        )
    return path
