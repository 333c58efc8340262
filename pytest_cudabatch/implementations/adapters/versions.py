"""Which releases of a package an adapter was written for."""

from __future__ import annotations

import warnings
from importlib.metadata import PackageNotFoundError, version

from packaging.version import Version

__all__ = ["check_release"]


def check_release(package: str, oldest: str, newest: str) -> None:
    """Hold the installed ``package`` against the releases that the adapter is known to drive.

    Raises ImportError where it is older than ``oldest`` or not installed; one newer than ``newest`` is used,
    with a warning.
    """
    try:
        found = Version(version(package))
    except PackageNotFoundError as error:
        raise ImportError(f"{package} is not installed", name=package) from error
    if found < Version(oldest):
        raise ImportError(
            f"{package} {found} is older than {oldest}, the oldest that is driven", name=package
        )
    if Version(found.public) > Version(newest):
        warnings.warn(f"{package} {found} is newer than {newest}, the newest that was tried", stacklevel=2)
