"""Implementations that are shared objects with the C entry point ``cudabatch_copy``."""

from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_cudabatch.implementations.protocol import ExpectedPath, PairingRoutes, Route

if TYPE_CHECKING:
    from pytest_cudabatch.copies import BoundPlan, Plan

__all__ = ["BoundSharedObject", "SharedObject"]


@dataclass(frozen=True)
class SharedObject:
    """An implementation in a shared object with this C entry point.

    ::

        int cudabatch_copy(void *const *dsts, const void *const *srcs, const size_t *sizes,
                           size_t count, void *stream)

    It enqueues the copies (sizes in bytes) on the stream and returns 0 or the CUDA error code.
    ``description`` says in a sentence what the implementation does; ``route`` whom it asks for the
    batch function, from which the expected path follows.
    """

    name: str
    path: Path
    route: Route
    description: str = ""

    def expected_path(self, plan: Plan, pairing: PairingRoutes) -> ExpectedPath:
        """Return "batch" where the route leads to a batch function on ``pairing``, else "fallback"."""
        if plan.payload == 0:
            return "none"
        if self.route == "per-copy":
            return "fallback"
        found = pairing.runtime_route or (self.route == "driver-first" and pairing.driver_route)
        return "batch" if found else "fallback"

    def open(self) -> BoundSharedObject:
        """Load the object, out of sight of other libraries. Raises ImportError where that fails."""
        try:
            library = ctypes.CDLL(str(self.path.absolute()), mode=os.RTLD_NOW | os.RTLD_LOCAL)
            return BoundSharedObject(library)
        except (OSError, AttributeError) as error:
            raise ImportError(
                f"implementation {self.name!r}: {error}", name=self.name, path=str(self.path)
            ) from error


class BoundSharedObject:
    """A loaded shared object. ctypes releases the interpreter's lock during its calls."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._copy = library.cudabatch_copy
        address = ctypes.c_void_p
        self._copy.argtypes = (address, address, address, ctypes.c_size_t, address)
        self._copy.restype = ctypes.c_int

    def copy(self, plan: BoundPlan, stream: int) -> int:
        """Enqueue the copies of ``plan`` on ``stream``; return 0 or the CUDA error code."""
        arrays = (plan.dsts.ctypes.data, plan.srcs.ctypes.data, plan.sizes.ctypes.data)
        return int(self._copy(*arrays, plan.count, stream))
