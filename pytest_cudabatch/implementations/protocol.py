"""What an implementation of batched copies offers to the tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

if TYPE_CHECKING:
    from pytest_cudabatch.copies import BoundPlan, Plan

__all__ = [
    "BoundImplementation",
    "ExpectedPath",
    "Implementation",
    "Linkable",
    "Linkage",
    "PairingRoutes",
    "Route",
]

Route = Literal["driver-first", "runtime", "per-copy"]
"""Whom an implementation asks for the batch function: the driver and then the runtime, or the runtime.

``per-copy`` asks nobody: it copies one by one by design."""

Linkage = Literal["shared", "static"]
"""How an implementation's library has a runtime: it needs a libcudart.so, or has one inside."""

ExpectedPath = Literal["batch", "fallback", "none"]
"""How the bytes of a plan should go; "none" where the plan has no bytes."""


class PairingRoutes(Protocol):
    """What of a pairing an implementation may look at: the ways to a batch function that work there."""

    @property
    def runtime_route(self) -> bool:
        """The runtime exports the batch function, and the driver knows how to serve it."""

    @property
    def driver_route(self) -> bool:
        """The driver hands out the batch function through cuGetProcAddress."""


class BoundImplementation(Protocol):
    """An implementation that is loaded in this process, ready to copy."""

    def copy(self, plan: BoundPlan, stream: int) -> int:
        """Enqueue all copies of ``plan`` on ``stream`` (a stream handle); return 0 or the CUDA error code."""


@runtime_checkable
class Implementation(Protocol):
    """Code under test, described without loading it."""

    @property
    def name(self) -> str:
        """The name in test ids and reports."""

    def expected_path(self, plan: Plan, pairing: PairingRoutes) -> ExpectedPath:
        """Return how this implementation moves ``plan`` on ``pairing``, by its own design."""

    def open(self) -> BoundImplementation:
        """Load the code. Called in the child, with the runtime and the driver loaded."""


@runtime_checkable
class Linkable(Protocol):
    """An implementation that was built once for each way to link a runtime."""

    def linked(self, linkage: Linkage, major: int) -> Implementation:
        """Return the build that is linked with a runtime of that major version, 12 or 13."""
