from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_cudabatch.abi import BatchAbi, CudaVersion
from pytest_cudabatch.errors import UsageError
from pytest_cudabatch.pairings import (
    DriverEntry,
    Pairing,
    RuntimeEntry,
    device_pairings,
    load_matrix,
    no_driver_pairings,
    simulated_pairings,
)
from pytest_cudabatch.runtimes import DriverFacts, RuntimeFile

DRIVERS = ("12.4", "12.8", "12.9", "13.0", "13.2", "13.5")
ROUTES = {
    # r: the runtime's route exists, d: the driver's; a: assumed, h: from headers, o: observed; "": not legal
    "12.6": ("h", "dh", "dh", "dh", "dh", "dh"),
    "12.8": ("a", "rdh", "rdh", "rdo", "rdh", "rdh"),
    "12.9": ("a", "rdh", "rdh", "rdo", "rdh", "rdh"),
    "13.0": ("", "", "", "rdo", "rdh", "rdh"),
    "13.1": ("", "", "", "rdh", "rdh", "rdh"),
    "13.2": ("", "", "", "rdo", "rdh", "rdh"),
    "13.3": ("", "", "", "rdh", "rdh", "rdh"),
    "13.4": ("", "", "", "rdh", "rdh", "rdh"),
    "13.5": ("", "", "", "rdo", "rdh", "rdh"),
}
LIBRARIES = {
    "12.6": "simcuda/runtime-12.6/libcudart.so.12",
    "12.8": "simcuda/runtime-12.8/libcudart.so.12",
    "12.9": "simcuda/runtime-12.8/libcudart.so.12",
    **{f"13.{minor}": "simcuda/runtime-13.0/libcudart.so.13" for minor in range(6)},
}
DRIVER_LIBRARIES = {
    "12.4": "simcuda/driver-12.4/libcuda.so.1",
    "12.8": "simcuda/driver-12.8/libcuda.so.1",
    "12.9": "simcuda/driver-12.8/libcuda.so.1",
    **{f"13.{minor}": "simcuda/driver-13.0/libcuda.so.1" for minor in (0, 2, 5)},
}


def simulated() -> tuple[Pairing, ...]:
    return simulated_pairings(load_matrix(), library=Path)


def file(release: str, *, exports_batch: bool = True) -> RuntimeFile:
    return RuntimeFile(Path("/cache", release, "libcudart.so"), release, "wheel", exports_batch, "record")


def driver(version: str | None) -> DriverFacts:
    known = CudaVersion.parse(version) if version else None
    return DriverFacts(known, "580.159.04", ("NVIDIA H200",), True, "", Path("/lib/libcuda.so.1"), False)


def test_the_36_simulated_pairings() -> None:
    found = {
        pairing.id: ("r" * pairing.runtime_route) + ("d" * pairing.driver_route) + pairing.basis[0]
        for pairing in simulated()
    }
    assert found == {
        f"cu{runtime}-d{version}": routes
        for runtime, row in ROUTES.items()
        for version, routes in zip(DRIVERS, row, strict=True)
        if routes
    }
    assert len(found) == 36


def test_the_libraries_of_simulated_pairings() -> None:
    pairings = simulated()
    assert {str(pairing.runtime.version): str(pairing.runtime.path) for pairing in pairings} == LIBRARIES
    assert {str(pairing.driver.version): str(pairing.driver.path) for pairing in pairings} == DRIVER_LIBRARIES


def test_one_simulated_pairing_in_full() -> None:
    pairing = next(pairing for pairing in simulated() if pairing.id == "cu12.9-d13.0")
    assert pairing == Pairing(
        RuntimeEntry(
            CudaVersion(12, 9), "12.9", BatchAbi.V12080, True, Path(LIBRARIES["12.9"]), source="simulated"
        ),
        DriverEntry(CudaVersion(13, 0), Path(DRIVER_LIBRARIES["13.0"])),
        platform="simulated",
        basis="observed",
    )
    assert pairing.runtime.describe() == {"version": "12.9", "abi": "v12080", "source": "simulated"}
    assert pairing.driver.describe() == {"version": "13.0"}


