from __future__ import annotations

import json
from pathlib import Path

import pytest
from vendor_wheels import SIMULATED_NOTE, compile_library

from pytest_cudabatch.abi import CudaVersion
from pytest_cudabatch.runtimes import DriverFacts, probe
from pytest_cudabatch.runtimes.driver import kernel_module_release

LIMIT = 20.0
"""Seconds; far more than a small library needs, also on a busy machine."""

GOOD = {
    "cuDriverGetVersion": ("int *version", "*version = 13000; return 0;"),
    "cuInit": ("unsigned flags", "return flags == 0 ? 0 : 1;"),
    "cuDeviceGetCount": ("int *count", "*count = 2; return 0;"),
    "cuDeviceGet": ("int *device, int ordinal", "*device = ordinal + 40; return 0;"),
    "cuDeviceGetName": (
        "char *name, int size, int device",
        'return snprintf(name, size, "NVIDIA Test %d", device) > 0 ? 0 : 1;',
    ),
    "cuDevicePrimaryCtxRetain": (
        "void **context, int device",
        "*context = &count; return device == 40 ? 0 : 101;",
    ),
    "cuDevicePrimaryCtxRelease_v2": ("int device", "return device == 40 ? 0 : 101;"),
}
GPUS = ("NVIDIA Test 40", "NVIDIA Test 41")


