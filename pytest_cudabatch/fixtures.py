"""The fixtures that cell tests use. They do their work in the cell's own process, never in the controller."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import pytest

if TYPE_CHECKING:
    from pytest_cudabatch.copies import BoundPlan, Direction, Mixture
    from pytest_cudabatch.cuda import Runtime
    from pytest_cudabatch.implementations import BoundImplementation, Implementation
    from pytest_cudabatch.interposer import Evidence, EvidenceFile
    from pytest_cudabatch.pairings import Pairing

__all__ = [
    "BatchCopy",
    "EvidenceReader",
    "PlanMaker",
    "batch_copy",
    "copy_plan",
    "cuda_evidence",
    "cuda_pairing",
    "cuda_runtime",
    "cuda_stream",
]

ANNOUNCED_PATH = "cudabatch_announced_path"
IMPORT_FAILURE = "cudabatch_import_failure"
"""User properties by which a cell tells its supervisor what it cannot see from outside."""


class PlanMaker(Protocol):
    """The ``copy_plan`` fixture: makes a plan in filled buffers."""

    def __call__(
        self, direction: Direction | str, mixture: Mixture | str, count: int, seed: int = 0
    ) -> BoundPlan:
        """Make a plan of ``count`` descriptors; equal arguments give equal plans."""


class EvidenceReader(Protocol):
    """The ``cuda_evidence`` fixture: reads what the interposer has seen in this cell so far."""

    def __call__(self) -> Evidence:
        """Return the evidence as it is now."""


@dataclass(frozen=True)
class CellEvidence:
    """This cell's slot of the evidence file."""

    file: EvidenceFile
    slot: int

    def read(self) -> Evidence:
        """Return what the interposer has recorded so far."""
        return self.file.read(self.slot)


EVIDENCE: pytest.StashKey[CellEvidence] = pytest.StashKey()
"""Where a cell's config keeps its evidence; set before the cell's set-up."""


@pytest.fixture
def cuda_pairing(request: pytest.FixtureRequest) -> Pairing:
    """Return the runtime and driver that this cell runs on."""
    pairing: Pairing = request.param
    return pairing


@pytest.fixture
def cuda_runtime(cuda_pairing: Pairing) -> Runtime:
    """Open the pairing's libcudart in this process, as torch does (RTLD_GLOBAL)."""
    from pytest_cudabatch.cuda import Runtime, SimulatedVersions  # noqa: PLC0415 - in the cell only

    if cuda_pairing.platform == "simulated":
        assert cuda_pairing.driver.version is not None  # only no-driver pairings lack one
        SimulatedVersions(cuda_pairing.driver.version, cuda_pairing.runtime.version).apply()
    assert cuda_pairing.runtime.path is not None  # a pairing that runs has a library to run on
    return Runtime.open(cuda_pairing.runtime.path, driver=cuda_pairing.driver.path)


@pytest.fixture
def cuda_stream(cuda_runtime: Runtime) -> Iterator[int]:
    """Yield the handle of a non-blocking stream; it is synchronised and destroyed afterwards."""
    stream = cuda_runtime.stream_create(non_blocking=True)
    yield stream
    cuda_runtime.stream_synchronize(stream)
    cuda_runtime.stream_destroy(stream)


@pytest.fixture
def copy_plan(cuda_runtime: Runtime) -> Iterator[PlanMaker]:
    """Yield ``make(direction, mixture, count, seed=0)``: a plan of ``count`` descriptors in filled buffers.

    ``direction`` is h2d, d2h, d2d or mixed, ``mixture`` uniform or mixed (sizes). The buffers carry guard
    bytes; ``verify()`` of the result lists every wrong byte range and every guard that was overrun.
    """
    from pytest_cudabatch.copies import BoundPlan, Direction, Mixture, make_plan  # noqa: PLC0415 - in the cell only

    bound: list[BoundPlan] = []

    def make(direction: Direction | str, mixture: Mixture | str, count: int, seed: int = 0) -> BoundPlan:
        plan = BoundPlan(make_plan(Direction(direction), Mixture(mixture), count, seed), cuda_runtime)
        bound.append(plan)
        plan.fill()
        return plan

    yield make
    for plan in bound:
        plan.close()


@pytest.fixture
def cuda_evidence(request: pytest.FixtureRequest) -> EvidenceReader:
    """Return a function that reads what the interposer has seen in this cell so far."""
    return request.config.stash[EVIDENCE].read


class BatchCopy:
    """The implementation under test, bound to this cell's runtime.

    Calling it enqueues a plan's copies and returns the implementation's own code (0: success). What path the
    implementation announces for the plan is told to the supervisor, which holds it against the evidence.
    """

    def __init__(
        self, implementation: Implementation, bound: BoundImplementation, pairing: Pairing, node: pytest.Item
    ) -> None:
        self.implementation = implementation
        self._bound = bound
        self._pairing = pairing
        self._node = node

    def expected_path(self, plan: BoundPlan) -> str:
        """Return the path that the implementation announces for ``plan`` on this pairing."""
        return str(self.implementation.expected_path(plan.plan, self._pairing))

    def __call__(self, plan: BoundPlan, stream: int) -> int:
        """Enqueue ``plan`` on ``stream`` (a handle); nothing is synchronised."""
        announced = (ANNOUNCED_PATH, self.expected_path(plan))
        if announced not in self._node.user_properties:
            self._node.user_properties.append(announced)
        return self._bound.copy(plan, stream)


@pytest.fixture
def batch_copy(request: pytest.FixtureRequest, cuda_pairing: Pairing, cuda_runtime: Runtime) -> BatchCopy:
    """Return the implementation under test, to be called with a plan and a stream; it returns a code."""
    del cuda_runtime  # opened first, as the implementation's package would find it
    from pytest_cudabatch.implementations import load  # noqa: PLC0415 - in the cell only

    name: str = request.param
    try:
        implementation = load(name)
        bound = implementation.open()
    except Exception as failure:  # the import of foreign code may raise anything; it is passed on
        request.node.user_properties.append((IMPORT_FAILURE, f"{type(failure).__name__}: {failure}"))
        raise
    return BatchCopy(implementation, bound, cuda_pairing, request.node)
