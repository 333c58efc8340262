"""The packages under test that a bundle takes along: of each wheel what its adapter uses, and nothing else.

Device code is most of such a wheel, and copies do not need it. Filled with zeros it takes no room, and the
host code is byte for byte what was shipped: no section moves.
"""

from __future__ import annotations

import io
import tempfile
import zipfile
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from pytest_cudabatch.commands.wheel_file import WheelWriter
from pytest_cudabatch.commands.wheelhouse import Target
from pytest_cudabatch.errors import CudaBatchError
from pytest_cudabatch.runtimes import IndexOptions, download

__all__ = ["gather_packages", "package_problems", "slim", "without_device_code"]

USED = {
    "sglang-kernel": ("sgl_kernel/*.py", "sgl_kernel/sm*/common_ops.*"),
    "vllm": ("vllm/_C_stable_libtorch*.so",),
}
"""Files that an adapter of ours uses, by package; of another package all are taken."""

DEVICE_CODE = frozenset({".nv_fatbin", "__nv_relfatbin"})
"""Sections with code for the device, in linked and in relocatable form."""

BUILD_TAG = "0part"
"""Marks the wheel's name: the same release, but not all of it."""

ELF_MAGIC = b"\x7fELF"


def package_problems(requirements: Iterable[str]) -> list[str]:
    """Say what is wrong with the packages asked for, each of which must name one release."""
    problems = []
    for text in requirements:
        try:
            pinned = [specifier.operator for specifier in Requirement(text).specifier] == ["=="]
        except InvalidRequirement:
            pinned = False
        if not pinned:
            problems.append(f"--package: {text!r} does not name a release, such as vllm==0.26.0")
    return problems


def gather_packages(
    requirements: Sequence[str], directory: Path, target: Target, index: IndexOptions, *, device_code: bool
) -> list[Path]:
    """Put the needed part of each package's wheel into ``directory``; return the wheels.

    Raises DownloadError where there is no such wheel for the target.
    """
    directory.mkdir()
    made = []
    for requirement in requirements:
        with tempfile.TemporaryDirectory(prefix=".package-", dir=directory.parent) as place:
            download([requirement], Path(place), index, target=target.pip_options())
            (wheel,) = Path(place).glob("*.whl")
            made.append(slim(wheel, directory, device_code=device_code))
    return made


def slim(wheel: Path, directory: Path, *, device_code: bool) -> Path:
    """Write the part of ``wheel`` that is used into ``directory`` and return its path.

    Raises CudaBatchError where nothing of it matches what its adapter uses.
    """
    name, version, *tags = wheel.stem.split("-")
    information = f"{name}-{version}.dist-info"
    patterns = USED.get(canonicalize_name(name), ("*",))
    part = directory / f"{'-'.join((name, version, BUILD_TAG, *tags[-3:]))}.whl"
    with zipfile.ZipFile(wheel) as whole, zipfile.ZipFile(part, "w") as archive:
        members = [
            member
            for member in whole.infolist()
            if any(fnmatchcase(member.filename, pattern) for pattern in patterns)
            and not member.filename.startswith(f"{information}/")
            and not member.is_dir()
        ]
        if not members:
            raise CudaBatchError(f"{wheel.name} has none of {', '.join(patterns)}")
        kept = [whole.getinfo(f"{information}/{file}") for file in ("METADATA", "WHEEL")]
        with WheelWriter(archive, information) as writer:
            for member in (*members, *kept):
                content = whole.read(member)
                writer.add(member, content if device_code else without_device_code(content))
    return part


def without_device_code(content: bytes) -> bytes:
    """Return ``content`` with its device code, if it is a library with any, filled with zeros."""
    if not content.startswith(ELF_MAGIC):
        return content
    try:
        sections = [
            (section["sh_offset"], section["sh_size"])
            for section in ELFFile(io.BytesIO(content)).iter_sections()
            if section.name in DEVICE_CODE
        ]
    except ELFError as error:
        raise CudaBatchError(f"a library in the wheel is damaged: {error}") from error
    zeroed = bytearray(content)
    for offset, size in sections:
        zeroed[offset : offset + size] = bytes(size)
    return bytes(zeroed)
