from __future__ import annotations

import hashlib
import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from vendor_wheels import libcudart, make_wheel, runtime_wheel

from pytest_cudabatch.errors import InstallationError, UsageError
from pytest_cudabatch.runtimes import (
    DownloadError,
    IndexOptions,
    RuntimeFile,
    RuntimeRequest,
    WheelError,
    fetch,
    fetched,
    user_cache,
)
from pytest_cudabatch.runtimes.pip import explain
from pytest_cudabatch.runtimes.vendor_wheel import libcudart_of


@pytest.fixture(autouse=True)
def own_pip_and_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No index, no configuration of this host, and a cache of the test's own."""
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    monkeypatch.delenv("CUDABATCH_RUNTIMES", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def links(tmp_path: Path) -> Path:
    directory = tmp_path / "links"
    directory.mkdir()
    return directory


@pytest.fixture
def library(tmp_path: Path) -> bytes:
    return libcudart(tmp_path / "libcudart.so.12", 12090).read_bytes()


@pytest.fixture
def library_13(tmp_path: Path) -> bytes:
    return libcudart(tmp_path / "libcudart.so.13", 13000).read_bytes()


def entries(directory: Path) -> list[str]:
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file())


def test_newest_patch_and_exact_release(links: Path, library: bytes, library_13: bytes) -> None:
    for release in ("12.9.37", "12.9.79", "12.9.9"):
        runtime_wheel(links, release, library)
    for release in ("13.0.48", "13.0.96"):
        runtime_wheel(links, release, library_13)
    runtimes = fetch(["13.0.48", "12.9"], index=IndexOptions(find_links=(str(links),)))
    cache = user_cache()
    assert runtimes == (
        RuntimeFile(cache / "13.0.48" / "libcudart.so.13", "13.0.48", "wheel", True, "record"),
        RuntimeFile(cache / "12.9.79" / "libcudart.so.12", "12.9.79", "wheel", True, "record"),
    )
    assert entries(cache) == [
        ".lock",
        "12.9.79/libcudart.so.12",
        "12.9.79/record.json",
        "13.0.48/libcudart.so.13",
        "13.0.48/record.json",
    ]
    assert runtimes[1].path.read_bytes() == library
    assert json.loads((cache / "12.9.79" / "record.json").read_text()) == {
        "schema": 1,
        "release": "12.9.79",
        "library": "libcudart.so.12",
        "sha256": hashlib.sha256(library).hexdigest(),
        "wheel": "nvidia_cuda_runtime_cu12-12.9.79-py3-none-any.whl",
    }
    assert fetched() == runtimes[::-1]


def test_a_release_that_is_there_is_not_downloaded_again(links: Path, library: bytes) -> None:
    wheel = runtime_wheel(links, "12.9.79", library)
    first = fetch(["12.9.79"], index=IndexOptions(find_links=(str(links),)))
    wheel.unlink()
    assert fetch(["12.9.79"]) == first


def test_a_damaged_release_is_told_and_fetched_again(links: Path, library: bytes) -> None:
    runtime_wheel(links, "12.9.79", library)
    index = IndexOptions(find_links=(str(links),))
    (runtime,) = fetch(["12.9.79"], index=index)
    runtime.path.write_bytes(library[:-1])
    with pytest.raises(InstallationError) as damage:
        fetched()
    assert str(damage.value) == (
        f"the fetched runtime in {runtime.path.parent} is damaged (libcudart.so.12 is not what was "
        "fetched: its checksum differs); remove it, or run: cudabatch fetch 12.9.79"
    )
    assert fetch(["12.9.79"], index=index) == fetched() == (runtime,)
    assert runtime.path.read_bytes() == library


