"""Which versions the simulated CUDA libraries report in this process."""

from __future__ import annotations

import os
from dataclasses import dataclass

from pytest_cudabatch.abi import CudaVersion

__all__ = ["SimulatedVersions"]


@dataclass(frozen=True)
class SimulatedVersions:
    """The versions of one simulated pairing. The libraries read them once, at their first use."""

    driver: CudaVersion
    runtime: CudaVersion

    def variables(self) -> dict[str, str]:
        """Return the environment variables that say so, for a process yet to be started."""
        return {
            "CUDABATCH_SIM_DRIVER": str(self.driver.api),
            f"CUDABATCH_SIM_RUNTIME_{self.runtime.major}": str(self.runtime.api),
        }

    def apply(self) -> None:
        """Set them in this process. Call it before the libraries are loaded."""
        os.environ.update(self.variables())
