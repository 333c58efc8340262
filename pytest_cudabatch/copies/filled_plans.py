"""Plans in one runtime, with buffers that are filled, until all are closed: what ``copy_plan`` makes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pytest_cudabatch.copies.bound import BoundPlan
from pytest_cudabatch.copies.plan import Plan
from pytest_cudabatch.copies.replays import plan_of
from pytest_cudabatch.copies.traces import Trace
from pytest_cudabatch.cuda import Memory, RegisteredHalves, Runtime

__all__ = ["FilledPlans"]


class FilledPlans:
    """Gives memory to the plans that ``choose`` makes, until ``close``; ``admit`` judges those of a trace."""

    def __init__(self, memory: Memory, choose: Callable[..., Plan], admit: Callable[[Plan], None]) -> None:
        self._memory = memory
        self._choose = choose
        self._admit = admit
        self._bound: list[BoundPlan] = []

    def __call__(self, *arguments: Any, **more: Any) -> BoundPlan:
        """Make a plan; the arguments are those of ``choose``."""
        return self._fill(self._choose(*arguments, **more))

    def across_registrations(self, runtime: Runtime, count: int, size: int) -> BoundPlan:
        """Make a plan of pages side by side, in order, out of host memory that two registrations share.

        Each page lies in one of them; at the border two pages meet.
        """
        plan = self._choose("h2d", "uniform", count, sizes=[size], gaps=[0])
        return self._fill(plan.in_source_order(), RegisteredHalves(runtime))

    def trace(self, path: Path | str) -> Iterator[BoundPlan]:
        """Yield a plan for each batch of a trace; each is closed when the next one is asked for."""
        trace = Trace.load(Path(path))
        for index in range(len(trace)):
            plan = plan_of(trace, index)
            self._admit(plan)
            with self._fill(plan) as bound:
                yield bound
            self._bound.remove(bound)

    def close(self) -> None:
        """Free all buffers. Idempotent."""
        for bound in self._bound:
            bound.close()

    def _fill(self, plan: Plan, memory: Memory | None = None) -> BoundPlan:
        bound = BoundPlan(plan, memory or self._memory)
        self._bound.append(bound)
        bound.fill()
        return bound
