from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from vendor_wheels import SIMULATED_NOTE, libcudart

from pytest_cudabatch.runtimes import Found, discover
from pytest_cudabatch.runtimes.search import Places, cached_libraries, candidates, examine


@pytest.fixture
def library(tmp_path: Path) -> Path:
    (tmp_path / "made").mkdir()
    return libcudart(tmp_path / "made" / "libcudart.so.12", 12090)


def put(library: Path, directory: Path) -> Path:
    directory.mkdir(parents=True)
    return Path(shutil.copy(library, directory))


def search(
    tmp_path: Path, environment: Mapping[str, str] | None = None, module_path: tuple[Path, ...] = ()
) -> list[tuple[str, Path]]:
    places = Places(module_path, environment or {}, tmp_path / "root")
    return [(found_via, path) for found_via, path in candidates(places) if path is not None]


@pytest.fixture(autouse=True)
def no_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("CUDABATCH_RUNTIMES", "CUDA_HOME", "CUDA_PATH", "LD_LIBRARY_PATH"):
        monkeypatch.delenv(name, raising=False)


def test_each_kind_of_place_in_order(library: Path, tmp_path: Path) -> None:
    places = {
        "fetched": tmp_path / "cache" / "pytest-cudabatch" / "runtimes" / "12.9.79",
        "site-packages": tmp_path / "site" / "nvidia" / "cuda_runtime" / "lib",
        "CUDA_HOME": tmp_path / "home" / "lib64",
        "CUDA_PATH": tmp_path / "path" / "targets" / "x86_64-linux" / "lib",
        "/usr/local": tmp_path / "root" / "usr" / "local" / "cuda-12.9" / "lib64",
        "ld.so.cache": tmp_path / "root" / "opt",
        "LD_LIBRARY_PATH": tmp_path / "ld",
    }
    paths = {found_via: put(library, directory) for found_via, directory in places.items()}
    (tmp_path / "root" / "etc").mkdir()
    (tmp_path / "root" / "etc" / "ld.so.cache").write_bytes(
        linker_cache({"libcudart.so.12": "/opt/libcudart.so.12"})
    )
    environment = {
        "CUDA_HOME": str(tmp_path / "home"),
        "CUDA_PATH": str(tmp_path / "path"),
        "LD_LIBRARY_PATH": f"{tmp_path / 'none'}:{tmp_path / 'ld'}",
    }
    assert search(tmp_path, environment, (tmp_path / "site",)) == list(paths.items())


def test_one_file_is_found_once(library: Path, tmp_path: Path) -> None:
    toolkit = tmp_path / "root" / "usr" / "local" / "cuda-12.9"
    path = put(library, toolkit / "targets" / "x86_64-linux" / "lib")
    (toolkit / "lib64").symlink_to(path.parent)
    path.with_name("libcudart.so.12.9.79").symlink_to(path.name)
    environment = {"CUDA_HOME": str(toolkit), "LD_LIBRARY_PATH": f"{path.parent};{toolkit}/lib64"}
    assert search(tmp_path, environment) == [("CUDA_HOME", toolkit / "lib64" / "libcudart.so.12")]


def test_other_names_and_dangling_links_are_passed_over(tmp_path: Path) -> None:
    directory = tmp_path / "ld"
    directory.mkdir()
    (directory / "libcudart.so.12").symlink_to("gone")
    (directory / "libcudart.so.12.debug").touch()
    (directory / "libcuda.so.1").touch()
    assert search(tmp_path, {"LD_LIBRARY_PATH": str(directory)}) == []


