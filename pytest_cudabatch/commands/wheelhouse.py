"""The wheels that a bundle installs from: the plugin's dependencies, for another Python than this one.

``pip download --python-version`` picks wheels for the other Python but evaluates environment markers for
the running one, so that ``tomli; python_version < "3.11"`` is decided wrongly. So what the downloaded
wheels themselves require is read, with the target's markers, until nothing is missing.
"""

from __future__ import annotations

import platform
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from email.parser import BytesParser
from pathlib import Path

from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name, parse_wheel_filename

from pytest_cudabatch.errors import CudaBatchError
from pytest_cudabatch.runtimes import IndexOptions, download

__all__ = ["Target", "gather_dependencies"]

_OLDEST_GLIBC_MINOR, _NEWEST_GLIBC_MINOR = 5, 28
"""The manylinux wheels that are taken: up to glibc 2.28, which every distribution in use has."""


@dataclass(frozen=True)
class Target:
    """The Python (``"3.12"``) on Linux that the bundle is made for; the architecture is this machine's."""

    python: str

    def pip_options(self) -> list[str]:
        """Return pip's options that ask for this target."""
        architecture = platform.machine()
        minors = range(_NEWEST_GLIBC_MINOR, _OLDEST_GLIBC_MINOR - 1, -1)
        tags = [*(f"manylinux_2_{minor}_{architecture}" for minor in minors), f"manylinux2014_{architecture}"]
        platforms = [word for tag in (*tags, f"linux_{architecture}") for word in ("--platform", tag)]
        return ["--implementation", "cp", "--python-version", self.python, *platforms]

    def applies(self, requirement: Requirement) -> bool:
        """Whether the target needs ``requirement``, by its marker; extras are not asked for."""
        environment = {name: str(value) for name, value in default_environment().items()} | {
            "python_version": self.python,
            "python_full_version": f"{self.python}.0",
            "implementation_version": f"{self.python}.0",
            "extra": "",
        }
        return requirement.marker is None or requirement.marker.evaluate(environment)


def gather_dependencies(
    wheel: Path, directory: Path, target: Target, index: IndexOptions, *, also: tuple[str, ...] = ()
) -> None:
    """Put everything that ``wheel`` needs into ``directory``, and the requirements in ``also``.

    Raises DownloadError where a dependency has no wheel for the target.
    """
    wanted = [*map(_pip_text, _needed(wheel, target)), *also]
    download(wanted, directory, index, dependencies=True, target=target.pip_options())
    while missing := _missing(directory, wheel, target):
        download(missing, directory, index, target=target.pip_options())


def _missing(directory: Path, wheel: Path, target: Target) -> list[str]:
    """Return what some wheel in ``directory`` needs and none of them is."""
    wheels = list(directory.glob("*.whl"))
    present = {parse_wheel_filename(path.name)[0] for path in wheels}
    return [
        _pip_text(requirement)
        for path in {*wheels, wheel}
        for requirement in _needed(path, target)
        if canonicalize_name(requirement.name) not in present
    ]


def _needed(wheel: Path, target: Target) -> Iterator[Requirement]:
    """Yield what ``wheel`` requires on the target (Requires-Dist of its METADATA)."""
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        if len(names) != 1:
            raise CudaBatchError(f"{wheel.name} holds {len(names)} METADATA files, so it is no wheel")
        metadata = BytesParser().parsebytes(archive.read(names[0]), headersonly=True)
    for text in metadata.get_all("Requires-Dist", []):
        requirement = Requirement(text)
        if target.applies(requirement):
            yield requirement


def _pip_text(requirement: Requirement) -> str:
    """Return ``requirement`` without its marker, which is already decided."""
    bare = Requirement(str(requirement))
    bare.marker = None
    return str(bare)
