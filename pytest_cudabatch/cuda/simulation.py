"""What the simulated CUDA libraries are in this process: their versions, and their schedule."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass, replace

from pytest_cudabatch.abi import CudaVersion

__all__ = ["Schedule", "SimulatedVersions"]

_SEEDS = 1 << 64


@dataclass(frozen=True)
class Schedule:
    """When queued work runs: ``fair``, or adversarial by ``seed`` (None: one is drawn when it is wanted)."""

    adversarial: bool = False
    seed: int | None = None

    @classmethod
    def parse(cls, text: str) -> Schedule:
        """Read ``fair``, ``adversarial`` or ``adversarial:SEED``. Raises ValueError for anything else."""
        name, separator, seed = text.partition(":")
        if text == "fair":
            return cls()
        if name != "adversarial" or (separator and not (seed.isascii() and seed.isdecimal())):
            raise ValueError(f"{text!r} is none of fair, adversarial and adversarial:SEED")
        if separator and int(seed) >= _SEEDS:
            raise ValueError(f"{text!r}: a seed is a number below 2**64")
        return cls(adversarial=True, seed=int(seed) if separator else None)

    def with_seed(self) -> Schedule:
        """Return the same with a seed, drawn at random if it needs one and has none."""
        if not self.adversarial or self.seed is not None:
            return self
        return replace(self, seed=secrets.randbelow(1 << 32))

    def __str__(self) -> str:
        if not self.adversarial:
            return "fair"
        return "adversarial" if self.seed is None else f"adversarial:{self.seed}"

    def variables(self) -> dict[str, str]:
        """Return the environment variable that says so; the libraries read it once, at their first use."""
        return {"CUDABATCH_SIM_SCHEDULE": str(self)}


@dataclass(frozen=True)
class SimulatedVersions:
    """The versions of one simulated pairing, and how many devices it has.

    The libraries read them once, at their first use.
    """

    driver: CudaVersion
    runtime: CudaVersion
    devices: int = 1

    def variables(self) -> dict[str, str]:
        """Return the environment variables that say so, for a process yet to be started."""
        several = {"CUDABATCH_SIM_DEVICES": str(self.devices)} if self.devices > 1 else {}
        return {
            "CUDABATCH_SIM_DRIVER": str(self.driver.api),
            f"CUDABATCH_SIM_RUNTIME_{self.runtime.major}": str(self.runtime.api),
            **several,
        }

    def apply(self) -> None:
        """Set them in this process. Call it before the libraries are loaded."""
        os.environ.update(self.variables())