def test_an_empty_part_of_the_library_path_is_the_current_directory(
    library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(library.parent)
    assert search(tmp_path, {"LD_LIBRARY_PATH": ":/none"}) == [("LD_LIBRARY_PATH", Path("libcudart.so.12"))]
    assert search(tmp_path, {"LD_LIBRARY_PATH": ""}) == []


def test_what_is_found_is_read(library: Path) -> None:
    found = examine(library, "CUDA_HOME")
    assert found.runtime is not None
    assert (found.runtime.release, found.runtime.path, found.problem) == ("12.9", library, "")
    assert Found.from_json(json.loads(json.dumps(found.to_json()))) == found


def test_what_is_damaged_says_so(tmp_path: Path) -> None:
    path = tmp_path / "libcudart.so.12"
    path.write_bytes(b"\x7fELF")
    assert examine(path, "ld.so.cache") == Found(
        path, "ld.so.cache", None, f"{path}: not a 64-bit little-endian ELF file"
    )


def test_a_damaged_fetched_one_says_how_to_mend_it(library: Path, tmp_path: Path) -> None:
    path = put(library, tmp_path / "cache" / "pytest-cudabatch" / "runtimes" / "12.9.79")
    problem = examine(path, "fetched").problem
    assert problem.startswith(f"the fetched runtime in {path.parent} is damaged (")
    assert problem.endswith("remove it, or run: cudabatch fetch 12.9.79")


def linker_cache(libraries: Mapping[str, str], *, before: bytes = b"") -> bytes:
    """Return an ld.so.cache as ldconfig writes it; ``before`` is what an older format has in front."""
    strings, offsets = b"", []
    first = 48 + 24 * len(libraries)
    for text in (text for pair in libraries.items() for text in pair):
        offsets.append(first + len(strings))
        strings += text.encode() + b"\0"
    entries = b"".join(
        struct.pack("<iIIIQ", 0x0303, name, path, 0, 0)
        for name, path in zip(offsets[::2], offsets[1::2], strict=True)
    )
    header = b"glibc-ld.so.cache1.1" + struct.pack("<IIB3xI12x", len(libraries), len(strings), 2, 0)
    return before + header + entries + strings


@pytest.mark.parametrize("before", [b"", b"ld.so-1.7.0\0" + bytes(36)], ids=["new format", "both formats"])
def test_the_linker_cache(before: bytes) -> None:
    libraries = {
        "libc.so.6": "/lib/libc.so.6",
        "libcudart.so.12": "/a/libcudart.so.12",
        "libcudart.so": "/a/x",
    }
    assert cached_libraries(linker_cache(libraries, before=before)) == ["/a/libcudart.so.12"]


def test_the_linker_cache_of_ldconfig(library: Path, tmp_path: Path) -> None:
    ldconfig = shutil.which("ldconfig", path="/sbin:/usr/sbin:" + os.environ["PATH"])
    assert ldconfig is not None  # glibc brings it
    cache, configuration = tmp_path / "ld.so.cache", tmp_path / "ld.so.conf"
    configuration.write_text(f"{library.parent}\n")
    subprocess.run(
        [ldconfig, "-X", "-C", str(cache), "-f", str(configuration)], check=True, capture_output=True
    )
    assert str(library) in cached_libraries(cache.read_bytes())


@pytest.mark.parametrize(
    "content", [b"", b"glibc-ld.so.cache1.1", linker_cache({"libcudart.so.12": "/a"})[:-3]]
)
def test_a_damaged_linker_cache_has_nothing(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "root" / "etc").mkdir(parents=True)
    (tmp_path / "root" / "etc" / "ld.so.cache").write_bytes(content)
    assert search(tmp_path) == []


def own(found: tuple[Found, ...], directory: Path) -> list[Found]:
    """Return what lies in the test's own directory; the host may have more."""
    return [place for place in found if directory in place.path.parents]


def test_discover_in_a_process_of_its_own(
    library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = put(library, tmp_path / "site" / "nvidia" / "cu13" / "lib")
    simulated = libcudart(tmp_path / "libcudart.so.13", 13000, extra=SIMULATED_NOTE)
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path / "site")])
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    found = own(discover(), tmp_path)
    assert [(place.path, place.found_via, place.problem) for place in found] == [
        (site, "site-packages", ""),
        (simulated, "LD_LIBRARY_PATH", ""),
    ]
    assert [place.runtime and (place.runtime.release, place.runtime.source) for place in found] == [
        ("12.9", "system"),
        ("13.0", "simulated"),
    ]


def test_a_search_that_hangs_keeps_what_it_found(
    library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A named pipe stands for a file on a file server that does not answer."""
    first = put(library, tmp_path / "site" / "nvidia" / "cuda_runtime" / "lib")
    record = first.with_name("record.json")
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path / "site")])
    second = put(library, tmp_path / "ld")
    os.mkfifo(second.with_name("record.json"))
    monkeypatch.setenv("LD_LIBRARY_PATH", str(second.parent))
    assert not record.exists()
    found = own(discover(3.0), tmp_path)
    assert [(place.path, place.found_via, place.problem) for place in found] == [
        (first, "site-packages", ""),
        (second, "LD_LIBRARY_PATH", f"reading {second} did not return within 3 s"),
    ]
