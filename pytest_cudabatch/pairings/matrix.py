"""The matrix: known runtimes and drivers, which of them go together, and the pairings that follow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pytest_cudabatch import native
from pytest_cudabatch.abi import BatchAbi, CudaVersion
from pytest_cudabatch.errors import UsageError
from pytest_cudabatch.pairings.pairing import Basis, DriverEntry, Pairing, RuntimeEntry
from pytest_cudabatch.pairings.version_range import VersionRange
from pytest_cudabatch.runtimes import DriverFacts, RuntimeFile

__all__ = [
    "KnownDriver",
    "KnownRuntime",
    "Matrix",
    "PairingRow",
    "device_pairings",
    "no_driver_pairings",
    "simulated_pairings",
]


@dataclass(frozen=True)
class KnownRuntime:
    """A ``[[runtime]]`` of runtimes.toml; ``source`` says what the entry rests on."""

    version: CudaVersion
    abi: BatchAbi
    exports_batch: bool
    basis: Basis
    source: str


@dataclass(frozen=True)
class KnownDriver:
    """A ``[[driver]]`` of drivers.toml; ``branch`` is the release branch (580), where it is known."""

    version: CudaVersion
    exports: tuple[str, ...]
    branch: int | None
    basis: Basis
    source: str


@dataclass(frozen=True)
class PairingRow:
    """A ``[[legal]]`` or ``[[basis]]`` of pairings.toml: what holds for every pairing in both ranges."""

    runtime: VersionRange
    driver: VersionRange
    basis: Basis
    source: str
    file: str | None

    def matches(self, runtime: CudaVersion, driver: CudaVersion) -> bool:
        """Whether the pairing of these two versions is in both ranges."""
        return self.runtime.contains(runtime) and self.driver.contains(driver)


@dataclass(frozen=True)
class Matrix:
    """Everything that the matrix files say, versions in rising order."""

    runtimes: tuple[KnownRuntime, ...]
    drivers: tuple[KnownDriver, ...]
    legal: tuple[PairingRow, ...]
    bases: tuple[PairingRow, ...]

    def ground(self, runtime: CudaVersion, driver: CudaVersion) -> PairingRow | None:
        """Return the row that a pairing of these versions rests on, or None where it is not legal."""
        legal = [row for row in self.legal if row.matches(runtime, driver)]
        if not legal:
            return None
        refined = [row for row in self.bases if row.matches(runtime, driver)]
        return (refined or legal)[-1]

    def basis(self, runtime: CudaVersion, driver: CudaVersion) -> Basis | None:
        """Return the basis of the pairing of these versions, or None where it is not legal."""
        ground = self.ground(runtime, driver)
        return ground.basis if ground else None

    def legal_pairs(self) -> Iterator[tuple[KnownRuntime, KnownDriver, Basis]]:
        """Yield every legal pair of a known runtime and a known driver, by runtime, then by driver."""
        for runtime in self.runtimes:
            for driver in self.drivers:
                if basis := self.basis(runtime.version, driver.version):
                    yield runtime, driver, basis


SIMULATED_RUNTIMES = {
    CudaVersion(12, 6): "simcuda/runtime-12.6/libcudart.so.12",
    CudaVersion(12, 8): "simcuda/runtime-12.8/libcudart.so.12",
    CudaVersion(13, 0): "simcuda/runtime-13.0/libcudart.so.13",
}
SIMULATED_DRIVERS = {
    CudaVersion(12, 4): "simcuda/driver-12.4/libcuda.so.1",
    CudaVersion(12, 8): "simcuda/driver-12.8/libcuda.so.1",
    CudaVersion(13, 0): "simcuda/driver-13.0/libcuda.so.1",
}
"""The first version of each simulated library; it stands for the later ones up to the next, too."""


def simulated_pairings(
    matrix: Matrix, *, library: Callable[[str], Path] = native.library
) -> tuple[Pairing, ...]:
    """Return every legal pairing of the matrix on simulated CUDA.

    ``library`` finds an installed library. Raises UsageError for a version that is not simulated, and
    InstallationError where the simulated libraries were not built.
    """
    return tuple(
        Pairing(
            RuntimeEntry(
                version=runtime.version,
                release=str(runtime.version),
                abi=runtime.abi,
                exports_batch=runtime.exports_batch,
                path=library(_simulated(SIMULATED_RUNTIMES, "runtime", runtime.version)),
                source="simulated",
            ),
            DriverEntry(driver.version, library(_simulated(SIMULATED_DRIVERS, "driver", driver.version))),
            platform="simulated",
            basis=basis,
        )
        for runtime, driver, basis in matrix.legal_pairs()
    )


def _simulated(files: dict[CudaVersion, str], kind: str, version: CudaVersion) -> str:
    """Return the file that stands for ``version``: the newest that is not newer, of the same major."""
    usable = [first for first in files if first <= version and first.major == version.major]
    if not usable:
        known = ", ".join(map(str, files))
        raise UsageError(
            f"{kind} {version} of the matrix is not simulated; the simulated ones start at {known}"
        )
    return files[max(usable)]


def device_pairings(
    matrix: Matrix, driver: DriverFacts, runtimes: Iterable[RuntimeFile]
) -> tuple[Pairing, ...]:
    """Return the pairings of a host: each of ``runtimes`` that may run on its ``driver``.

    Of several runtimes with one minor version the newest release is taken, since a pairing's id has no
    patch level. Empty where the probe learnt no version. Raises nothing.
    """
    if driver.version is None:
        return ()
    entry = DriverEntry(driver.version, None, driver.release)
    return tuple(
        Pairing(RuntimeEntry.of_file(runtime), entry, platform="device", basis=basis)
        for runtime in _newest_of_each_version(runtimes)
        if (basis := matrix.basis(runtime.version, driver.version))
    )


def no_driver_pairings(matrix: Matrix, runtimes: Iterable[RuntimeFile]) -> tuple[Pairing, ...]:
    """Return one pairing without a driver for each minor version of ``runtimes``, of the newest release.

    Its basis is the matrix's for that runtime, and ``assumed`` for one that the matrix does not know.
    """
    known = {runtime.version: runtime.basis for runtime in matrix.runtimes}
    return tuple(
        Pairing(
            RuntimeEntry.of_file(runtime),
            DriverEntry(None),
            platform="no-driver",
            basis=known.get(runtime.version, "assumed"),
        )
        for runtime in _newest_of_each_version(runtimes)
    )


def _newest_of_each_version(runtimes: Iterable[RuntimeFile]) -> list[RuntimeFile]:
    by_release = sorted(runtimes, key=lambda runtime: runtime.release_order)
    return list({runtime.version: runtime for runtime in by_release}.values())
