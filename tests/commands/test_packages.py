"""Packages under test in a bundle: the part that is used, with or without its device code."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from vendor_wheels import compile_library, make_wheel

from pytest_cudabatch.commands.packages import package_problems, slim, without_device_code
from pytest_cudabatch.errors import CudaBatchError

DEVICE = b"code for the device "
HOST = b"code for the host"


@pytest.fixture
def extension(tmp_path: Path) -> bytes:
    """A library with device code in the section where nvcc puts it."""
    source = f"""
    __attribute__((section(".nv_fatbin"), used)) static const char device[] = "{DEVICE.decode() * 5000}";
    const char *host(void) {{ return "{HOST.decode()}"; }}
    """
    return compile_library(tmp_path / "extension.so", source).read_bytes()


def test_device_code_becomes_zeros_and_nothing_else_changes(extension: bytes) -> None:
    zeroed = without_device_code(extension)
    assert DEVICE in extension
    assert DEVICE not in zeroed
    assert len(zeroed) == len(extension)
    start, length = extension.index(DEVICE), len(DEVICE) * 5000
    assert zeroed == extension[:start] + bytes(length) + extension[start + length :]


@pytest.mark.parametrize("content", [b"", b"import torch\n", HOST])
def test_what_is_no_library_stays(content: bytes) -> None:
    assert without_device_code(content) == content


def test_a_damaged_library_is_told() -> None:
    with pytest.raises(CudaBatchError, match="damaged"):
        without_device_code(b"\x7fELF and no more")


@pytest.mark.parametrize("device_code", [True, False])
def test_a_slim_wheel_has_what_the_adapter_uses_and_installs(
    extension: bytes, tmp_path: Path, device_code: bool
) -> None:
    content = {
        "sgl_kernel/__init__.py": b"WHOLE = False\n",
        "sgl_kernel/sm90/common_ops.abi3.so": extension,
        "sgl_kernel/flash_ops.abi3.so": extension,
        "triton_kernels/topk.py": b"",
    }
    whole = make_wheel(
        tmp_path, "sglang_kernel", "0.4.4", content, requires=["torch"], tag="cp310-abi3-linux_x86_64"
    )
    (tmp_path / "part").mkdir()
    part = slim(whole, tmp_path / "part", device_code=device_code)
    assert part.name == "sglang_kernel-0.4.4-0part-cp310-abi3-linux_x86_64.whl"
    with zipfile.ZipFile(part) as archive:
        packed = {name: archive.read(name) for name in archive.namelist()}
    information = "sglang_kernel-0.4.4.dist-info"
    assert set(packed) == {
        "sgl_kernel/__init__.py",
        "sgl_kernel/sm90/common_ops.abi3.so",
        *(f"{information}/{file}" for file in ("METADATA", "WHEEL", "RECORD")),
    }
    library = packed["sgl_kernel/sm90/common_ops.abi3.so"]
    assert library == (extension if device_code else without_device_code(extension))
    assert device_code or part.stat().st_size < len(extension) / 2
    installed = install(part, tmp_path / "site")
    assert (installed / "sgl_kernel/sm90/common_ops.abi3.so").read_bytes() == library


def install(wheel: Path, directory: Path) -> Path:
    """Let pip, which checks RECORD, install the wheel."""
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "install",
            "-q",
            "--no-index",
            "--no-deps",
            "--target",
            directory,
            wheel,
        ],
        check=True,
    )
    return directory


def test_a_package_without_an_adapter_travels_whole(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "other", "1.0", {"other/a.py": b"", "other/b.so": b"\x7f"})
    (tmp_path / "part").mkdir()
    with zipfile.ZipFile(slim(wheel, tmp_path / "part", device_code=True)) as archive:
        assert {name for name in archive.namelist() if name.startswith("other/")} == {
            "other/a.py",
            "other/b.so",
        }


def test_a_wheel_without_the_adapters_files_is_refused(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "vllm", "0.1", {"vllm/__init__.py": b""})
    with pytest.raises(CudaBatchError, match=r"has none of vllm/_C_stable_libtorch\*.so"):
        slim(wheel, tmp_path, device_code=True)


def test_packages_must_name_one_release() -> None:
    assert package_problems(["vllm==0.26.0", "sglang-kernel==0.4.4"]) == []
    assert package_problems(["vllm", "vllm>=1", "a b"]) == [
        f"--package: {text!r} does not name a release, such as vllm==0.26.0"
        for text in ("vllm", "vllm>=1", "a b")
    ]
