"""The implementation under test as a cell has it: loaded, bound, and called with plans."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from pytest_cudabatch.cell_evidence import EVIDENCE
from pytest_cudabatch.telling import ANNOUNCED_PATH, RETURNED_CODE, Blame, telling_import_failure

if TYPE_CHECKING:
    from pytest_cudabatch.copies import BoundPlan
    from pytest_cudabatch.cuda import Memory
    from pytest_cudabatch.implementations import BoundImplementation, Capabilities, Implementation
    from pytest_cudabatch.pairings import Pairing

__all__ = ["BatchCopy", "implementation_named", "skipping_what_it_cannot"]


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
