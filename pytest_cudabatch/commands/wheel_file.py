"""Writing a wheel: its files, then a RECORD of their checksums.

Facts: packaging.python.org, "Binary distribution format".
"""

from __future__ import annotations

import base64
import hashlib
import zipfile
from types import TracebackType

__all__ = ["WheelWriter"]


class WheelWriter:
    """A wheel being written into ``archive``; as a context manager it ends the wheel with its RECORD."""

    def __init__(self, archive: zipfile.ZipFile, information: str) -> None:
        """Write into ``archive``; ``information`` is the name of the wheel's .dist-info directory."""
        self._archive = archive
        self._record = f"{information}/RECORD"
        self._rows: list[str] = []

    def add(self, entry: zipfile.ZipInfo, content: bytes) -> None:
        """Add one file, compressed as small as can be."""
        self._archive.writestr(entry, content, zipfile.ZIP_DEFLATED, compresslevel=9)
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
        self._rows.append(f"{entry.filename},sha256={digest},{len(content)}\n")

    def __enter__(self) -> WheelWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._archive.writestr(self._record, "".join((*self._rows, f"{self._record},,\n")))
