"""The fixtures that cell tests use. They do their work in the cell's own process, never in the controller."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from pytest_cudabatch.cell_evidence import EVIDENCE
from pytest_cudabatch.contract_check import ContractCheck, known_contract
from pytest_cudabatch.errors import CudaError
from pytest_cudabatch.finding_codes import Code
from pytest_cudabatch.telling import ENVIRONMENT_FINDING, Blame, telling_import_failure
from pytest_cudabatch.under_test import BatchCopy, implementation_named, skipping_what_it_cannot

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_cudabatch.copies import BoundPlan, Direction, Mixture, Plan
    from pytest_cudabatch.cuda import Gate, Runtime
    from pytest_cudabatch.interposer import Evidence
    from pytest_cudabatch.pairings import Pairing

__all__ = [
    "EvidenceReader",
    "GateMaker",
    "Injector",
    "PlanMaker",
    "batch_copy",
    "copy_plan",
    "cuda_contract",
    "cuda_evidence",
    "cuda_finding",
    "cuda_gate",
    "cuda_inject",
    "cuda_pairing",
    "cuda_runtime",
    "cuda_stream",
]

ENVIRONMENTS = {3: Code.LEAKED_STATE, 35: Code.DRIVER_TOO_OLD, 100: Code.NO_GPU}
"""What a runtime's first answer says of the process and the host, by cudaError_t: initialised before the fork
(initialization error), insufficient driver, no device."""


class PlanMaker(Protocol):
    """The ``copy_plan`` fixture: makes a plan in filled buffers."""

    def __call__(
        self,
        direction: Direction | str,
        mixture: Mixture | str,
        count: int,
        seed: int = 0,
        *,
        sizes: Sequence[int] | None = None,
        nbytes_limit: int | None = None,
        empty: Collection[int] | float = 0.0,
        gaps: Sequence[int] | None = None,
        closest: bool = False,
    ) -> BoundPlan:
        """Make a plan of ``count`` descriptors; equal arguments give equal plans (see ``make_plan``).

        ``gaps`` asks for pages out of a cache, packed at their destination (see ``make_packing_plan``).
        ``closest`` says that the nearest plan which the implementation can take will do, in another direction
        or of one size; without it the test is skipped where this very plan is none for it.
        """

    def across_registrations(self, runtime: Runtime, count: int, size: int) -> BoundPlan:
        """Make a plan of pages side by side, in order, out of host memory that two registrations share."""

    def trace(self, path: Path | str) -> Iterator[BoundPlan]:
        """Yield a plan for each batch of a trace that ``cudabatch record --trace`` kept, in order.

        Its buffers are freed when the next one is asked for, so its copies must have completed by then.
        """


class GateMaker(Protocol):
    """The ``cuda_gate`` fixture: holds a stream up for a while."""

    def __call__(self, stream: int, seconds: float = 0.15) -> Gate:
        """Hold up what is queued on ``stream`` from now on, for so many seconds or until ``open()``."""


class EvidenceReader(Protocol):
    """The ``cuda_evidence`` fixture: reads what the interposer has seen in this cell so far."""

    def __call__(self) -> Evidence:
        """Return the evidence as it is now."""


class Injector(Protocol):
    """The ``cuda_inject`` fixture: asks the interposer for faults in this cell."""

    def __call__(self, text: str) -> None:
        """Add rules, such as ``"batch=801; per-copy@3=1"``; they hold from now on."""


def _parameter(request: pytest.FixtureRequest) -> Any:
    """Return the parameter that the plugin gave; a fixture that is asked for at run time has none."""
    if not hasattr(request, "param"):
        name = request.fixturename
        pytest.fail(
            f"name {name} among the test's arguments: it is spread over pairings at collection", False
        )
    return request.param


@pytest.fixture
def cuda_pairing(request: pytest.FixtureRequest) -> Pairing:
    """Return the runtime and driver that this cell runs on."""
    pairing: Pairing = _parameter(request)
    return pairing


def _devices_wanted(node: pytest.Item) -> int:
    """Return what the closest ``cuda_cell`` marker with ``devices`` says, else 1."""
    return next((m.kwargs["devices"] for m in node.iter_markers("cuda_cell") if "devices" in m.kwargs), 1)


@pytest.fixture
def cuda_runtime(request: pytest.FixtureRequest, cuda_pairing: Pairing) -> Runtime:
    """Open the pairing's libcudart in this process, as torch does (RTLD_GLOBAL)."""
    from pytest_cudabatch.cuda import Runtime, SimulatedVersions  # noqa: PLC0415 - in the cell only

    devices = _devices_wanted(request.node)
    if cuda_pairing.platform == "simulated":
        assert cuda_pairing.driver.version is not None  # only no-driver pairings lack one
        SimulatedVersions(cuda_pairing.driver.version, cuda_pairing.runtime.version, devices).apply()
    assert cuda_pairing.runtime.path is not None  # a pairing that runs has a library to run on
    runtime = Runtime.open(cuda_pairing.runtime.path, driver=cuda_pairing.driver.path)
    if cuda_pairing.platform != "no-driver":
        try:
            found = runtime.device_count()
        except CudaError as error:
            if error.code in ENVIRONMENTS:
                request.node.user_properties.append((ENVIRONMENT_FINDING, ENVIRONMENTS[error.code].value))
            raise
        if found < devices:
            pytest.skip(f"needs {devices} devices, and this process has {found}")
    return runtime


