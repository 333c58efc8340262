"""The fixtures that cell tests use. They do their work in the cell's own process, never in the controller."""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from pytest_cudabatch.errors import CudaError
from pytest_cudabatch.finding_codes import Code

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_cudabatch.contract import Answer, Contract, ContractAnswer, Question
    from pytest_cudabatch.contract.bench import Bench
    from pytest_cudabatch.copies import BoundPlan, Direction, Mixture, Plan
    from pytest_cudabatch.cuda import Gate, Memory, Runtime
    from pytest_cudabatch.implementations import BoundImplementation, Capabilities, Implementation
    from pytest_cudabatch.interposer import Evidence, EvidenceFile, Injection
    from pytest_cudabatch.pairings import Pairing

__all__ = [
    "BatchCopy",
    "Blame",
    "ContractCheck",
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
    "implementation_named",
    "known_contract",
    "telling_import_failure",
]

ENVIRONMENTS = {3: Code.LEAKED_STATE, 35: Code.DRIVER_TOO_OLD, 100: Code.NO_GPU}
"""What a runtime's first answer says of the process and the host, by cudaError_t: initialised before the fork
(initialization error), insufficient driver, no device."""

ANNOUNCED_PATH = "cudabatch_announced_path"
RETURNED_CODE = "cudabatch_returned_code"
IMPORT_FAILURE = "cudabatch_import_failure"
BLAMED_FINDING = "cudabatch_blamed_finding"
ENVIRONMENT_FINDING = "cudabatch_environment_finding"
LOST_CONTEXT = "cudabatch_lost_context"
TOLD = (
    ANNOUNCED_PATH,
    RETURNED_CODE,
    IMPORT_FAILURE,
    BLAMED_FINDING,
    ENVIRONMENT_FINDING,
    LOST_CONTEXT,
)
"""User properties by which a cell tells its supervisor what it cannot see from outside."""


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


@dataclass(frozen=True)
class CellEvidence:
    """This cell's slot of the evidence file."""

    file: EvidenceFile
    slot: int

    def read(self) -> Evidence:
        """Return what the interposer has recorded so far."""
        return self.file.read(self.slot)

    def request(self, injections: Iterable[Injection]) -> None:
        """Ask for faults from now on."""
        self.file.request(self.slot, injections)

    def declare_allocations(self, allocations: Iterable[tuple[int, int]]) -> None:
        """Say which memory the next batch calls are about, as (address, bytes)."""
        self.file.declare_allocations(self.slot, allocations)


EVIDENCE: pytest.StashKey[CellEvidence] = pytest.StashKey()
"""Where a cell's config keeps its evidence; set before the cell's set-up."""

PAIRINGS: pytest.StashKey[Sequence[Pairing]] = pytest.StashKey()
"""Where a cell's config keeps all pairings of the run."""


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


class Blame:
    """The ``cuda_finding`` fixture: says which finding a failing assertion stands for.

    ``with cuda_finding("unchecked-return"): assert code == 1``. The innermost block that fails decides.
    """

    def __init__(self, node: pytest.Item) -> None:
        self._node = node

    @contextmanager
    def __call__(self, code: str) -> Iterator[None]:
        """Attribute an AssertionError inside the block to the finding ``code``.

        Raises ValueError for a code that is none of :class:`pytest_cudabatch.findings.Code`.
        """
        known = Code(code)
        try:
            yield
        except AssertionError:
            if all(name != BLAMED_FINDING for name, _ in self._node.user_properties):
                self._node.user_properties.append((BLAMED_FINDING, known.value))
            raise


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


class BatchCopy:
    """The implementation under test, bound to this cell's runtime.

    Calling it enqueues a plan's copies and returns the implementation's own code (0: success). What path the
    implementation announces for the plan is told to the supervisor, which holds it against the evidence.
    """

    def __init__(
        self,
        implementation: Implementation,
        bound: BoundImplementation,
        pairing: Pairing,
        memory: Memory,
        node: pytest.Item,
    ) -> None:
        self.implementation = implementation
        self._bound = bound
        self._pairing = pairing
        self._memory = memory
        self._node = node
        self._blame = Blame(node)
        self._evidence = node.config.stash[EVIDENCE]

    @property
    def capabilities(self) -> Capabilities:
        """What the implementation says that it can do."""
        from pytest_cudabatch.implementations import capabilities_of  # noqa: PLC0415 - in the cell only

        return capabilities_of(self.implementation)

    def expected_path(self, plan: BoundPlan) -> str:
        """Return the path that the implementation announces for ``plan`` on this pairing."""
        return str(self.implementation.expected_path(plan.plan, self._pairing))

    def __call__(self, plan: BoundPlan, stream: int, *, announce: Sequence[str] = ()) -> int:
        """Enqueue ``plan`` on ``stream`` (a handle) and return the code; nothing is synchronised.

        ``announce`` names the paths that are right for this call where the test itself changed what is right,
        by an injected fault for example. Skips the test where the implementation cannot be given the stream.
        """
        with skipping_what_it_cannot(self):
            self.capabilities.check_stream(stream)
        for path in announce or (self.expected_path(plan),):
            self._tell(ANNOUNCED_PATH, path)
        self._evidence.declare_allocations(plan.allocations)
        code = self._bound.copy(plan, stream)
        self._tell(RETURNED_CODE, str(code))
        return code

    def check(self, plan: BoundPlan, stream: int, *, announce: Sequence[str] = ()) -> None:
        """Copy ``plan`` and wait; fail unless the code is 0 and every byte is right, guards included."""
        code = self(plan, stream, announce=announce)
        if code != 0:
            raise AssertionError(f"{self.implementation.name} returned {code} for a valid plan ({plan.plan})")
        self._memory.stream_synchronize(stream)
        self.check_bytes(plan)

    def check_bytes(self, plan: BoundPlan, *, finding: str = "wrong-bytes") -> None:
        """Fail unless every byte of ``plan``'s buffers is right; its copies must have completed.

        ``finding`` is what wrong bytes stand for. Bytes that are right as soon as the whole device is idle
        came too late: the copies were not on the stream that was synchronised, nor waited for by it.
        """
        problems = plan.verify()
        if not problems:
            return
        self._memory.device_synchronize()
        late = not plan.verify()
        overrun = any(type(problem).__name__ == "GuardOverrun" for problem in problems)
        with self._blame("early-return" if late else "guard-overrun" if overrun else finding):
            when = "before the copies were done: " if late else ""
            raise AssertionError(when + "\n".join(map(str, problems)))

    def _tell(self, name: str, value: str) -> None:
        if (name, value) not in self._node.user_properties:
            self._node.user_properties.append((name, value))


