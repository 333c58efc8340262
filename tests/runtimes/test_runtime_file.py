from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from vendor_wheels import SIMULATED_NOTE, compile_library, libcudart

from pytest_cudabatch.abi import BatchAbi, CudaVersion
from pytest_cudabatch.errors import UsageError
from pytest_cudabatch.runtimes import RuntimeFile


@pytest.fixture
def library(tmp_path: Path) -> Path:
    return libcudart(tmp_path / "libcudart.so.12", 12090)


def record_in(directory: Path, release: str) -> None:
    record = {
        "schema": 1,
        "release": release,
        "library": "libcudart.so.12",
        "sha256": "0" * 64,
        "wheel": "w.whl",
    }
    (directory / "record.json").write_text(json.dumps(record))


def site_packages_with(library: Path, site: Path, release: str) -> Path:
    place = site / "nvidia" / "cuda_runtime" / "lib"
    information = site / f"nvidia_cuda_runtime_cu12-{release}.dist-info"
    place.mkdir(parents=True)
    information.mkdir()
    (information / "RECORD").write_text("nvidia/cuda_runtime/lib/libcudart.so.12,sha256=x,1\n")
    return Path(shutil.copy(library, place))


def toolkit_with(library: Path, toolkit: Path, release: str) -> Path:
    place = toolkit / "targets" / "x86_64-linux" / "lib"
    place.mkdir(parents=True)
    (toolkit / "version.json").write_text(
        json.dumps({"cuda_cudart": {"name": "CUDA Runtime", "version": release}})
    )
    (toolkit / "lib64").symlink_to(place)
    shutil.copy(library, place / "libcudart.so.12")
    return toolkit / "lib64" / "libcudart.so.12"


def test_from_the_record_of_a_fetch(library: Path) -> None:
    record_in(library.parent, "12.9.79")
    assert RuntimeFile.read(library) == RuntimeFile(library, "12.9.79", "wheel", True, "record")


def test_from_an_installed_wheel(library: Path, tmp_path: Path) -> None:
    path = site_packages_with(library, tmp_path / "site-packages", "12.9.37")
    assert RuntimeFile.read(path) == RuntimeFile(path, "12.9.37", "wheel", True, "dist-info")


def test_from_a_toolkit(library: Path, tmp_path: Path) -> None:
    path = toolkit_with(library, tmp_path / "cuda-12.9", "12.9.86")
    assert RuntimeFile.read(path) == RuntimeFile(path, "12.9.86", "toolkit", True, "toolkit")


def test_from_the_name_behind_a_link(library: Path) -> None:
    library.rename(library.with_name("libcudart.so.12.9.79"))
    library.symlink_to("libcudart.so.12.9.79")
    assert RuntimeFile.read(library) == RuntimeFile(library, "12.9.79", "system", True, "file-name")


def test_from_its_code_where_nothing_else_tells(library: Path) -> None:
    assert RuntimeFile.read(library) == RuntimeFile(library, "12.9", "system", True, "code")


def test_asked_where_its_code_cannot_be_read(tmp_path: Path) -> None:
    source = (
        "static int own = 12090;\nint cudaRuntimeGetVersion(int *version) { *version = own++; return 0; }"
    )
    path = compile_library(tmp_path / "libcudart.so.12", source, soname="libcudart.so.12")
    assert RuntimeFile.read(path) == RuntimeFile(path, "12.9", "system", False, "asked")


@pytest.mark.parametrize("release", ["12.8.90", "13.0.96"])
def test_a_record_of_another_version_than_its_code_is_told(library: Path, release: str) -> None:
    record_in(library.parent, release)
    with pytest.raises(UsageError) as refusal:
        RuntimeFile.read(library)
    assert str(refusal.value) == (f"{library}: its record says {release}, but its code is that of CUDA 12.9")


def test_a_batch_function_of_the_other_abi_is_told(tmp_path: Path) -> None:
    source = """
    int cudaRuntimeGetVersion(int *version) { *version = 12090; return 0; }
    long cudaMemcpyBatchAsync(long a, long b, long c, long d, long e, long f,
                              long g, long h) { return g + h; }
    """
    path = tmp_path / "libcudart.so.12"
    compile_library(path, source, "-fno-omit-frame-pointer", soname="libcudart.so.12")
    with pytest.raises(UsageError) as refusal:
        RuntimeFile.read(path)
    assert str(refusal.value) == (
        f"{path}: its cudaMemcpyBatchAsync takes 8 parameters, and that of CUDA 12.9 takes 9"
    )


def test_a_simulated_one(tmp_path: Path) -> None:
    path = libcudart(tmp_path / "libcudart.so.13", 13000, extra=SIMULATED_NOTE)
    assert RuntimeFile.read(path) == RuntimeFile(path, "13.0", "simulated", True, "asked")


def test_one_without_the_batch_function(tmp_path: Path) -> None:
    path = libcudart(tmp_path / "libcudart.so.12", 12060, batch=False)
    assert RuntimeFile.read(path) == RuntimeFile(path, "12.6", "system", False, "code")


def test_what_follows_from_the_release() -> None:
    file = RuntimeFile(Path("libcudart.so.13"), "13.0.96", "wheel", True, "record")
    assert (file.version, file.abi, file.release_order) == (CudaVersion(13, 0), BatchAbi.V13000, (13, 0, 96))


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param("return 35;", id="refuses, as CUDA 11 does without a driver"),
        pytest.param("__builtin_trap();", id="crashes"),
        pytest.param("*version = 13000; return 0;", id="contradicts its SONAME"),
    ],
)
def test_one_that_gives_no_version_away(tmp_path: Path, answer: str) -> None:
    source = f"int cudaRuntimeGetVersion(int *version) {{ {answer} }}"
    path = compile_library(tmp_path / "libcudart.so.12", source, soname="libcudart.so.12")
    with pytest.raises(UsageError) as refusal:
        RuntimeFile.read(path)
    assert str(refusal.value) == (
        f"{path}: nothing tells the version of this libcudart, and it does not answer itself"
    )


@pytest.mark.parametrize("soname", [None, "libcudart.so.11.0", "libnvrtc.so.12"])
def test_another_library(tmp_path: Path, soname: str | None) -> None:
    path = compile_library(tmp_path / "libcudart.so.12", "int function(void) { return 0; }", soname=soname)
    with pytest.raises(UsageError) as refusal:
        RuntimeFile.read(path)
    assert str(refusal.value) == f"{path}: not a libcudart of CUDA 12 or newer (its SONAME is {soname!r})"
