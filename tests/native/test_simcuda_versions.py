"""Which versions the simulated libraries report, and what their look-ups find."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from .processes import run, value_of

INVALID_VALUE = 1
FOUND, SYMBOL_NOT_FOUND, VERSION_NOT_SUFFICIENT = 0, 1, 2


@pytest.mark.parametrize(
    ("driver", "runtime", "environment", "expected"),
    [
        ("12.4", "12.6", {}, [12040, 12060]),
        ("12.8", "12.8", {}, [12080, 12080]),
        ("13.0", "13.0", {}, [13000, 13000]),
        (
            "12.4",
            "12.6",
            {"CUDABATCH_SIM_DRIVER": "12070", "CUDABATCH_SIM_RUNTIME_12": "12000"},
            [12070, 12000],
        ),
        (
            "12.8",
            "12.8",
            {"CUDABATCH_SIM_DRIVER": "12090", "CUDABATCH_SIM_RUNTIME_12": "12090"},
            [12090, 12090],
        ),
        (
            "13.0",
            "13.0",
            {"CUDABATCH_SIM_DRIVER": "13020", "CUDABATCH_SIM_RUNTIME_13": "13050"},
            [13020, 13050],
        ),
        (
            "13.0",
            "12.8",
            {"CUDABATCH_SIM_RUNTIME_12": "12090", "CUDABATCH_SIM_RUNTIME_13": "1"},
            [13000, 12090],
        ),
    ],
)
def test_versions_are_set_by_the_environment(
    driver: str, runtime: str, environment: dict[str, str], expected: list[int]
) -> None:
    assert value_of("versions", driver=driver, runtime=runtime, environment=environment) == expected


@pytest.mark.parametrize(
    ("driver", "value", "first", "last", "own"),
    [
        ("12.8", "13000", 12080, 12990, 12080),
        ("12.8", "12040", 12080, 12990, 12080),
        ("12.4", "12080", 12000, 12070, 12040),
        ("13.0", "12090", 13000, 13990, 13000),
        ("13.0", "13.2", 13000, 13990, 13000),
        ("13.0", "", 13000, 13990, 13000),
        ("13.0", "13021", 13000, 13990, 13000),
        ("13.0", " 13020", 13000, 13990, 13000),
        ("13.0", "+13020", 13000, 13990, 13000),
        ("13.0", "99999999999999999999", 13000, 13990, 13000),
    ],
)
def test_a_version_that_the_driver_cannot_be_is_refused(
    driver: str, value: str, first: int, last: int, own: int
) -> None:
    ended = run("refused_driver", driver=driver, environment={"CUDABATCH_SIM_DRIVER": value})
    assert ended.value == {
        "cuInit": INVALID_VALUE,
        "cuInit again": INVALID_VALUE,
        "cuDriverGetVersion": INVALID_VALUE,
        "version": 7,
    }
    assert ended.stderr == (
        f"pytest-cudabatch: CUDABATCH_SIM_DRIVER={value} is not a version that the simulated libcuda of "
        f"driver {driver} can be: set it to {first} ... {last}, like {own}\n"
    )


@pytest.mark.parametrize(
    ("runtime", "variable", "value", "can_be"),
    [
        ("12.6", "CUDABATCH_SIM_RUNTIME_12", "12080", "12000 ... 12070, like 12060"),
        ("12.8", "CUDABATCH_SIM_RUNTIME_12", "12060", "12080 ... 12990, like 12080"),
        ("13.0", "CUDABATCH_SIM_RUNTIME_13", "12090", "13000 ... 13990, like 13000"),
    ],
)
def test_a_version_that_the_runtime_cannot_be_is_refused(
    runtime: str, variable: str, value: str, can_be: str
) -> None:
    ended = run("refused_runtime", driver="13.0", runtime=runtime, environment={variable: value})
    assert ended.value == {
        "cudaRuntimeGetVersion": INVALID_VALUE,
        "version": 7,
        "cudaDeviceSynchronize": INVALID_VALUE,
    }
    assert ended.stderr == (
        f"pytest-cudabatch: {variable}={value} is not a version that the simulated libcudart of runtime "
        f"{runtime} can be: set it to {can_be}\n"
    )


BATCH = "cuMemcpyBatchAsync"


LOOK_UPS: tuple[tuple[str, tuple[str, int, int], tuple[int, str | None, int]], ...] = (
    ("13.0", (BATCH, 12080, 0), (0, "cuMemcpyBatchAsync", FOUND)),
    ("13.0", (BATCH, 12080, 1), (0, "cuMemcpyBatchAsync", FOUND)),
    ("13.0", (BATCH, 12080, 2), (0, "cuMemcpyBatchAsync_ptsz", FOUND)),
    ("13.0", (BATCH, 12090, 0), (0, "cuMemcpyBatchAsync", FOUND)),
    ("13.0", (BATCH, 13000, 0), (0, "cuMemcpyBatchAsync_v2", FOUND)),
    ("13.0", (BATCH, 13000, 2), (0, "cuMemcpyBatchAsync_v2_ptsz", FOUND)),
    ("13.0", (BATCH, 13010, 0), (INVALID_VALUE, None, VERSION_NOT_SUFFICIENT)),
    ("13.0", (BATCH, 12070, 0), (0, None, VERSION_NOT_SUFFICIENT)),
    ("12.8", (BATCH, 12080, 0), (0, "cuMemcpyBatchAsync", FOUND)),
    ("12.8", (BATCH, 12090, 0), (INVALID_VALUE, None, VERSION_NOT_SUFFICIENT)),
    ("12.8", (BATCH, 13000, 0), (INVALID_VALUE, None, VERSION_NOT_SUFFICIENT)),
    ("12.4", (BATCH, 12040, 0), (0, None, SYMBOL_NOT_FOUND)),
    ("12.4", (BATCH, 12080, 0), (INVALID_VALUE, None, VERSION_NOT_SUFFICIENT)),
    ("13.0", ("cuNoSuchFunction", 13000, 0), (0, None, SYMBOL_NOT_FOUND)),
    ("13.0", ("cuMemAlloc_v2", 13000, 0), (0, None, SYMBOL_NOT_FOUND)),
    ("13.0", ("cuMemAlloc", 13000, 2), (0, "cuMemAlloc_v2", FOUND)),
    ("13.0", ("cuMemcpyAsync", 12000, 2), (0, "cuMemcpyAsync_ptsz", FOUND)),
    ("13.0", ("cuMemcpy", 12000, 2), (0, "cuMemcpy_ptds", FOUND)),
    ("13.0", ("cuGetProcAddress", 11030, 0), (0, "cuGetProcAddress", FOUND)),
    ("13.0", ("cuGetProcAddress", 12000, 0), (0, "cuGetProcAddress_v2", FOUND)),
    ("13.0", ("cuCtxSynchronize", 12080, 0), (0, "cuCtxSynchronize", FOUND)),
    ("13.0", ("cuCtxSynchronize", 13000, 0), (0, "cuCtxSynchronize_v2", FOUND)),
    ("13.0", ("cuMemcpy3DBatchAsync", 12080, 2), (0, "cuMemcpy3DBatchAsync_ptsz", FOUND)),
    ("13.0", ("cuMemcpy3DBatchAsync", 13000, 0), (0, "cuMemcpy3DBatchAsync_v2", FOUND)),
    ("12.8", ("cuMemcpy3DBatchAsync", 12080, 0), (0, "cuMemcpy3DBatchAsync", FOUND)),
    ("13.0", ("cuStreamGetCtx", 12040, 0), (0, "cuStreamGetCtx", FOUND)),
    ("13.0", ("cuStreamGetCtx", 12050, 2), (0, "cuStreamGetCtx_v2_ptsz", FOUND)),
    ("13.0", ("cuEventElapsedTime", 12070, 0), (0, "cuEventElapsedTime", FOUND)),
    ("13.0", ("cuEventElapsedTime", 12080, 0), (0, "cuEventElapsedTime_v2", FOUND)),
)
"""Driver, what it is asked (name, version, flags), and code, symbol and status of the answer."""


def look_up(driver: str, asked: tuple[str, int, int], form: int = 5, **environment: str) -> dict[str, Any]:
    """Ask once, in a process of its own."""
    [found] = value_of("look_ups", driver=driver, asked=[asked], form=form, environment=environment)
    assert isinstance(found, dict)
    return found


@pytest.fixture(scope="module", params=[5, 4], ids=["cuGetProcAddress_v2", "cuGetProcAddress"])
def found(request: pytest.FixtureRequest) -> dict[Any, Any]:
    """All answers to LOOK_UPS in one of the two forms; a process per driver."""
    answers: dict[Any, Any] = {}
    for driver in ("12.4", "12.8", "13.0"):
        asked = [row[1] for row in LOOK_UPS if row[0] == driver]
        replies = value_of("look_ups", driver=driver, asked=asked, form=request.param)
        answers |= {(driver, question): reply for question, reply in zip(asked, replies, strict=True)}
    return {"form": request.param, **answers}


@pytest.mark.parametrize(("driver", "asked", "expected"), LOOK_UPS)
def test_look_ups(
    found: dict[Any, Any], driver: str, asked: tuple[str, int, int], expected: tuple[int, str | None, int]
) -> None:
    code, symbol, status = expected
    reply = {"code": code, "symbol": symbol, "status": status if found["form"] == 5 else 99}
    assert found[driver, asked] == reply


def test_a_look_up_follows_the_version_that_is_set() -> None:
    expected = {"code": 0, "symbol": "cuMemcpyBatchAsync_v2", "status": FOUND}
    assert look_up("13.0", (BATCH, 13020, 0), CUDABATCH_SIM_DRIVER="13020") == expected


def test_look_up_flags_beyond_two_are_invalid_and_write_nothing() -> None:
    expected = {"code": INVALID_VALUE, "symbol": "untouched", "status": 99}
    assert look_up("13.0", (BATCH, 12080, 3)) == expected


@pytest.mark.parametrize(
    ("runtime", "function", "asked", "expected"),
    [
        ("13.0", "cudaGetDriverEntryPoint", (BATCH, None, 0), (0, "cuMemcpyBatchAsync_v2", FOUND)),
        ("12.8", "cudaGetDriverEntryPoint", (BATCH, None, 0), (0, "cuMemcpyBatchAsync", FOUND)),
        ("12.8", "cudaGetDriverEntryPoint_ptsz", (BATCH, None, 0), (0, "cuMemcpyBatchAsync_ptsz", FOUND)),
        ("12.8", "cudaGetDriverEntryPoint_ptsz", (BATCH, None, 1), (0, "cuMemcpyBatchAsync", FOUND)),
        ("12.6", "cudaGetDriverEntryPoint", (BATCH, None, 0), (0, None, VERSION_NOT_SUFFICIENT)),
        ("12.8", "cudaGetDriverEntryPointByVersion", (BATCH, 13000, 0), (0, "cuMemcpyBatchAsync_v2", FOUND)),
        ("13.0", "cudaGetDriverEntryPointByVersion", (BATCH, 12080, 0), (0, "cuMemcpyBatchAsync", FOUND)),
        (
            "13.0",
            "cudaGetDriverEntryPointByVersion_ptsz",
            (BATCH, 13000, 0),
            (0, "cuMemcpyBatchAsync_v2_ptsz", FOUND),
        ),
        ("13.0", "cudaGetDriverEntryPointByVersion", (BATCH, 13010, 0), (1, None, VERSION_NOT_SUFFICIENT)),
        (
            "13.0",
            "cudaGetDriverEntryPointByVersion",
            ("cuNoSuchFunction", 13000, 0),
            (0, None, SYMBOL_NOT_FOUND),
        ),
    ],
)
def test_entry_points_of_the_runtime(
    runtime: str, function: str, asked: tuple[str, int | None, int], expected: tuple[int, str | None, int]
) -> None:
    name, version, flags = asked
    words = {"function": function, "name": name, "version": version, "flags": flags}
    found = value_of("entry_point", driver="13.0", runtime=runtime, **words)
    assert (found["code"], found["symbol"], found["status"]) == expected


def test_entry_point_without_a_version_fails_on_an_older_driver_of_the_same_major() -> None:
    found = value_of(
        "entry_point",
        driver="13.0",
        runtime="13.0",
        environment={"CUDABATCH_SIM_RUNTIME_13": "13020"},
        function="cudaGetDriverEntryPoint",
        name=BATCH,
        version=None,
        flags=0,
    )
    assert found == {"code": 1, "symbol": None, "status": VERSION_NOT_SUFFICIENT}


@pytest.fixture(scope="module")
def no_libcuda_on_this_host() -> None:
    probe = "import ctypes; ctypes.CDLL('libcuda.so.1')"
    if subprocess.run([sys.executable, "-c", probe], capture_output=True, check=False).returncode == 0:
        pytest.skip("this host has a libcuda.so.1, which a runtime alone would find")


@pytest.mark.usefixtures("no_libcuda_on_this_host")
@pytest.mark.parametrize("runtime", ["12.8", "13.0"])
def test_a_runtime_without_any_driver(runtime: str) -> None:
    assert value_of("without_driver", runtime=runtime) == {
        "cudaDriverGetVersion": 0,
        "driver version": 0,
        "cudaMalloc": 35,
        "cudaGetDeviceCount": 35,
        "batch": 35,
    }


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (0, ["cudaSuccess", "no error", "CUDA_SUCCESS", "no error"]),
        (1, ["cudaErrorInvalidValue", "invalid argument", "CUDA_ERROR_INVALID_VALUE", "invalid argument"]),
        (
            35,
            [
                "cudaErrorInsufficientDriver",
                "CUDA driver version is insufficient for CUDA runtime version",
                1,
                1,
            ],
        ),
        (
            801,
            [
                "cudaErrorNotSupported",
                "operation not supported",
                "CUDA_ERROR_NOT_SUPPORTED",
                "operation not supported",
            ],
        ),
        (12345, ["unrecognized error code", "unrecognized error code", 1, 1]),
    ],
)
def test_error_names_and_texts(code: int, expected: list[object]) -> None:
    assert value_of("error_names", driver="13.0", runtime="13.0", code=code) == expected
