"""Random sequences of calls to the simulated driver, held against a plain model: answers and every byte."""

from __future__ import annotations

import pytest

from .processes import driver_path
from .stateful.driver import Driver
from .stateful.machine import DriverMachine
from .stateful.sequences import run_sequences

NOTHING: dict[str, str] = {}


def test_sequences() -> None:
    with Driver(driver_path("13.0"), NOTHING) as driver:
        DriverMachine.driver = driver
        run_sequences(DriverMachine, 300)


@pytest.mark.nightly
def test_many_sequences() -> None:
    with Driver(driver_path("13.0"), NOTHING) as driver:
        DriverMachine.driver = driver
        run_sequences(DriverMachine, 10_000, random=True)


@pytest.mark.parametrize("faults", ["per-copy=flip", "batch@2=719", "per-copy@3+=crash"])
def test_a_driver_at_fault_is_found(faults: str) -> None:
    """The same machine fails where the driver's answers or bytes are wrong, or it crashes."""
    with Driver(driver_path("13.0"), {"CUDABATCH_SIM_FAULTS": faults}) as driver:
        DriverMachine.driver = driver
        with pytest.raises(AssertionError):
            run_sequences(DriverMachine, 300, shrink=False)
