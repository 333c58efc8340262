"""Ranges of CUDA versions as PEP 440 specifiers: what the matrix files and selections are written in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from packaging.specifiers import InvalidSpecifier, Specifier

from pytest_cudabatch.abi import CudaVersion

__all__ = ["SpecifierError", "VersionRange"]

_PATCHED = 3
"""Parts of a version that names a patch level."""


class SpecifierError(ValueError):
    """A specifier does not parse; ``position`` is the index of its first character in the text."""

    def __init__(self, message: str, position: int) -> None:
        self.position = position
        super().__init__(message)


@dataclass(frozen=True)
class VersionRange:
    """Specifiers that a version must match all of; without any, every version matches."""

    specifiers: tuple[Specifier, ...] = ()

    @classmethod
    def parse(cls, text: str) -> VersionRange:
        """Read specifiers separated by commas. Raises SpecifierError for the first that is wrong."""
        return cls(tuple(_specifier(part, position) for part, position in _parts(text)))

    def contains(self, version: CudaVersion, release: str | None = None) -> bool:
        """Whether the version is within the range.

        A specifier without a patch level is compared with major and minor, so that ``==12.9`` holds for
        release 12.9.79 and ``>12.8`` does not hold for 12.8.90; one with a patch level is compared with
        ``release`` where that is given.
        """
        return all(
            specifier.contains(release if release and _names_patch(specifier) else str(version))
            for specifier in self.specifiers
        )


def _names_patch(specifier: Specifier) -> bool:
    return len(specifier.version.removesuffix(".*").split(".")) >= _PATCHED


def _parts(text: str) -> Iterator[tuple[str, int]]:
    """Yield each part between commas, without blanks, and where it starts."""
    position = 0
    for part in text.split(","):
        blanks = len(part) - len(part.lstrip())
        yield part.strip(), position + blanks
        position += len(part) + 1


def _specifier(text: str, position: int) -> Specifier:
    if not text:
        raise SpecifierError("a version specifier is missing here, such as >=12.8", position)
    try:
        return Specifier(text)
    except InvalidSpecifier:
        raise SpecifierError(f"{text!r} is not a version specifier such as >=12.8", position) from None