def test_pairings_cross_processes() -> None:
    runtimes = [file("12.9.79")]
    pairings = (
        *simulated(),
        *device_pairings(load_matrix(), driver("13.0"), runtimes),
        *no_driver_pairings(load_matrix(), runtimes),
    )
    text = json.dumps([pairing.to_json() for pairing in pairings])
    assert tuple(Pairing.from_json(data) for data in json.loads(text)) == pairings


def test_a_version_that_is_not_simulated(tmp_path: Path) -> None:
    entry = 'version = "14.0"\nbasis = "assumed"\nsource = "none"\n'
    (tmp_path / "runtimes.toml").write_text(
        f'schema = 1\n[[runtime]]\n{entry}abi = "v13000"\nexports_batch = true\n'
    )
    (tmp_path / "pairings.toml").write_text(
        'schema = 1\n[[legal]]\nruntime = ">=14"\ndriver = ">=13.5"\nbasis = "assumed"\nsource = "none"\n'
    )
    with pytest.raises(UsageError) as refusal:
        simulated_pairings(load_matrix(tmp_path), library=Path)
    assert str(refusal.value) == (
        "runtime 14.0 of the matrix is not simulated; the simulated ones start at 12.6, 12.8, 13.0"
    )


def test_pairings_of_a_host() -> None:
    runtimes = [file("13.5.37"), file("12.6.77", exports_batch=False), file("12.9.79")]
    pairings = device_pairings(load_matrix(), driver("13.0"), runtimes)
    assert [
        (pairing.id, pairing.runtime.release, pairing.runtime_route, pairing.driver_route, pairing.basis)
        for pairing in pairings
    ] == [
        ("cu12.6-d13.0", "12.6.77", False, True, "header"),
        ("cu12.9-d13.0", "12.9.79", True, True, "observed"),
        ("cu13.5-d13.0", "13.5.37", True, True, "observed"),
    ]
    assert {pairing.platform for pairing in pairings} == {"device"}
    assert {pairing.driver for pairing in pairings} == {DriverEntry(CudaVersion(13, 0), None, "580.159.04")}
    assert pairings[1].runtime == RuntimeEntry(
        CudaVersion(12, 9), "12.9.79", BatchAbi.V12080, True, Path("/cache/12.9.79/libcudart.so"), "wheel"
    )


def test_the_newest_release_of_a_minor_version_is_taken() -> None:
    pairings = device_pairings(
        load_matrix(), driver("13.0"), [file("12.9.79"), file("12.9.9"), file("12.9.100")]
    )
    assert [(pairing.id, pairing.runtime.release) for pairing in pairings] == [("cu12.9-d13.0", "12.9.100")]


def test_a_13_runtime_needs_a_13_driver() -> None:
    pairings = device_pairings(load_matrix(), driver("12.8"), [file("12.9.79"), file("13.0.96")])
    assert [pairing.id for pairing in pairings] == ["cu12.9-d12.8"]


def test_a_driver_between_those_of_the_matrix() -> None:
    pairings = device_pairings(load_matrix(), driver("12.6"), [file("12.8.90")])
    assert [
        (pairing.id, pairing.runtime_route, pairing.driver_route, pairing.basis) for pairing in pairings
    ] == [("cu12.8-d12.6", False, False, "assumed")]


def test_a_host_without_a_driver() -> None:
    assert device_pairings(load_matrix(), driver(None), [file("12.9.79")]) == ()


def test_pairings_without_a_driver() -> None:
    runtimes = [file("13.0.96"), file("12.9.37"), file("12.9.79"), file("12.2.140", exports_batch=False)]
    pairings = no_driver_pairings(load_matrix(), runtimes)
    assert [
        (p.id, p.runtime.release, p.runtime_route, p.driver_route, p.platform, p.basis) for p in pairings
    ] == [
        ("cu12.2-dnone", "12.2.140", False, False, "no-driver", "assumed"),
        ("cu12.9-dnone", "12.9.79", False, False, "no-driver", "header"),
        ("cu13.0-dnone", "13.0.96", False, False, "no-driver", "header"),
    ]
    assert {pairing.driver for pairing in pairings} == {DriverEntry(None)}
    assert DriverEntry(None).describe() == {"version": None}
