"""Our own implementations: the reference, and the specimens, each wrong in one way only.

Their C sources are in native/dispatch; a specimen's description is what its source says of its fault.
"""

from __future__ import annotations

from dataclasses import dataclass

from pytest_cudabatch.implementations.protocol import Route
from pytest_cudabatch.implementations.shared_object import SharedObject
from pytest_cudabatch.native import library

__all__ = ["BUILTIN", "Recipe"]


@dataclass(frozen=True)
class Recipe:
    """One of our implementations before its library is looked for."""

    library: str
    route: Route
    description: str

    def build(self, name: str) -> SharedObject:
        """Return the implementation. Raises InstallationError where its library was not built."""
        return SharedObject(
            name, library(f"implementations/lib{self.library}.so"), self.route, self.description
        )


BUILTIN = {
    "reference": Recipe(
        "reference",
        "driver-first",
        "cudabatch_dispatch.h: asks the driver for the nine-parameter function by version, else takes "
        "function and version from one runtime, else copies one by one; at most 1,024 copies a call.",
    ),
    "specimen:driver-version": Recipe(
        "specimen-driver-version",
        "runtime",
        "Picks the ABI by cudaDriverGetVersion, though the function is the runtime's: eight parameters "
        "for the nine of a 12.8 or 12.9 runtime on a 13.x driver.",
    ),
    "specimen:dlsym-always-9": Recipe(
        "specimen-dlsym-always-9",
        "runtime",
        "Calls whatever dlsym finds with nine parameters, as if it were compiled against CUDA 12: one "
        "too many for every 13.x runtime.",
    ),
    "specimen:dlsym-always-8": Recipe(
        "specimen-dlsym-always-8",
        "runtime",
        "Calls whatever dlsym finds with eight parameters, as if it were compiled against CUDA 13: one "
        "too few for the 12.8 and 12.9 runtimes.",
    ),
}
"""Recipes by the name that ``--cuda-implementation`` takes."""
