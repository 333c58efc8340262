"""Two runtimes in a process: the ``cuda_load_order`` fixture loads libraries in the order that a test says.

Nothing of CUDA is loaded but what the test names: memory and streams come from the driver alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Literal

import pytest

from pytest_cudabatch.cell_evidence import PAIRINGS
from pytest_cudabatch.telling import telling_import_failure
from pytest_cudabatch.under_test import BatchCopy, implementation_named

if TYPE_CHECKING:
    from pytest_cudabatch.copies import BoundPlan, Plan
    from pytest_cudabatch.cuda import Driver, HostMemory
    from pytest_cudabatch.implementations import Implementation, Linkage
    from pytest_cudabatch.pairings import Pairing, RuntimeEntry

__all__ = ["LoadOrder", "Visibility", "cuda_load_order"]

Visibility = Literal["global", "local", "torch"]
"""How a runtime is loaded: RTLD_GLOBAL, RTLD_LOCAL, or RTLD_GLOBAL as the need of a library without functions
of its own, which is how torch shows its runtime to a process (libtorch_global_deps.so)."""

PER_THREAD_STREAM = 2
"""cudaStreamPerThread: a stream that batch calls take, and that need not be created."""


class LoadOrder:
    """What a process holds of CUDA, in the order in which it came there.

    ``load`` the runtimes that are there before the implementation, then ``open`` the implementation.
    """

    def __init__(
        self,
        implementation: str,
        pairing: Pairing,
        pairings: Sequence[Pairing],
        node: pytest.Item,
        cleanup: ExitStack,
    ) -> None:
        self.pairing = pairing
        self._implementation = implementation
        self._runtimes = _newest_of_each_major(pairing, pairings)
        self._node = node
        self._cleanup = cleanup
        self._memory: Driver | HostMemory = _memory_of(pairing)

    @property
    def major(self) -> int:
        """The major version of the pairing's runtime."""
        return self.pairing.runtime.version.major

    @property
    def other_major(self) -> int:
        """The other major version: 13 for 12, and 12 for 13."""
        return 25 - self.major

    def load(self, major: int, visibility: Visibility) -> None:
        """Load the runtime of that major version: the pairing's own, or the newest one of the run.

        Skips the test where the run has no such runtime.
        """
        from pytest_cudabatch.cuda import load  # noqa: PLC0415 - in the cell only
        from pytest_cudabatch.native import library  # noqa: PLC0415

        if major not in self._runtimes:
            pytest.skip(f"no CUDA {major} runtime with the batch function is among the run's pairings")
        path = self._runtimes[major].path
        assert path is not None  # a pairing that runs has a library to run on
        load(path, visible=visibility == "global")
        if visibility == "torch":
            load(library(f"preloaders/libpreloader-{major}.so"), visible=True)

    def open(self, linkage: Linkage | None = None) -> BatchCopy:
        """Load the implementation, in the build that is linked as ``linkage`` says with the pairing's major.

        A shared runtime that it needs is the pairing's. Without ``linkage`` it is the usual build, in a
        process that has the pairing's runtime for everybody to see. Skips the test where an implementation
        does not come in builds and ``linkage`` asks for one.
        """
        from pytest_cudabatch.implementations import Linkable  # noqa: PLC0415 - in the cell only

        implementation = implementation_named(self._implementation, self.pairing, self._node)
        if isinstance(implementation, Linkable):
            implementation = implementation.linked(linkage or "shared", self.major)
        elif linkage is not None:
            pytest.skip(f"{implementation.name} is not built once for each way to link a runtime")
        if linkage != "static":
            self.load(self.major, "local" if linkage else "global")
        return self._bind(implementation)

    def _bind(self, implementation: Implementation) -> BatchCopy:
        with telling_import_failure(self._node):
            bound = implementation.open()
        return BatchCopy(implementation, bound, self.pairing, self._memory, self._node)

    def plan(self, plan: Plan) -> BoundPlan:
        """Return ``plan`` in filled buffers: of the driver, or plain host memory where there is none."""
        from pytest_cudabatch.copies import BoundPlan  # noqa: PLC0415 - in the cell only

        bound = self._cleanup.enter_context(BoundPlan(plan, self._memory))
        bound.fill()
        return bound

    def stream(self) -> int:
        """Return a stream's handle: a new one of the driver, or the per-thread one where there is none."""
        from pytest_cudabatch.cuda import HostMemory  # noqa: PLC0415 - in the cell only

        if isinstance(self._memory, HostMemory):
            return PER_THREAD_STREAM
        stream = self._memory.stream_create()
        self._cleanup.callback(self._memory.stream_destroy, stream)
        return stream


def _newest_of_each_major(pairing: Pairing, pairings: Sequence[Pairing]) -> dict[int, RuntimeEntry]:
    """Return the runtimes with a batch function on the pairing's driver, the pairing's own for its major."""
    usable = sorted(
        (each.runtime for each in pairings if each.driver == pairing.driver and each.runtime.exports_batch),
        key=lambda runtime: runtime.version,
    )
    return {runtime.version.major: runtime for runtime in (*usable, pairing.runtime)}


def _memory_of(pairing: Pairing) -> Driver | HostMemory:
    """Load the pairing's driver, where it has one, before any runtime."""
    from pytest_cudabatch.cuda import Driver, HostMemory  # noqa: PLC0415 - in the cell only

    return HostMemory() if pairing.platform == "no-driver" else Driver.open(pairing.driver.path)


@pytest.fixture
def cuda_load_order(request: pytest.FixtureRequest, cuda_pairing: Pairing) -> Iterator[LoadOrder]:
    """Yield an object that loads runtimes and the implementation under test in the order that a test says."""
    from pytest_cudabatch.cuda import SimulatedVersions  # noqa: PLC0415 - in the cell only

    pairings = request.config.stash[PAIRINGS]
    if cuda_pairing.platform == "simulated":
        assert cuda_pairing.driver.version is not None  # only no-driver pairings lack one
        for runtime in _newest_of_each_major(cuda_pairing, pairings).values():
            SimulatedVersions(cuda_pairing.driver.version, runtime.version).apply()
    with ExitStack() as cleanup:
        yield LoadOrder(request.param, cuda_pairing, pairings, request.node, cleanup)
