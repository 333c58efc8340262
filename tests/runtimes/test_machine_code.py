"""Versions and arities out of code: small functions as compilers make them, and all real releases."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from vendor_wheels import SIMULATED_NOTE, compile_library

from pytest_cudabatch import native
from pytest_cudabatch.abi import CudaVersion
from pytest_cudabatch.errors import UsageError
from pytest_cudabatch.runtimes import RuntimeCode, RuntimeFile, fetch

RELEASES = {
    "12.6.77": None,
    "12.8.57": 9,
    "12.8.90": 9,
    "12.9.37": 9,
    "12.9.79": 9,
    "13.0.48": 8,
    "13.0.88": 8,
    "13.0.96": 8,
    "13.1.80": 8,
    "13.2.51": 8,
    "13.2.75": 8,
    "13.2.86": 8,
    "13.3.29": 8,
    "13.4.49": 8,
    "13.4.92": 8,
    "13.5.37": 8,
}
"""All releases from 12.6.77 on that the matrix rests on, and the parameters of their batch function."""

SECONDS = 0.2

# As the real one: the exported function traces the call, and hands its parameter to the one that answers.
TRACED = """
extern int initialise(void); extern int fail(void);
int traced;
static __attribute__((noinline)) int answer(int *version) {
    if (!version) return fail();
    *version = VERSION;
    return 0;
}
int cudaRuntimeGetVersion(int *version) {
    if (initialise()) return 4;
    if (!traced) return answer(version);
    initialise();
    int code = answer(version);
    initialise();
    return code;
}
"""
FORWARDED = """
extern long serve(PARAMETERS);
extern int initialise(void);
long cudaMemcpyBatchAsync(PARAMETERS) { if (initialise()) return 4; return serve(ARGUMENTS) + 1; }
"""
UNLINKED = ("-nostdlib",)
LEVELS = ("-O1", "-O2", "-O3")


def version_of(tmp_path: Path, source: str, *options: str) -> CudaVersion | None:
    path = compile_library(tmp_path / "libcudart.so", source, *UNLINKED, *options)
    return RuntimeCode.read(path).version


def parameters_of(tmp_path: Path, count: int, *options: str) -> int | None:
    names = [f"a{number}" for number in range(count)]
    source = FORWARDED.replace("PARAMETERS", ", ".join(f"long {name}" for name in names))
    source = source.replace("ARGUMENTS", ", ".join(names))
    path = compile_library(tmp_path / "libcudart.so", source, *UNLINKED, *options)
    return RuntimeCode.read(path).parameters


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("number", [12060, 12090, 13050])
def test_version_behind_an_internal_call(tmp_path: Path, level: str, number: int) -> None:
    found = version_of(tmp_path, TRACED, level, f"-DVERSION={number}")
    assert found == CudaVersion.from_api(number)


def test_version_of_a_parameter_that_is_kept_on_the_stack_is_unknown(tmp_path: Path) -> None:
    assert version_of(tmp_path, TRACED, "-O0", "-DVERSION=12080") is None


@pytest.mark.parametrize("level", LEVELS)
def test_version_stored_at_once(tmp_path: Path, level: str) -> None:
    source = "int cudaRuntimeGetVersion(int *version) { *version = 12080; return 0; }"
    assert version_of(tmp_path, source, level) == CudaVersion(12, 8)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("*version = other(); return 0;", id="no constant"),
        pytest.param("*version = 0; return 0;", id="zero"),
        pytest.param("*version = 11080; return 0;", id="older than any libcudart.so.12"),
        pytest.param("if (other()) *version = 12080; else *version = 12090; return 0;", id="one of two"),
        pytest.param("*version = 12085; return 0;", id="no version's number"),
        pytest.param("int *slot = version + 1; *slot = 12080; return 0;", id="beside the parameter"),
        pytest.param("*place() = 12080; return 0;", id="through another pointer"),
        pytest.param("version = place(); *version = 12080; return 0;", id="parameter replaced"),
        pytest.param(
            "while (other()) version = place(); *version = 12080; return 0;", id="replaced in a loop"
        ),
        pytest.param("*(short *)version = 12080; return 0;", id="half of it"),
        pytest.param("*(long *)version = 12080; return 0;", id="more than it"),
        pytest.param('__asm__ volatile("vzeroupper"); *version = 12080; return 0;', id="vector code"),
        pytest.param('__asm__ volatile(".byte 6"); *version = 12080; return 0;', id="not code"),
        pytest.param("return other();", id="stores nothing"),
    ],
)
def test_version_is_unknown_rather_than_wrong(tmp_path: Path, body: str) -> None:
    declarations = "extern int other(void); extern int *place(void);"
    source = f"{declarations} int cudaRuntimeGetVersion(int *version) {{{body}}}"
    assert version_of(tmp_path, source, "-O1") is None


@pytest.mark.parametrize("level", ["-O0", "-Os", *LEVELS])
@pytest.mark.parametrize("count", [8, 9])
def test_parameters_of_a_function_with_a_frame(tmp_path: Path, level: str, count: int) -> None:
    assert parameters_of(tmp_path, count, level, "-fno-omit-frame-pointer") == count


@pytest.mark.parametrize("count", [6, 7, 10])
def test_parameters_that_no_abi_has(tmp_path: Path, count: int) -> None:
    assert parameters_of(tmp_path, count, "-O2", "-fno-omit-frame-pointer") is None


def test_parameters_without_a_frame_are_unknown(tmp_path: Path) -> None:
    assert parameters_of(tmp_path, 9, "-O2", "-fomit-frame-pointer") is None


def test_parameters_with_a_gap_are_unknown(tmp_path: Path) -> None:
    nine = ", ".join(f"long a{number}" for number in range(9))
    source = f"long cudaMemcpyBatchAsync({nine}) {{ return a6 + a8; }}"
    path = compile_library(tmp_path / "libcudart.so", source, "-fno-omit-frame-pointer")
    assert RuntimeCode.read(path) == RuntimeCode(None, None)


@pytest.mark.parametrize(
    "name",
    [
        "simcuda/runtime-12.6/libcudart.so.12",
        "simcuda/runtime-12.8/libcudart.so.12",
        "simcuda/runtime-13.0/libcudart.so.13",
    ],
)
def test_a_simulated_one_says_so(name: str) -> None:
    code = RuntimeCode.read(native.library(name))
    assert (code, str(code)) == (RuntimeCode(simulated=True), "simulated")


def test_the_note_counts_more_than_the_code(tmp_path: Path) -> None:
    source = SIMULATED_NOTE + "int cudaRuntimeGetVersion(int *version) { *version = 12080; return 0; }"
    path = compile_library(tmp_path / "libcudart.so", source, *UNLINKED)
    assert RuntimeCode.read(path) == RuntimeCode(simulated=True)


def test_another_machine_is_unknown(tmp_path: Path) -> None:
    path = compile_library(tmp_path / "libcudart.so", TRACED, *UNLINKED, "-DVERSION=12080")
    content = bytearray(path.read_bytes())
    content[18:20] = (183).to_bytes(2, "little")  # e_machine: EM_AARCH64
    assert RuntimeCode.parse(bytes(content)) == RuntimeCode()
    assert str(RuntimeCode()) == "CUDA of an unknown version, unknown parameters"


def test_damage_is_told(tmp_path: Path) -> None:
    path = compile_library(tmp_path / "libcudart.so", TRACED, *UNLINKED, "-DVERSION=12080")
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(UsageError, match="a damaged ELF file"):
        RuntimeCode.read(path)
    with pytest.raises(UsageError, match="No such file or directory"):
        RuntimeCode.read(tmp_path / "none")


@pytest.mark.nightly
@pytest.mark.parametrize("release", RELEASES)
def test_every_real_release_is_read_exactly(tmp_path: Path, release: str) -> None:
    """Needs a package index; the library alone is kept, so that nothing around it tells the version."""
    (fetched,) = fetch([release], directory=tmp_path / "cache")
    alone = tmp_path / fetched.path.name
    alone.write_bytes(fetched.path.read_bytes())

    start = time.perf_counter()
    code = RuntimeCode.read(alone)
    seconds = time.perf_counter() - start

    version, parameters = CudaVersion.parse(release), RELEASES[release]
    assert code == RuntimeCode(version, parameters)
    assert seconds < SECONDS
    assert fetched == RuntimeFile(
        fetched.path, release, "wheel", version >= CudaVersion(12, 8), "record", parameters
    )
    assert RuntimeFile.read(alone).release == str(version)
