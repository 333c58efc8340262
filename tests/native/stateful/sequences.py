"""Runs the state machine so many times."""

from __future__ import annotations

from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from .machine import DriverMachine

__all__ = ["run_sequences"]

STEPS = 50


def run_sequences(
    machine: type[DriverMachine], sequences: int, *, random: bool = False, shrink: bool = True
) -> None:
    """Raise what the first sequence that fails raises; ``shrink`` has Hypothesis make that sequence short.

    They are the same each time, unless ``random``.
    """
    phases = (Phase.generate, Phase.shrink) if shrink else (Phase.generate,)
    chosen = settings(
        max_examples=sequences,
        stateful_step_count=STEPS,
        derandomize=not random,
        database=None,
        phases=phases,
        report_multiple_bugs=shrink,
        deadline=None,
        suppress_health_check=list(HealthCheck),  # a sequence takes as long as it takes
    )
    run_state_machine_as_test(machine, settings=chosen)  # type: ignore[no-untyped-call]