@pytest.fixture
def cuda_stream(cuda_runtime: Runtime) -> Iterator[int]:
    """Yield the handle of a non-blocking stream; it is synchronised and destroyed afterwards."""
    stream = cuda_runtime.stream_create(non_blocking=True)
    yield stream
    cuda_runtime.stream_synchronize(stream)
    cuda_runtime.stream_destroy(stream)


@pytest.fixture
def copy_plan(request: pytest.FixtureRequest, cuda_runtime: Runtime) -> Iterator[PlanMaker]:
    """Yield ``make(direction, mixture, count, seed=0, ...)``: a plan of ``count`` copies in filled buffers.

    ``direction`` is h2d, d2h, d2d or mixed, ``mixture`` uniform or mixed (sizes); the rest as ``make_plan``
    has it. The buffers carry guard bytes; ``verify()`` of the result lists every wrong byte range and every
    guard that was overrun. ``copy_plan.trace(path)`` yields the batches of a recorded program.
    """
    from pytest_cudabatch.copies import Direction, FilledPlans, Mixture  # noqa: PLC0415 - in the cell only
    from pytest_cudabatch.implementations import ANYTHING  # noqa: PLC0415

    copier: BatchCopy | None = (
        request.getfixturevalue("batch_copy") if "batch_copy" in request.fixturenames else None
    )
    capabilities = ANYTHING if copier is None else copier.capabilities

    def choose(direction: str, mixture: str, count: int, seed: int = 0, **more: Any) -> Plan:
        with skipping_what_it_cannot(copier):
            return capabilities.plan(Direction(direction), Mixture(mixture), count, seed, **more)

    def admit(plan: Plan) -> None:
        with skipping_what_it_cannot(copier):
            capabilities.check_plan(plan)

    plans = FilledPlans(cuda_runtime, choose, admit)
    yield plans
    plans.close()


@pytest.fixture
def cuda_gate(cuda_runtime: Runtime) -> Iterator[GateMaker]:
    """Yield ``close(stream, seconds=0.15)``: work queued on the stream behind it waits for a timer.

    A timer and not the test, because a call of the implementation may itself wait for the stream.
    """
    from pytest_cudabatch.cuda import Gate  # noqa: PLC0415 - in the cell only

    gates: list[Gate] = []

    def close(stream: int, seconds: float = 0.15) -> Gate:
        gates.append(Gate(cuda_runtime, stream))
        gates[-1].open_in(seconds)
        return gates[-1]

    yield close
    for gate in gates:
        gate.open()


@pytest.fixture
def cuda_evidence(request: pytest.FixtureRequest) -> EvidenceReader:
    """Return a function that reads what the interposer has seen in this cell so far."""
    return request.config.stash[EVIDENCE].read


@pytest.fixture
def cuda_finding(request: pytest.FixtureRequest) -> Blame:
    """Return a context manager that attributes a failing assertion to a finding."""
    return Blame(request.node)


@pytest.fixture
def cuda_inject(request: pytest.FixtureRequest) -> Injector:
    """Return a function that asks the interposer for faults in this cell, from now on.

    ``cuda_inject("batch=801; per-copy@3=1")`` lets the driver answer 801 to every batch call and 1 to the
    third single copy. Raises UsageError, with a caret under the place, for a text that does not parse.
    """
    evidence = request.config.stash[EVIDENCE]

    def inject(text: str) -> None:
        from pytest_cudabatch.interposer import parse_injections  # noqa: PLC0415 - in the cell only

        evidence.request(parse_injections(text))

    return inject


@pytest.fixture
def batch_copy(request: pytest.FixtureRequest, cuda_pairing: Pairing, cuda_runtime: Runtime) -> BatchCopy:
    """Return the implementation under test, to be called with a plan and a stream; it returns a code."""
    implementation = implementation_named(_parameter(request), cuda_pairing, request.node)
    with telling_import_failure(request.node):
        bound = implementation.open()
    return BatchCopy(implementation, bound, cuda_pairing, cuda_runtime, request.node)


@pytest.fixture
def cuda_contract(cuda_pairing: Pairing, cuda_runtime: Runtime) -> ContractCheck:
    """Return the contract of this pairing's libraries, and the means to ask them.

    Skips where nothing was observed of the pairing and no header says anything of it.
    """
    from pytest_cudabatch.contract.bench import Bench  # noqa: PLC0415 - in the cell only

    runtime, driver = cuda_pairing.runtime, cuda_pairing.driver
    answers = {} if driver.version is None else known_contract().of(runtime.release, driver.version)
    known = {question: each for question, each in answers.items() if each.source.basis != "assumed"}
    if not known:
        pytest.skip(f"the contract has no answers of runtime {runtime.version} on driver {driver.version}")
    return ContractCheck(Bench(cuda_runtime), known)
