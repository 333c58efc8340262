from __future__ import annotations

from pathlib import Path

import pytest

from pytest_cudabatch.abi import CudaVersion
from pytest_cudabatch.errors import UsageError
from pytest_cudabatch.pairings import DriverEntry, Pairing, RuntimeEntry, select


def pairing(release: str, driver: str) -> Pairing:
    version = CudaVersion.parse(release)
    runtime = RuntimeEntry(version, release, version.abi, True, Path("libcudart.so"), "wheel")
    return Pairing(runtime, DriverEntry(CudaVersion.parse(driver)), "device", "assumed")


PAIRINGS = tuple(
    pairing(release, driver)
    for release in ("12.6.77", "12.8", "12.9.79", "13.0.96")
    for driver in ("12.4", "13.0", "13.5")
)


@pytest.mark.parametrize(
    ("expression", "ids"),
    [
        ("runtime>=12.8,<13 on driver>=13", "cu12.8-d13.0 cu12.8-d13.5 cu12.9-d13.0 cu12.9-d13.5"),
        ("  runtime >= 12.8 , < 13   on  driver == 13.5 ", "cu12.8-d13.5 cu12.9-d13.5"),
        ("runtime==12.9", "cu12.9-d12.4 cu12.9-d13.0 cu12.9-d13.5"),
        ("runtime==12.9.79 on driver==13.0", "cu12.9-d13.0"),
        ("runtime>12.8 on driver==13.0", "cu12.9-d13.0 cu13.0-d13.0"),
        ("runtime!=12.9,==12.* on driver<13", "cu12.6-d12.4 cu12.8-d12.4"),
        ("runtime~=12.8 on driver~=13.2", "cu12.8-d13.5 cu12.9-d13.5"),
        ("driver<12.8", "cu12.6-d12.4 cu12.8-d12.4 cu12.9-d12.4 cu13.0-d12.4"),
        ("runtime==12.9.37", ""),
        ("runtime<12.8.1 on driver<13", "cu12.6-d12.4 cu12.8-d12.4"),
    ],
)
def test_what_an_expression_selects(expression: str, ids: str) -> None:
    assert [pairing.id for pairing in select(PAIRINGS, expression)] == ids.split()


MISSING = "a version specifier is missing here, such as >=12.8"


@pytest.mark.parametrize(
    ("expression", "caret", "problem"),
    [
        ("", "^", "'runtime' or 'driver' belongs here"),
        ("smoke", "^", "'runtime' or 'driver' belongs here, not 'smoke'"),
        ("runtime", "       ^", MISSING),
        ("runtime>=12.8,", "              ^", MISSING),
        ("runtime>=12.8,,<13", "              ^", MISSING),
        (
            "runtime>=12.8,<<13 on driver>=13",
            "              ^",
            "'<<13' is not a version specifier such as >=12.8",
        ),
        (
            "runtime>=12.8 on drivers>=13",
            "                 ^",
            "'runtime' or 'driver' belongs here, not 'drivers'",
        ),
        ("runtime>=12.8 on", "                ^", "'runtime' or 'driver' belongs here"),
        ("driver>=13 on runtime>=12", "^", "the runtime comes before 'on' and the driver after it"),
        ("runtime>=12 on runtime<13", "^", "the runtime comes before 'on' and the driver after it"),
        ("driver>=13 on driver<14", "^", "the runtime comes before 'on' and the driver after it"),
        (
            "runtime>=12 on driver>=13 on driver<14",
            "                          ^",
            "only one 'on' joins the runtime and the driver",
        ),
        (
            "runtime>=12 driver>=13",
            "       ^",
            "'>=12 driver>=13' is not a version specifier such as >=12.8",
        ),
        (
            "runtime>=12.8 on driver>=580",
            "                       ^",
            "580 is a driver release; a driver is selected by the CUDA version that it reports, such as "
            "driver>=13.0",
        ),
    ],
)
def test_an_error_points_at_its_place(expression: str, caret: str, problem: str) -> None:
    with pytest.raises(UsageError) as refusal:
        select(PAIRINGS, expression)
    assert str(refusal.value).split("\n") == [
        f"the selection does not parse: {problem} (write it like 'runtime>=12.8,<13 on driver>=13')",
        f"  {expression}",
        f"  {caret}",
    ]


def test_no_driver_is_within_no_range() -> None:
    version = CudaVersion(12, 9)
    runtime = RuntimeEntry(version, "12.9.79", version.abi, True, Path("libcudart.so"), "wheel")
    without = Pairing(runtime, DriverEntry(None), "no-driver", "header")
    expressions = (
        "runtime==12.9",
        "runtime==12.9.79",
        "runtime>=13",
        "driver>=12",
        "driver<13",
        "driver!=13",
    )
    assert [expression for expression in expressions if select([without], expression)] == [
        "runtime==12.9",
        "runtime==12.9.79",
    ]
