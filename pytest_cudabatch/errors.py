"""The exception tree. Every message says what was wrong, where, and what to do."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["CellError", "CudaBatchError", "CudaError", "EvidenceError", "InstallationError", "UsageError"]


class CudaBatchError(Exception):
    """Root of everything that this package raises on purpose."""


class UsageError(CudaBatchError):
    """Bad input from the user: an option, a file, a name. Becomes one clear line and exit status 4.

    ``problems`` holds every problem that was found, so that all errors of a file are shown at once.
    """

    def __init__(self, *problems: str) -> None:
        self.problems: tuple[str, ...] = problems
        super().__init__("\n".join(problems))

    @classmethod
    def collect(cls, problems: Iterable[str]) -> UsageError | None:
        """Return one error for all ``problems``, or None where there is none."""
        found = tuple(problems)
        return cls(*found) if found else None


class InstallationError(CudaBatchError):
    """A part of this package that the installation should have brought is missing or unusable."""


class CellError(CudaBatchError):
    """The machinery of isolated cells itself failed: a zygote did not start, or its protocol broke."""


class EvidenceError(CudaBatchError):
    """The interposer's evidence file is unreadable or was written by another version."""


class CudaError(CudaBatchError):
    """A CUDA call of ours, not of the code under test, returned an error.

    ``function`` is the C name, ``code`` the cudaError_t or CUresult that it returned.
    """

    def __init__(self, function: str, code: int) -> None:
        self.function = function
        self.code = code
        super().__init__(f"{function} returned CUDA error {code}")
