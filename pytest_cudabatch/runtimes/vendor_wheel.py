"""Takes the one libcudart out of a vendor's wheel, checked, without unpacking anything else.

Facts: the wheel format (packaging.python.org, "Binary distribution format"): RECORD lists each file with
its sha256 in unpadded url-safe base64.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import re
import zipfile
from pathlib import Path

from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from pytest_cudabatch.abi import CudaVersion
from pytest_cudabatch.errors import CudaBatchError
from pytest_cudabatch.runtimes.elf import SharedObject
from pytest_cudabatch.runtimes.record import Record

__all__ = ["WheelError", "libcudart_of"]

_LIBRARY = re.compile(r"(?:[^/]+/)*(libcudart\.so\.\d+)")
_LARGEST_LIBRARY = 64 << 20
"""Bytes; real ones have under 1 MB, so what claims more is not a libcudart."""


class WheelError(CudaBatchError):
    """A wheel is damaged, or is not one of the CUDA runtime."""


def libcudart_of(wheel: Path) -> tuple[Record, bytes]:
    """Return the libcudart in ``wheel`` and its record. Raises WheelError unless all of it fits together."""
    try:
        release = str(parse_wheel_filename(wheel.name)[1])
        with zipfile.ZipFile(wheel) as archive:
            member = _only_library(archive)
            content = archive.read(member)
            _check_recorded(archive, member.filename, content)
        name = member.filename.rpartition("/")[2]
        _check_library(content, name, CudaVersion.parse(release))
    except (InvalidWheelFilename, zipfile.BadZipFile, OSError, ValueError, CudaBatchError) as error:
        raise WheelError(f"{wheel.name} is not a usable wheel of the CUDA runtime: {error}") from error
    return Record(release, name, hashlib.sha256(content).hexdigest(), wheel.name), content


def _only_library(archive: zipfile.ZipFile) -> zipfile.ZipInfo:
    found = [member for member in archive.infolist() if _LIBRARY.fullmatch(member.filename)]
    if len(found) != 1:
        raise WheelError(f"it holds {len(found)} libcudart")
    if found[0].file_size > _LARGEST_LIBRARY:
        raise WheelError(f"its libcudart claims {found[0].file_size} bytes")
    return found[0]


def _check_recorded(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    """Compare with the checksum in RECORD."""
    records = [entry for entry in archive.namelist() if re.fullmatch(r"[^/]+\.dist-info/RECORD", entry)]
    if len(records) != 1:
        raise WheelError(f"it holds {len(records)} RECORD files")
    rows = csv.reader(io.StringIO(archive.read(records[0]).decode()))
    recorded = {row[0]: row[1] for row in rows if len(row) >= 2}
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
    if recorded.get(name) != f"sha256={digest}":
        raise WheelError(f"{name} differs from its checksum in RECORD")


def _check_library(content: bytes, name: str, version: CudaVersion) -> None:
    """Compare file name, SONAME and the wheel's version."""
    soname = SharedObject.parse(content).soname
    if not soname == name == f"libcudart.so.{version.major}":
        raise WheelError(f"{name} has the SONAME {soname}, and the wheel is of CUDA {version}")