@contextmanager
def skipping_what_it_cannot(copier: BatchCopy | None) -> Iterator[None]:
    """Skip the test, with the reason, where the block asks an implementation for what it cannot do."""
    from pytest_cudabatch.implementations import NotCapable  # noqa: PLC0415 - in the cell only

    try:
        yield
    except NotCapable as reason:
        pytest.skip(f"{copier.implementation.name}: {reason}" if copier else str(reason))


@pytest.fixture
def batch_copy(request: pytest.FixtureRequest, cuda_pairing: Pairing, cuda_runtime: Runtime) -> BatchCopy:
    """Return the implementation under test, to be called with a plan and a stream; it returns a code."""
    implementation = implementation_named(_parameter(request), cuda_pairing, request.node)
    with telling_import_failure(request.node):
        bound = implementation.open()
    return BatchCopy(implementation, bound, cuda_pairing, cuda_runtime, request.node)


def implementation_named(name: str, pairing: Pairing, node: pytest.Item) -> Implementation:
    """Load the implementation of that name in this cell; where that fails, the supervisor is told.

    Skips the test where the implementation cannot run on the pairing's runtime.
    """
    from pytest_cudabatch.implementations import NotCapable, capabilities_of, load  # noqa: PLC0415 - in the cell

    with telling_import_failure(node):
        implementation = load(name)
        capabilities = capabilities_of(implementation)
    try:
        capabilities.check_runtime(pairing.runtime.version)
    except NotCapable as reason:
        pytest.skip(f"{implementation.name}: {reason}")
    return implementation


@contextmanager
def telling_import_failure(node: pytest.Item) -> Iterator[None]:
    """Tell the supervisor of whatever ends the block early: the implementation cannot be loaded."""
    try:
        yield
    except (Exception, SystemExit) as failure:  # foreign code may raise anything; it is passed on
        node.user_properties.append((IMPORT_FAILURE, f"{type(failure).__name__}: {failure}"))
        raise


@functools.cache
def known_contract() -> Contract:
    """Return the packaged contract; read once, in a zygote before the forks of the cells that need it."""
    from pytest_cudabatch.contract import load_contract  # noqa: PLC0415 - only where a cell asks for it

    return load_contract()


class ContractCheck:
    """The ``cuda_contract`` fixture: what this pairing's own libraries answer, beside what is known of them.

    A row is a call and an entry a function that it is put to, by their names in docs/contract.md. ``known``
    holds what real libraries of these versions answered, or a header says; what is assumed is not in it.
    """

    def __init__(self, bench: Bench, known: dict[Question, ContractAnswer]) -> None:
        self._bench = bench
        self._known = known

    def known(self, row: str) -> dict[str, Answer]:
        """Return the contract's answers to ``row``, by entry. Raises ValueError where it has none."""
        found = {question.entry: each.answer for question, each in self._known.items() if question.row == row}
        if not found:
            raise ValueError(f"the contract has no answer to {row!r} on this pairing")
        return found

    def answer(self, row: str, entry: str) -> Answer:
        """Put ``row`` to ``entry`` in this process. Raises ValueError for a row that may end the process."""
        from pytest_cudabatch.contract import Question  # noqa: PLC0415 - in the cell only
        from pytest_cudabatch.contract.replies import reply  # noqa: PLC0415 - in the cell only

        question = Question(row, entry)
        if question.alone:
            raise ValueError(f"{row!r} may end the process; ask it by: cudabatch probe --contract")
        return reply(self._bench, question)

    def differences(self, *rows: str) -> list[str]:
        """Put each row to every batch function that the contract has an answer of; return where they differ.

        Single copies are left out: in this cell's evidence they would be a fallback.
        """
        from pytest_cudabatch.contract.entries import entry_of  # noqa: PLC0415 - in the cell only

        found = []
        for row in rows:
            for entry, expected in self.known(row).items():
                if entry_of(entry).shape == "copy":
                    continue
                actual = self.answer(row, entry)
                if not expected.agrees_with(actual):
                    found.append(f"{row}, {entry}: expected {expected}, got {actual}")
        return found


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
