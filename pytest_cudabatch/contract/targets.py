"""Which libraries to ask: a host's runtimes on its driver, or simulated ones of the contract's versions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pytest_cudabatch.abi import CudaVersion
from pytest_cudabatch.contract.asking import Target
from pytest_cudabatch.contract.contract import Contract
from pytest_cudabatch.cuda import SimulatedVersions

if TYPE_CHECKING:
    from pytest_cudabatch.pairings import Matrix
    from pytest_cudabatch.runtimes import DriverFacts, RuntimeFile

__all__ = ["device_targets", "simulated_targets"]


def device_targets(
    matrix: Matrix, driver: DriverFacts, runtimes: Iterable[RuntimeFile]
) -> tuple[Target, ...]:
    """Return the runtimes that have the batch function and may run on the host's driver.

    Of two with the same release the first is taken. Empty where the driver is not usable.
    """
    if driver.version is None or not driver.context:
        return ()
    targets = {
        runtime.release: Target(runtime.release, runtime.abi, runtime.path, driver.version)
        for runtime in reversed(list(runtimes))
        if runtime.exports_batch and matrix.basis(runtime.version, driver.version)
    }
    return tuple(reversed(targets.values()))


def simulated_targets(matrix: Matrix, contract: Contract) -> tuple[Target, ...]:
    """Return simulated libraries for every release and driver that the contract has answers of.

    A release stands for its minor version, which is what can be simulated; versions that the matrix does not
    pair are left out.
    """
    from pytest_cudabatch.pairings import simulated_pairings  # noqa: PLC0415 - the asked processes need none of it

    releases: dict[CudaVersion, list[str]] = {}
    for release in contract.releases:
        releases.setdefault(CudaVersion.parse(release), []).append(release)
    return tuple(
        Target(
            release,
            pairing.runtime.abi,
            pairing.runtime.path,
            pairing.driver.version,
            pairing.driver.path,
            SimulatedVersions(pairing.driver.version, pairing.runtime.version).variables(),
        )
        for pairing in simulated_pairings(matrix)
        for release in releases.get(pairing.runtime.version, ())
        if pairing.driver.version in contract.drivers and pairing.runtime.path is not None
    )
