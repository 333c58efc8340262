"""What adapters find out of packages that they do not import; the operators run in tests/shipped."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import pytest

from pytest_cudabatch.implementations.adapters import vllm
from pytest_cudabatch.implementations.adapters.torch_bridge import torch_cuda_major
from pytest_cudabatch.implementations.adapters.versions import check_release


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory in front of everything that is installed."""
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("torch", "vllm"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return tmp_path


def install(site: Path, name: str, version: str) -> None:
    information = site / f"{name.replace('-', '_')}-{version}.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")


@pytest.mark.parametrize(
    ("text", "major"),
    [
        ("__version__ = '2.11.0+cu130'\ncuda: Optional[str] = '13.0'\nhip: Optional[str] = None\n", 13),
        ("cuda = '12.8'\n", 12),
        ("cuda: Optional[str] = None\n", None),
        ("hip = '6.0'\n", None),
    ],
)
def test_the_cuda_of_torch_is_read_without_importing_it(site: Path, text: str, major: int | None) -> None:
    (site / "torch").mkdir()
    (site / "torch" / "__init__.py").write_text("raise SystemExit('imported')\n")
    (site / "torch" / "version.py").write_text(text)
    assert torch_cuda_major() == major


def test_releases_are_held_against_the_range(site: Path) -> None:
    install(site, "shipped-package", "1.5")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_release("shipped-package", "1.5", "1.5")
        check_release("shipped-package", "1.0", "2.0")
    with pytest.raises(ImportError, match=r"shipped-package 1.5 is older than 1.6"):
        check_release("shipped-package", "1.6", "2.0")
    with pytest.warns(UserWarning, match=r"shipped-package 1.5 is newer than 1.4, the newest that was tried"):
        check_release("shipped-package", "1.0", "1.4")
    with pytest.raises(ImportError, match="no-such-package is not installed"):
        check_release("no-such-package", "1", "2")


def test_the_library_of_vllm_is_found_without_importing_vllm(site: Path) -> None:
    (site / "vllm").mkdir()
    (site / "vllm" / "__init__.py").write_text("raise SystemExit('imported')\n")
    with pytest.raises(ImportError, match=r"vllm has no _C_stable_libtorch\*.so"):
        vllm._library()
    library = site / "vllm" / "_C_stable_libtorch.abi3.so"
    library.touch()
    assert vllm._library() == library
