from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import IO

import pytest
from vendor_wheels import libcudart, runtime_wheel

from pytest_cudabatch.commands import main


@pytest.fixture(autouse=True)
def own_pip_and_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No index, no configuration of this host, and a cache of the test's own."""
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def links(tmp_path: Path) -> Path:
    directory = tmp_path / "links"
    directory.mkdir()
    library = libcudart(tmp_path / "libcudart.so.12", 12090).read_bytes()
    for release in ("12.9.37", "12.9.79"):
        runtime_wheel(directory, release, library)
    return directory


def test_fetch_says_what_lies_where(links: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fetch", "12.9", "12.9.37", "--find-links", str(links)]) == 0
    cache = tmp_path / "cache" / "pytest-cudabatch" / "runtimes"
    assert capsys.readouterr() == (
        f"12.9.79   v12080  {cache}/12.9.79/libcudart.so.12\n"
        f"12.9.37   v12080  {cache}/12.9.37/libcudart.so.12\n",
        "",
    )


def test_fetch_as_json(links: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fetch", "12.9", "--json", "--find-links", str(links)]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "runtimes": [
            {
                "release": "12.9.79",
                "abi": "v12080",
                "exports_batch": True,
                "source": "wheel",
                "path": f"{tmp_path}/cache/pytest-cudabatch/runtimes/12.9.79/libcudart.so.12",
            }
        ]
    }


@pytest.mark.parametrize(
    ("arguments", "status", "error"),
    [
        (["fetch"], 4, "the following arguments are required: VERSION (see cudabatch fetch --help)"),
        (["fetch", "12"], 4, "'12' is not a CUDA runtime version; write it like 12.9 or 12.9.79"),
        ([], 4, "the following arguments are required: VERB (see cudabatch --help)"),
        (["--unknown", "fetch", "12.9"], 4, "unrecognized arguments: --unknown (see cudabatch --help)"),
        (
            ["fetch", "12.8", "--find-links", "{links}"],
            1,
            "cannot fetch runtime 12.8: there is no nvidia-cuda-runtime-cu12==12.8.*; "
            "the index has 12.9.37, 12.9.79",
        ),
    ],
)
def test_what_goes_wrong_is_one_line(
    links: Path, arguments: list[str], status: int, error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([argument.format(links=links) for argument in arguments]) == status
    assert capsys.readouterr() == ("", f"cudabatch: {error}\n")


def test_an_unknown_verb(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fetsh", "12.9"]) == 4
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("cudabatch: argument VERB: invalid choice: 'fetsh' (choose from ")
    assert output.err.count("\n") == 1


def test_as_a_module() -> None:
    command = [sys.executable, "-m", "pytest_cudabatch", "--version"]
    output = subprocess.run(command, check=True, capture_output=True, text=True, cwd="/").stdout
    assert output == f"pytest-cudabatch {version('pytest-cudabatch')}\n"


def test_a_verb_is_imported_when_it_is_asked_for() -> None:
    code = (
        "import sys; from pytest_cudabatch.commands import main\n"
        "print(main(['--help']), 'pytest_cudabatch.commands.fetch' in sys.modules)"
    )
    output = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd="/"
    ).stdout
    assert output.splitlines()[-1] == "0 False"


def printed_to(stdout: int | IO[bytes], *command: str) -> tuple[int, str]:
    """Return the exit status and stderr of a command with that stdout."""
    done = subprocess.run(
        command, stdout=stdout, stderr=subprocess.PIPE, text=True, cwd="/", timeout=60, check=False
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize("arguments", ["matrix --json", "probe", "--help", "fetch --help", "--version"])
def test_a_stdout_that_cannot_be_written_is_one_line(arguments: str) -> None:
    command = (sys.executable, "-m", "pytest_cudabatch", *arguments.split())
    failure = "cudabatch: cannot write to stdout: "
    with Path("/dev/full").open("wb") as full:
        assert printed_to(full, *command) == (1, f"{failure}No space left on device\n")
    reading, writing = os.pipe()
    os.close(reading)
    assert printed_to(writing, *command) == (1, f"{failure}Broken pipe\n")
    os.close(writing)
    closed = ("/bin/sh", "-c", 'exec "$@" >&-', "sh", *command)
    assert printed_to(subprocess.DEVNULL, *closed) == (1, f"{failure}it is closed\n")


def test_nothing_to_print_needs_no_stdout() -> None:
    """What went wrong is told, and not that it has no output."""
    command = (sys.executable, "-m", "pytest_cudabatch", "fetch", "12")
    with Path("/dev/full").open("wb") as full:
        status, error = printed_to(full, *command)
    assert (status, error.count("\n"), "stdout" in error) == (4, 1, False)