@pytest.fixture(autouse=True)
def release_by_nvml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An NVML of the tests' own, which a host's own would contradict."""
    nvml = """
        #include <stdio.h>
        int nvmlInit_v2(void) { return 0; }
        int nvmlSystemGetDriverVersion(char *text, unsigned size) {
            return snprintf(text, size, "580.159.04") > 0 ? 0 : 1;
        }
    """
    directory = tmp_path / "nvml"
    directory.mkdir()
    compile_library(directory / "libnvidia-ml.so.1", nvml, soname="libnvidia-ml.so.1")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(directory))


def libcuda(tmp_path: Path, *, extra: str = "", **changes: str) -> Path:
    """Compile a libcuda that answers well, but for the functions in ``changes``."""
    functions = [
        f"int {name}({parameters}) {{ {changes.get(name, body)} }}\n"
        for name, (parameters, body) in GOOD.items()
    ]
    header = "#include <signal.h>\n#include <stdio.h>\n#include <unistd.h>\nstatic int count;\n"
    return compile_library(
        tmp_path / "libcuda.so.1", header + "".join(functions) + extra, "-Wno-unused-variable"
    )


def facts(path: Path, **changes: object) -> DriverFacts:
    """What a probe of the well-answering libcuda says, but for ``changes``."""
    values: dict[str, object] = {
        "version": CudaVersion(13, 0),
        "release": "580.159.04",
        "gpus": GPUS,
        "context": True,
        "reason": "",
        "path": path,
        "simulated": False,
    }
    return DriverFacts(**{**values, **changes})  # type: ignore[arg-type]


def test_a_driver_that_works(tmp_path: Path) -> None:
    path = libcuda(tmp_path)
    assert probe(LIMIT, driver=path) == facts(path)


def test_the_driver_that_the_loader_finds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = libcuda(tmp_path)
    monkeypatch.setenv("LD_LIBRARY_PATH", f"{tmp_path}:{tmp_path / 'nvml'}")
    assert probe(LIMIT) == facts(path)


def test_a_simulated_driver_says_so(tmp_path: Path) -> None:
    path = libcuda(tmp_path, extra=SIMULATED_NOTE)
    assert probe(LIMIT, driver=path) == facts(path, simulated=True)


def test_a_driver_that_prints(tmp_path: Path) -> None:
    path = libcuda(tmp_path, cuInit=r'puts("{\"version\": 1}"); fflush(stdout); return 0;')
    assert probe(LIMIT, driver=path) == facts(path)


@pytest.mark.parametrize(
    ("function", "body", "gpus", "reason"),
    [
        ("cuInit", "return 100;", (), "cuInit returned 100 (CUDA_ERROR_NO_DEVICE)"),
        ("cuInit", "return 803;", (), "cuInit returned 803 (CUDA_ERROR_SYSTEM_DRIVER_MISMATCH)"),
        ("cuInit", "return 12345;", (), "cuInit returned 12345"),
        ("cuDeviceGetCount", "return 3;", (), "cuDeviceGetCount returned 3 (CUDA_ERROR_NOT_INITIALIZED)"),
        ("cuDeviceGetCount", "return 0;", (), "the driver sees no GPU"),
        (
            "cuDevicePrimaryCtxRetain",
            "return 2;",
            GPUS,
            "cuDevicePrimaryCtxRetain returned 2 (CUDA_ERROR_OUT_OF_MEMORY)",
        ),
        ("cuInit", "*(volatile int *)0 = 0; return 0;", (), "cuInit crashed with SIGSEGV"),
        ("cuInit", "_exit(7);", (), "cuInit ended the process with status 7"),
        (
            "cuInit",
            'fputs("first\\nno such thing\\n", stderr); fflush(stderr); _exit(7);',
            (),
            "cuInit ended the process with status 7: no such thing",
        ),
        (
            "cuDevicePrimaryCtxRetain",
            "raise(SIGKILL);",
            GPUS,
            "cuDevicePrimaryCtxRetain crashed with SIGKILL",
        ),
    ],
)
def test_a_driver_that_does_not_work(
    tmp_path: Path, function: str, body: str, gpus: tuple[str, ...], reason: str
) -> None:
    path = libcuda(tmp_path, **{function: body})
    assert probe(LIMIT, driver=path) == facts(path, gpus=gpus, context=False, reason=reason)


def test_a_driver_that_hangs(tmp_path: Path) -> None:
    path = libcuda(tmp_path, cuInit="for (;;) pause();")
    assert probe(3.0, driver=path) == facts(
        path, gpus=(), context=False, reason="cuInit did not return within 3 s"
    )


def test_a_driver_that_crashes_while_it_is_loaded(tmp_path: Path) -> None:
    path = libcuda(
        tmp_path, extra="__attribute__((constructor)) static void loaded(void) { __builtin_trap(); }"
    )
    found = probe(LIMIT, driver=path)
    assert (found.version, found.path, found.context) == (None, None, False)
    assert found.reason in {f"loading {path} crashed with {signal}" for signal in ("SIGILL", "SIGTRAP")}


def test_no_driver(tmp_path: Path) -> None:
    found = probe(LIMIT, driver=tmp_path / "libcuda.so.1")
    assert (found.version, found.gpus, found.context, found.path, found.simulated) == (
        None,
        (),
        False,
        None,
        False,
    )
    assert found.reason == (
        f"libcuda could not be loaded: {tmp_path}/libcuda.so.1: cannot open shared object file: "
        "No such file or directory"
    )


def test_facts_cross_processes(tmp_path: Path) -> None:
    nothing = DriverFacts(None, None, (), False, "libcuda could not be loaded", None, False)
    for known in (facts(tmp_path / "libcuda.so.1"), nothing):
        assert DriverFacts.from_json(json.loads(json.dumps(known.to_json()))) == known


@pytest.mark.parametrize(
    ("line", "release"),
    [
        (
            "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86.10  Wed Jan 22 05:07:16 UTC 2025\n",
            "570.86.10",
        ),
        (
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  (builder)\n",
            "580.159.04",
        ),
        ("NVRM version: something else\n", None),
    ],
)
def test_the_release_of_the_kernel_module(tmp_path: Path, line: str, release: str | None) -> None:
    description = tmp_path / "version"
    description.write_text(line + "GCC version:  gcc version 12.3.0\n")
    assert kernel_module_release(description) == release


def test_no_kernel_module(tmp_path: Path) -> None:
    assert kernel_module_release(tmp_path / "none") is None
