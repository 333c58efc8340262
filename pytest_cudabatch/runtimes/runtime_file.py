"""One libcudart on disk: its version, release, ABI and where it comes from, without loading it here.

A libcudart holds no version string, and its SONAME only tells the major version. Its code tells the minor
one; the patch level is taken from what lies around the file, by the first of some small steps that knows,
and must agree with the code. Where not even the code can be read, the library is asked in a process of its
own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from pytest_cudabatch.abi import BatchAbi, CudaVersion
from pytest_cudabatch.errors import UsageError
from pytest_cudabatch.runtimes.elf import SharedObject
from pytest_cudabatch.runtimes.inquiry import ask
from pytest_cudabatch.runtimes.machine_code import BATCH_FUNCTION, RuntimeCode
from pytest_cudabatch.runtimes.record import Record

__all__ = ["RuntimeFile", "Source"]

Source = Literal["wheel", "toolkit", "system", "simulated"]
"""Where a runtime comes from, in the words of reports."""

_CHILD = Path(__file__).with_name("runtime_child.py")
_ASK_SECONDS = 10.0
_SITE_DEPTH = 4
"""How far above its libraries a wheel's site directory is: nvidia/cuda_runtime/lib/ or nvidia/cu13/lib/."""
_TOOLKIT_DEPTH = 4
"""How far above lib64/ or targets/<platform>/lib/ a toolkit keeps its version.json."""


@dataclass(frozen=True)
class RuntimeFile:
    """A libcudart: ``release`` is as exact as could be found out (``"12.9.79"``, else ``"12.9"``).

    ``found_via`` names the step that told the release: ``record``, ``dist-info``, ``toolkit``,
    ``file-name``, ``code`` or ``asked``. ``exports_batch`` says whether cudaMemcpyBatchAsync is among its
    symbols, and ``parameters`` how many parameters its code takes (None: not known, or no such function).
    """

    path: Path
    release: str
    source: Source
    exports_batch: bool
    found_via: str
    parameters: int | None = None

    @property
    def version(self) -> CudaVersion:
        """The CUDA version: the release without its patch level."""
        return CudaVersion.parse(self.release)

    @property
    def abi(self) -> BatchAbi:
        """The ABI in which this runtime has, or would have, the batch function."""
        return self.version.abi

    @property
    def release_order(self) -> tuple[int, ...]:
        """The release as numbers, to compare runtimes by."""
        return tuple(int(part) for part in self.release.split("."))

    @classmethod
    def read(cls, path: Path) -> RuntimeFile:
        """Read the libcudart at ``path``.

        Raises UsageError where it is none, gives no version away, or is said to be another version than its
        code is.
        """
        library, code = SharedObject.read(path), RuntimeCode.read(path)
        found_via, source, release = _told(path, _major(path, library), code)
        file = cls(
            path=path.absolute(),
            release=release,
            source="simulated" if library.simulated else source,
            exports_batch=BATCH_FUNCTION in library.exports,
            found_via=found_via,
            parameters=code.parameters,
        )
        if file.parameters not in (None, file.abi.parameters):
            raise UsageError(
                f"{path}: its {BATCH_FUNCTION} takes {file.parameters} parameters, and that of CUDA "
                f"{file.version} takes {file.abi.parameters}"
            )
        return file

    def to_json(self) -> dict[str, Any]:
        """Return the runtime as JSON data."""
        return {**asdict(self), "path": str(self.path)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> RuntimeFile:
        """Read ``to_json``'s form back. Raises KeyError or TypeError on anything else."""
        return cls(**{**data, "path": Path(data["path"])})


def _told(path: Path, major: int, code: RuntimeCode) -> tuple[str, Source, str]:
    """Return who told the release, the source that follows, and the release. Raises UsageError."""
    version = code.version if code.version and code.version.major == major else None
    for found_via, source, step in _STEPS:
        release = step(path)
        if release is None:
            continue
        told = CudaVersion.parse(release)
        if version not in (None, told):
            raise UsageError(
                f"{path}: its {found_via} says {release}, but its code is that of CUDA {version}"
            )
        if told.major == major:
            return found_via, source, release
    if version is not None:
        return "code", "system", str(version)
    answer = _asked(path)
    if answer is None or answer.major != major:
        raise UsageError(
            f"{path}: nothing tells the version of this libcudart, and it does not answer itself"
        )
    return "asked", "system", str(answer)


def _major(path: Path, library: SharedObject) -> int:
    match = re.fullmatch(r"libcudart\.so\.(\d+)", library.soname or "")
    if match is None:
        raise UsageError(f"{path}: not a libcudart of CUDA 12 or newer (its SONAME is {library.soname!r})")
    return int(match[1])


def _of_record(path: Path) -> str | None:
    """Read the record that ``cudabatch fetch`` leaves beside a library."""
    try:
        record = Record.read(path.parent)
    except (OSError, ValueError):
        return None
    return record.release if record.library == path.name else None


def _of_dist_info(path: Path) -> str | None:
    """Find the installed distribution (nvidia-cuda-runtime*) that brought the file."""
    for site in path.absolute().parents[:_SITE_DEPTH]:
        for information in site.glob("nvidia_cuda_runtime*.dist-info"):
            inside = path.absolute().relative_to(site).as_posix()
            if _lists(information / "RECORD", inside):
                return information.name.removesuffix(".dist-info").rpartition("-")[2]
    return None


def _lists(record: Path, inside: str) -> bool:
    try:
        return any(line.startswith(inside + ",") for line in record.read_text(encoding="utf-8").splitlines())
    except OSError:
        return False


def _of_toolkit(path: Path) -> str | None:
    """Read the version.json of the toolkit that the file lies in; it lists each component's release."""
    releases = (_cudart_release(directory) for directory in path.resolve().parents[:_TOOLKIT_DEPTH])
    return next((release for release in releases if release is not None), None)


def _cudart_release(toolkit: Path) -> str | None:
    try:
        components = json.loads((toolkit / "version.json").read_text(encoding="utf-8"))
        return str(components["cuda_cudart"]["version"])
    except (OSError, ValueError, KeyError, TypeError):  # not a toolkit's directory
        return None


def _of_file_name(path: Path) -> str | None:
    """Take the release from the name behind the symbolic links: libcudart.so.12.9.79."""
    match = re.fullmatch(r"libcudart\.so\.(\d+\.\d+\.\d+)", path.resolve().name)
    return match[1] if match else None


def _asked(path: Path) -> CudaVersion | None:
    """Load the library in a process of its own and ask cudaRuntimeGetVersion."""
    answers = ask(_CHILD, [str(path.absolute())], limit=_ASK_SECONDS)
    if answers.fault or answers.facts.get("code") != 0:
        return None
    return CudaVersion.from_api(answers.facts["version"])


_STEPS: tuple[tuple[str, Source, Callable[[Path], str | None]], ...] = (
    ("record", "wheel", _of_record),
    ("dist-info", "wheel", _of_dist_info),
    ("toolkit", "toolkit", _of_toolkit),
    ("file-name", "system", _of_file_name),
)
"""Who tells a release to its patch level: name, the source that it implies, and the step; the first answer
counts."""
