"""Implementations whose library was built once for each kind of runtime that it can be linked with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_cudabatch.cuda import loaded_file
from pytest_cudabatch.implementations.protocol import ExpectedPath, Linkage, PairingRoutes, Route
from pytest_cudabatch.implementations.shared_object import BoundSharedObject, SharedObject

if TYPE_CHECKING:
    from pytest_cudabatch.copies import Plan

__all__ = ["LinkedSharedObject"]


@dataclass(frozen=True)
class LinkedSharedObject:
    """A shared object in several builds; without a choice among them, ``open`` loads the usual one.

    ``usual`` is the build that links no runtime. Where there is none, it is the build for the runtime that
    is loaded, as a project ships one for each major version.
    """

    name: str
    usual: Path | None
    builds: Mapping[tuple[Linkage, int], Path]
    route: Route
    description: str = ""

    def linked(self, linkage: Linkage, major: int) -> SharedObject:
        """Return the build that is linked with a runtime of that major version, 12 or 13."""
        return self._build(self.builds[linkage, major])

    def expected_path(self, plan: Plan, pairing: PairingRoutes) -> ExpectedPath:
        """Return what every build of it announces."""
        return self._build(self.path).expected_path(plan, pairing)

    def open(self) -> BoundSharedObject:
        """Load the usual build. Raises ImportError where that fails."""
        return self._build(self.path).open()

    @property
    def path(self) -> Path:
        """The usual build's file."""
        if self.usual is not None:
            return self.usual
        return self.builds["shared", 13 if loaded_file("libcudart.so.13") else 12]

    def _build(self, path: Path) -> SharedObject:
        return SharedObject(self.name, path, self.route, self.description)
