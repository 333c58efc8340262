"""Fetches real libcudarts: the vendor's wheels by pip, of which only the library is kept."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_cudabatch.abi import CudaVersion
from pytest_cudabatch.errors import InstallationError, UsageError
from pytest_cudabatch.runtimes.cache import load, store, user_cache
from pytest_cudabatch.runtimes.pip import DownloadError, IndexOptions, download
from pytest_cudabatch.runtimes.runtime_file import RuntimeFile
from pytest_cudabatch.runtimes.vendor_wheel import libcudart_of

__all__ = ["RuntimeRequest", "fetch"]

_OLDEST_MAJOR = 12


@dataclass(frozen=True)
class RuntimeRequest:
    """A runtime that the user asked for: a minor version (its newest patch) or an exact release."""

    text: str
    version: CudaVersion
    exact: bool

    @classmethod
    def parse(cls, text: str) -> RuntimeRequest:
        """Read ``"12.9"`` or ``"12.9.79"``. Raises UsageError for anything else, and for CUDA below 12."""
        if problem := _problem(text):
            raise UsageError(problem)
        return cls(text, CudaVersion.parse(text), exact=text.count(".") == 2)

    @classmethod
    def parse_all(cls, texts: Sequence[str]) -> tuple[RuntimeRequest, ...]:
        """Read several, each once. Raises one UsageError with all that are wrong."""
        wanted = tuple(dict.fromkeys(texts))
        if error := UsageError.collect(problem for text in wanted if (problem := _problem(text))):
            raise error
        return tuple(cls.parse(text) for text in wanted)

    @property
    def requirement(self) -> str:
        """What pip is asked for; the vendor's package had the major version in its name up to CUDA 12."""
        package = "nvidia-cuda-runtime-cu12" if self.version.major == _OLDEST_MAJOR else "nvidia-cuda-runtime"
        return f"{package}=={self.text}" + ("" if self.exact else ".*")


def _problem(text: str) -> str | None:
    """Return what is wrong with a version that the user wrote, or None."""
    if not re.fullmatch(r"\d{1,3}\.\d{1,3}(\.\d+)?", text):
        return f"{text!r} is not a CUDA runtime version; write it like 12.9 or 12.9.79"
    if CudaVersion.parse(text).major < _OLDEST_MAJOR:
        return f"runtime {text}: the oldest that can be fetched is {_OLDEST_MAJOR}.0"
    return None


def fetch(
    versions: Sequence[str], *, index: IndexOptions | None = None, directory: Path | None = None
) -> tuple[RuntimeFile, ...]:
    """Fetch ``versions`` into ``directory`` (the user's cache by default) and return them in that order.

    An exact release that is there already is not downloaded again. Raises UsageError for what is not a
    version, DownloadError or WheelError for a version that could not be had; those before it are kept.
    """
    place = user_cache() if directory is None else directory
    return tuple(
        _fetch(request, index or IndexOptions(), place) for request in RuntimeRequest.parse_all(versions)
    )


def _fetch(request: RuntimeRequest, index: IndexOptions, directory: Path) -> RuntimeFile:
    if request.exact and (directory / request.text).is_dir():
        try:
            return load(directory / request.text)
        except InstallationError:  # damaged: the fresh one replaces it
            pass
    with tempfile.TemporaryDirectory(prefix="cudabatch-fetch-") as downloads:
        try:
            download([request.requirement], Path(downloads), index)
        except DownloadError as error:
            raise DownloadError(f"cannot fetch runtime {request.text}: {error}") from error
        (wheel,) = Path(downloads).glob("*.whl")
        try:
            return store(directory, *libcudart_of(wheel))
        except OSError as error:
            raise UsageError(
                f"cannot keep runtime {request.text} in {directory}: {error.strerror}"
            ) from error