def test_listed_directories_come_before_the_cache(
    links: Path, library: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime_wheel(links, "12.9.79", library)
    index = IndexOptions(find_links=(str(links),))
    fetch(["12.9.79"], index=index)
    (bundled,) = fetch(["12.9.79"], index=index, directory=tmp_path / "bundled")
    monkeypatch.setenv("CUDABATCH_RUNTIMES", f"{tmp_path / 'none'}:{tmp_path / 'bundled'}")
    assert fetched() == (bundled,)


def test_an_empty_cache_has_no_runtimes() -> None:
    assert fetched() == ()


def test_the_cache_of_a_relative_or_missing_xdg_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = Path.home() / ".cache" / "pytest-cudabatch" / "runtimes"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert user_cache() == expected
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert user_cache() == expected


def test_every_wrong_version_is_told_at_once() -> None:
    with pytest.raises(UsageError) as refusal:
        fetch(["twelve", "12.9", "11.8", "12", "12.9.7.9"])
    assert refusal.value.problems == (
        "'twelve' is not a CUDA runtime version; write it like 12.9 or 12.9.79",
        "runtime 11.8: the oldest that can be fetched is 12.0",
        "'12' is not a CUDA runtime version; write it like 12.9 or 12.9.79",
        "'12.9.7.9' is not a CUDA runtime version; write it like 12.9 or 12.9.79",
    )


@pytest.mark.parametrize(
    ("text", "requirement"),
    [
        ("12.9", "nvidia-cuda-runtime-cu12==12.9.*"),
        ("12.9.79", "nvidia-cuda-runtime-cu12==12.9.79"),
        ("13.0", "nvidia-cuda-runtime==13.0.*"),
        ("13.5.37", "nvidia-cuda-runtime==13.5.37"),
    ],
)
def test_what_pip_is_asked_for(text: str, requirement: str) -> None:
    assert RuntimeRequest.parse(text).requirement == requirement


def test_a_release_that_the_index_does_not_have(links: Path, library: bytes) -> None:
    for release in ("12.9.37", "12.9.79"):
        runtime_wheel(links, release, library)
    with pytest.raises(DownloadError) as failure:
        fetch(["12.8"], index=IndexOptions(find_links=(str(links),)))
    assert str(failure.value) == (
        "cannot fetch runtime 12.8: there is no nvidia-cuda-runtime-cu12==12.8.*; "
        "the index has 12.9.37, 12.9.79"
    )
    assert not user_cache().exists()


def test_no_index_at_all() -> None:
    with pytest.raises(DownloadError) as failure:
        fetch(["13.0"])
    assert str(failure.value) == (
        "cannot fetch runtime 13.0: pip found no nvidia-cuda-runtime==13.0.*: no index or --find-links "
        "directory has it, or none can be reached"
    )


def test_an_index_that_cannot_be_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv("PIP_RETRIES", "1")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with socket.socket() as unused:  # bound and not listening: connections are refused
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/simple"
        with pytest.raises(DownloadError) as failure:
            fetch(["13.0"], index=IndexOptions(index_url=url))
    assert str(failure.value) == (
        "cannot fetch runtime 13.0: the package index could not be reached (NewConnectionError)"
    )


def test_a_python_without_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", {}.get)
    with pytest.raises(UsageError) as refusal:
        fetch(["13.0"])
    assert str(refusal.value) == f"{sys.executable} has no pip; add it with: {sys.executable} -m ensurepip"


@pytest.mark.parametrize(
    ("output", "line"),
    [
        (
            "WARNING: Retrying (Retry(total=0)) after connection broken by 'ConnectTimeoutError(<x>, 'no')'\n"
            "ERROR: Could not find a version that satisfies the requirement a==1 (from versions: none)\n",
            "the package index could not be reached (ConnectTimeoutError)",
        ),
        (
            "Looking\nERROR: 403 Client Error: Forbidden for url: x\n",
            "pip failed: 403 Client Error: Forbidden for url: x",
        ),
        ("Traceback\nMemoryError\n", "pip failed: MemoryError"),
        ("", "pip failed: it said nothing"),
    ],
)
def test_what_pip_said(output: str, line: str) -> None:
    assert explain(output) == line


def test_a_cache_that_cannot_be_written(links: Path, library: bytes, tmp_path: Path) -> None:
    runtime_wheel(links, "12.9.79", library)
    in_the_way = tmp_path / "file"
    in_the_way.write_text("")
    with pytest.raises(UsageError) as refusal:
        fetch(["12.9.79"], index=IndexOptions(find_links=(str(links),)), directory=in_the_way / "runtimes")
    assert str(refusal.value) == f"cannot keep runtime 12.9.79 in {in_the_way}/runtimes: Not a directory"


@pytest.mark.parametrize(
    ("case", "problem"),
    [
        ("recorded", "lib/libcudart.so.12 differs from its checksum in RECORD"),
        ("none", "it holds 0 libcudart"),
        ("two", "it holds 2 libcudart"),
        ("text", "not a 64-bit little-endian ELF file"),
        ("soname", "libcudart.so.12 has the SONAME libcudart.so.13, and the wheel is of CUDA 12.9"),
        ("major", "libcudart.so.13 has the SONAME libcudart.so.13, and the wheel is of CUDA 12.9"),
    ],
)
def test_a_wheel_that_does_not_fit_together(
    links: Path, library: bytes, library_13: bytes, case: str, problem: str
) -> None:
    members = {
        "recorded": {"lib/libcudart.so.12": library},
        "none": {"lib/libcudart_static.a": library},
        "two": {"lib/libcudart.so.12": library, "lib64/libcudart.so.12": library},
        "text": {"lib/libcudart.so.12": b"text"},
        "soname": {"lib/libcudart.so.12": library_13},
        "major": {"lib/libcudart.so.13": library_13},
    }[case]
    recorded = {"lib/libcudart.so.12": b"other"} if case == "recorded" else None
    make_wheel(links, "nvidia_cuda_runtime_cu12", "12.9.79", members, recorded=recorded)
    with pytest.raises(WheelError) as refusal:
        fetch(["12.9.79"], index=IndexOptions(find_links=(str(links),)))
    assert str(refusal.value) == (
        f"nvidia_cuda_runtime_cu12-12.9.79-py3-none-any.whl is not a usable wheel of the CUDA runtime: "
        f"{problem}"
    )
    assert not user_cache().exists()


def test_names_inside_a_wheel_lead_nowhere(links: Path, library: bytes, tmp_path: Path) -> None:
    make_wheel(links, "nvidia_cuda_runtime_cu12", "12.9.79", {"../../../escaped/libcudart.so.12": library})
    before = entries(tmp_path)
    (runtime,) = fetch(["12.9.79"], index=IndexOptions(find_links=(str(links),)))
    new = sorted(set(entries(tmp_path)) - set(before))
    cache = user_cache().relative_to(tmp_path)
    assert new == [f"{cache}/.lock", f"{cache}/12.9.79/libcudart.so.12", f"{cache}/12.9.79/record.json"]
    assert runtime.path.read_bytes() == library


def test_a_wheel_cut_short(links: Path, library: bytes, tmp_path: Path) -> None:
    wheel = runtime_wheel(tmp_path, "12.9.79", library)
    wheel.write_bytes(wheel.read_bytes()[:200])
    with pytest.raises(WheelError) as refusal:
        libcudart_of(wheel)
    assert (
        str(refusal.value)
        == f"{wheel.name} is not a usable wheel of the CUDA runtime: File is not a zip file"
    )


def test_several_fetches_at_once(links: Path, library: bytes) -> None:
    runtime_wheel(links, "12.9.79", library)
    code = (
        "import sys; from pytest_cudabatch.runtimes import IndexOptions, fetch; "
        "print(fetch(['12.9'], index=IndexOptions(find_links=(sys.argv[1],)))[0].path)"
    )
    command = [sys.executable, "-c", code, str(links)]
    fetches = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    outputs = [process.communicate()[0].strip() for process in fetches]
    assert [process.returncode for process in fetches] == [0, 0, 0, 0]
    assert outputs == [str(user_cache() / "12.9.79" / "libcudart.so.12")] * 4
    assert entries(user_cache()) == [".lock", "12.9.79/libcudart.so.12", "12.9.79/record.json"]


@pytest.mark.nightly
def test_the_vendors_own_wheels(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("PIP_NO_INDEX", "PIP_CONFIG_FILE"):
        monkeypatch.delenv(variable)
    runtimes = fetch(["12.6.77", "12.8.90", "12.9.79", "13.0.96", "13.5.37"])
    assert [(runtime.release, runtime.abi.value, runtime.exports_batch) for runtime in runtimes] == [
        ("12.6.77", "v12080", False),
        ("12.8.90", "v12080", True),
        ("12.9.79", "v12080", True),
        ("13.0.96", "v13000", True),
        ("13.5.37", "v13000", True),
    ]
