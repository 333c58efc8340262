"""What torch and its extensions ask of a device beside copies: answered, or refused by name."""

from __future__ import annotations

import pytest

from .processes import run, value_of

NOT_SUPPORTED = 801
FOUND, NOT_FOUND, VERSION_NOT_SUFFICIENT = 0, 1, 2

LAYOUTS = {
    "12.8": ("cudaGetDeviceProperties_v2", 1032, {"multi_processors": 388, "asynchronous_engines": 600}),
    "13.0": ("cudaGetDeviceProperties", 1008, {"multi_processors": 384, "asynchronous_engines": 584}),
}
"""Function, size and offsets of cudaDeviceProp: driver_types.h of 12.9 and 13.0."""


@pytest.mark.parametrize("runtime", ["12.6", "12.8", "13.0"])
def test_what_is_not_simulated_says_so_once(runtime: str) -> None:
    ended = run("unsupported", driver="13.0", runtime=runtime, times=3)
    assert ended.value == {
        "driver": [NOT_SUPPORTED] * 3,
        "runtime": [[NOT_SUPPORTED, NOT_SUPPORTED]] * 3,
        "cleared": 0,
    }
    assert ended.stderr.splitlines() == [
        "simulated CUDA: cuMemAdvise is not supported (simulated device)",
        "simulated CUDA: cudaMemAdvise is not supported (simulated device)",
    ]


@pytest.mark.parametrize(
    ("name", "version", "answer"),
    [
        ("cuMemAdvise", 13000, [0, FOUND, NOT_SUPPORTED]),
        ("cuMulticastCreate", 12010, [0, FOUND, NOT_SUPPORTED]),
        ("cuMulticastCreate", 12000, [0, VERSION_NOT_SUFFICIENT]),
        ("cuNoSuchFunction", 13000, [0, NOT_FOUND]),
    ],
)
def test_a_look_up_finds_what_is_not_simulated(name: str, version: int, answer: list[int]) -> None:
    assert run("unsupported_look_up", driver="13.0", name=name, version=version).value == answer


@pytest.mark.parametrize("runtime", LAYOUTS)
def test_properties_lie_where_the_header_says(runtime: str) -> None:
    entry, size, offsets = LAYOUTS[runtime]
    everywhere = {"warp_size": 308, "major": 360, "minor": 364}
    found = value_of(
        "properties",
        driver="13.0",
        runtime=runtime,
        entry=entry,
        size=size,
        offsets={**everywhere, **offsets},
    )
    assert found == {
        "code": 0,
        "name": "pytest-cudabatch simulated device",
        "members": {
            "warp_size": 32,
            "major": 9,
            "minor": 0,
            "multi_processors": 1,
            "asynchronous_engines": 1,
        },
        "guard": True,
        "last byte": 0,
    }


@pytest.mark.parametrize("runtime", ["12.8", "13.0"])
def test_a_launch_is_refused_by_the_kernels_name(runtime: str) -> None:
    kernels = [f"kernel_{number}" for number in range(3000)]
    ended = run("launch", driver="13.0", runtime=runtime, kernels=kernels, launched=2999)
    assert ended.value == {"image": True, "kernel": 0, "refused": [NOT_SUPPORTED] * 3, "last": NOT_SUPPORTED}
    assert ended.stderr.splitlines() == [
        "simulated CUDA: cannot launch kernel_2999 (simulated device)",
        "simulated CUDA: cannot launch a kernel that was not registered (simulated device)",
    ]


@pytest.mark.parametrize("runtime", ["12.8", "13.0"])
def test_what_streams_and_devices_are(runtime: str) -> None:
    assert value_of("stream_queries", driver="13.0", runtime=runtime) == {
        "priority": -2,
        "flags": 1,
        "highest": -5,
        "peer": 0,
        "recorded": 0,
    }
