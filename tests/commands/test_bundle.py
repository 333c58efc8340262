from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from email.parser import Parser
from importlib.metadata import distribution
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from vendor_wheels import libcudart, make_wheel, runtime_wheel

from pytest_cudabatch.commands import main
from pytest_cudabatch.commands.plugin_wheel import make_plugin_wheel
from pytest_cudabatch.commands.wheelhouse import Target, gather_dependencies
from pytest_cudabatch.errors import UsageError
from pytest_cudabatch.runtimes import DownloadError, IndexOptions

PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"
TELLTALE = """
import json, os, sys
import shared_by_the_host as host
here = os.getcwd()
print(json.dumps([sys.argv[1:], here, os.environ["CUDABATCH_RUNTIMES"], host.WHERE, here in sys.path]))
"""
"""The pytest of the tests' bundles: prints what it was run with."""


@pytest.fixture(autouse=True)
def own_pip_and_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No index, no configuration of this host, a cache of the test's own, and no checkout to build from."""
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    for variable in ("CUDABATCH_RUNTIMES", "CUDABATCH_SYSTEM_SITE"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("CUDABATCH_PYTHON", sys.executable)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")


@pytest.fixture
def links(tmp_path: Path) -> Path:
    """Wheels for everything that the plugin depends on; all empty, but pytest and this interpreter's pip."""
    directory = tmp_path / "links"
    directory.mkdir()
    for text in distribution("pytest-cudabatch").requires or ():
        requirement = Requirement(text)
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            name = requirement.name.replace("-", "_")
            content = {f"{name}.py": b""}
            if name == "pytest":
                content = {"pytest/__init__.py": b"", "pytest/__main__.py": TELLTALE.encode()}
            make_wheel(directory, name, "99.0", content)
    make_wheel(directory, "packaging_helper", "1.0", {"shared_by_the_host.py": b"WHERE = 'bundle'\n"})
    make_wheel(
        directory,
        "pytest",
        "99.1",
        {"pytest/__init__.py": b"", "pytest/__main__.py": TELLTALE.encode()},
        requires=["packaging-helper"],
    )
    pack_pip(directory)
    library = libcudart(tmp_path / "libcudart.so.12", 12090).read_bytes()
    runtime_wheel(directory, "12.9.79", library)
    return directory


def pack_pip(directory: Path) -> None:
    """Put the running pip back into a wheel."""
    installed = distribution("pip")
    content = {
        file.as_posix(): Path(str(file.locate())).read_bytes()
        for file in installed.files or ()
        if file.parts[0] == "pip" and "__pycache__" not in file.parts
    }
    make_wheel(directory, "pip", installed.version, content)


def bundle(directory: Path, links: Path, *options: str) -> int:
    return main(["bundle", str(directory), "--python", PYTHON, "--find-links", str(links), *options])


def ran(directory: Path, *arguments: str, **variables: str) -> list[Any]:
    """Run the bundle's script in the current directory and return what its pytest printed."""
    output = subprocess.run(
        [str(directory / "run.sh"), *arguments],
        env={**os.environ, **variables},
        check=True,
        capture_output=True,
        text=True,
    )
    told: list[Any] = json.loads(output.stdout)
    return told


def test_a_bundle_installs_and_runs(links: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = tmp_path / "a bundle"
    assert bundle(directory, links, "--runtime", "12.9") == 0
    contents = json.loads((directory / "bundle.json").read_text())
    output = capsys.readouterr().out.splitlines()
    assert output[0] == f"{directory}: {contents['bytes'] / 1e6:.1f} MB for Python {PYTHON}"
    assert output[3] == "  runtimes  12.9.79"
    assert contents["runtimes"] == [
        {
            "release": "12.9.79",
            "abi": "v12080",
            "exports_batch": True,
            "source": "wheel",
            "path": "runtimes/12.9.79",
        }
    ]
    assert contents["wheels"] == {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in (directory / "wheels").iterdir()
    }
    assert sorted(path.name for path in (directory / "runtimes" / "12.9.79").iterdir()) == [
        "libcudart.so.12",
        "record.json",
    ]
    for _ in range(2):  # the second run uses the environment that the first made
        told = ran(directory, "-k", "two words", "--flag")
        assert told == [
            ["-k", "two words", "--flag"],
            str(Path.cwd()),
            f"{directory}/runtimes",
            "bundle",
            False,
        ]
    assert len(list(directory.glob("environment*"))) == 2  # the link and what it leads to


def test_the_installed_plugin_is_the_whole_one(links: Path, tmp_path: Path) -> None:
    assert bundle(tmp_path / "bundle", links) == 0
    ran(tmp_path / "bundle")
    site = (
        tmp_path / "bundle" / "environment" / "lib" / f"python{PYTHON}" / "site-packages" / "pytest_cudabatch"
    )

    def contents(package: Path) -> dict[str, bytes]:
        paths = (path for path in package.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
        return {str(path.relative_to(package)): path.read_bytes() for path in paths}

    assert contents(site) == contents(Path(str(files("pytest_cudabatch"))))
    script = tmp_path / "bundle" / "environment" / "bin" / "cudabatch"
    assert os.access(script, os.X_OK)


def test_packages_of_the_host(links: Path, tmp_path: Path) -> None:
    """With CUDABATCH_SYSTEM_SITE=1 what the host's Python has is used, also where that is an environment."""
    directory = tmp_path / "bundle"
    assert bundle(directory, links) == 0
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "host")], check=True)
    site = tmp_path / "host" / "lib" / f"python{PYTHON}" / "site-packages"
    for name in ("pytest-99.1", "packaging_helper-1.0"):
        with zipfile.ZipFile(links / f"{name}-py3-none-any.whl") as wheel:
            wheel.extractall(site)
    (site / "shared_by_the_host.py").write_text("WHERE = 'host'\n")
    variables = {"CUDABATCH_PYTHON": str(tmp_path / "host" / "bin" / "python")}
    assert ran(directory, **variables)[3] == "bundle"
    assert ran(directory, CUDABATCH_SYSTEM_SITE="1", **variables)[3] == "host"


def test_two_first_runs_at_once(links: Path, tmp_path: Path) -> None:
    directory = tmp_path / "bundle"
    assert bundle(directory, links) == 0
    runs = [subprocess.Popen([directory / "run.sh"], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    told = [json.loads(run.communicate()[0])[3] for run in runs]
    assert told == ["bundle", "bundle"]
    assert [run.returncode for run in runs] == [0, 0]


def test_a_bundle_that_was_moved(links: Path, tmp_path: Path) -> None:
    assert bundle(tmp_path / "before", links) == 0
    ran(tmp_path / "before")
    shutil.move(tmp_path / "before", tmp_path / "after")
    assert ran(tmp_path / "after", CUDABATCH_RUNTIMES="/more")[2] == f"{tmp_path}/after/runtimes:/more"


def test_another_python_than_the_bundles(links: Path, tmp_path: Path) -> None:
    directory = tmp_path / "bundle"
    assert bundle(directory, links) == 0
    command = [directory / "run.sh"]
    environment = {**os.environ, "CUDABATCH_PYTHON": "/bin/false"}
    refused = subprocess.run(command, env=environment, check=False, capture_output=True, text=True)
    assert (refused.returncode, refused.stderr) == (
        4,
        f"run.sh: CUDABATCH_PYTHON=/bin/false is not a Python {PYTHON}\n",
    )
    assert list(directory.glob("environment*")) == []


@pytest.fixture
def occupied(tmp_path: Path) -> Iterator[Path]:
    directory = tmp_path / "occupied"
    directory.mkdir()
    (directory / "file").write_text("")
    yield directory
    assert [path.name for path in directory.iterdir()] == ["file"]


def test_everything_that_is_wrong_is_told_at_once(occupied: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bundle", str(occupied), "--python", "3.9", "--runtime", "13", "--runtime", "11.8"]) == 4
    assert capsys.readouterr().err == (
        "cudabatch: --python: '3.9' is not a Python version >=3.10, such as 3.12\n"
        f"{occupied}: is there already and is not an empty directory\n"
        "'13' is not a CUDA runtime version; write it like 12.9 or 12.9.79\n"
        "runtime 11.8: the oldest that can be fetched is 12.0\n"
    )


def test_nothing_is_left_of_a_bundle_that_failed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "place").mkdir()
    assert main(["bundle", str(tmp_path / "place" / "bundle"), "--runtime", "12.9"]) == 1
    assert capsys.readouterr().err == (
        "cudabatch: cannot fetch runtime 12.9: pip found no nvidia-cuda-runtime-cu12==12.9.*: no index or "
        "--find-links directory has it, or none can be reached\n"
    )
    assert list((tmp_path / "place").iterdir()) == []


def test_markers_are_decided_for_the_target(tmp_path: Path) -> None:
    """pip itself decides them for the running Python: what it leaves out is found and downloaded."""
    links, wheels = tmp_path / "links", tmp_path / "wheels"
    for directory in (links, wheels):
        directory.mkdir()
    make_wheel(links, "always", "1.0", {"always.py": b""}, requires=["backport>=2; python_version < '3.11'"])
    make_wheel(links, "always_new", "1.0", {"new.py": b""}, requires=["modern; python_version >= '3.13'"])
    make_wheel(
        links, "backport", "2.0", {"backport.py": b""}, requires=["deeper; python_full_version < '3.11'"]
    )
    make_wheel(links, "deeper", "1.0", {"deeper.py": b""})
    make_wheel(links, "modern", "1.0", {"modern.py": b""})
    make_wheel(links, "optional", "1.0", {"optional.py": b""})
    plugin = make_wheel(
        tmp_path,
        "plugin",
        "1.0",
        {"plugin.py": b""},
        requires=["always", "always-new", "optional; extra == 'dev'"],
    )
    index = IndexOptions(find_links=(str(links),))
    gather_dependencies(plugin, wheels, Target("3.10"), index)
    names = {path.name.partition("-")[0] for path in wheels.iterdir()}
    assert names - {"modern"} == {"always", "always_new", "backport", "deeper"}


def test_wheels_of_the_target_are_taken(tmp_path: Path) -> None:
    links, wheels = tmp_path / "links", tmp_path / "wheels"
    for directory in (links, wheels):
        directory.mkdir()
    architecture = os.uname().machine
    for tag in (f"cp310-cp310-manylinux_2_17_{architecture}", f"cp314-cp314-manylinux_2_28_{architecture}"):
        make_wheel(links, "native", "1.0", {"native.so": b""}, tag=tag)
    plugin = make_wheel(tmp_path, "plugin", "1.0", {"plugin.py": b""}, requires=["native"])
    gather_dependencies(plugin, wheels, Target("3.14"), IndexOptions(find_links=(str(links),)))
    assert [path.name for path in wheels.iterdir()] == [
        f"native-1.0-cp314-cp314-manylinux_2_28_{architecture}.whl"
    ]
    with pytest.raises(DownloadError) as failure:
        gather_dependencies(plugin, wheels, Target("3.12"), IndexOptions(find_links=(str(links),)))
    assert str(failure.value) == (
        "pip found no native: no index or --find-links directory has it, or none can be reached"
    )


BACKEND = """
import pathlib, zipfile
def build_wheel(directory, config_settings=None, metadata_directory=None):
    name, information = "pytest_cudabatch-0.0-py3-none-any.whl", "pytest_cudabatch-0.0.dist-info/"
    with zipfile.ZipFile(pathlib.Path(directory, name), "w") as wheel:
        metadata = "Metadata-Version: 2.1\\nName: pytest-cudabatch\\nVersion: 0.0\\n"
        wheel.writestr(information + "METADATA", metadata)
        wheel.writestr(information + "WHEEL", "Wheel-Version: 1.0\\nTag: py3-none-any\\n")
        wheel.writestr(information + "RECORD", "")
    return name
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A source tree that builds without a network."""
    directory = tmp_path / "source"
    directory.mkdir()
    (directory / "backend.py").write_text(BACKEND)
    (directory / "pyproject.toml").write_text(
        '[project]\nname = "pytest-cudabatch"\nversion = "0.0"\n'
        '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    )
    return directory


@pytest.mark.parametrize("named", [True, False])
def test_the_plugin_is_built_from_a_source(
    source: Path, tmp_path: Path, named: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not named:
        monkeypatch.chdir(source)
    wheel = make_plugin_wheel(tmp_path / "wheels", source if named else None, IndexOptions())
    assert wheel == tmp_path / "wheels" / "pytest_cudabatch-0.0-py3-none-any.whl"
    assert zipfile.is_zipfile(wheel)


def test_a_source_of_another_project(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as refusal:
        make_plugin_wheel(tmp_path, tmp_path, IndexOptions())
    assert str(refusal.value) == f"--source: {tmp_path} has no pyproject.toml of pytest-cudabatch"


def test_the_repacked_wheel(tmp_path: Path) -> None:
    wheel = make_plugin_wheel(tmp_path, None, IndexOptions())
    installed = distribution("pytest-cudabatch")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        information = f"pytest_cudabatch-{installed.version}.dist-info"
        tag = Parser().parsestr(archive.read(f"{information}/WHEEL").decode())["Tag"]
        recorded = [
            line.split(",")[0] for line in archive.read(f"{information}/RECORD").decode().splitlines()
        ]
    assert wheel.name == f"pytest_cudabatch-{installed.version}-{tag}.whl"
    assert recorded == names
    assert names[-1] == f"{information}/RECORD"
    assert {name.split("/")[0] for name in names} == {"pytest_cudabatch", information}
    assert {f"{information}/{name}" for name in ("INSTALLER", "direct_url.json")} & set(names) == set()


@pytest.mark.nightly
def test_a_real_bundle_for_python_3_12(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("PIP_NO_INDEX", "PIP_CONFIG_FILE"):
        monkeypatch.delenv(variable)
    releases = ["12.8.90", "12.9.79", "13.0.96", "13.2.75", "13.5.37"]
    options = [word for release in releases for word in ("--runtime", release)]
    assert main(["bundle", str(tmp_path / "bundle"), "--python", "3.12", *options]) == 0
    contents = json.loads((tmp_path / "bundle" / "bundle.json").read_text())
    assert [runtime["release"] for runtime in contents["runtimes"]] == releases
    assert contents["bytes"] < 45_000_000


def test_packages_under_test_are_installed_without_their_needs(links: Path, tmp_path: Path) -> None:
    make_wheel(
        links,
        "shared_by_the_host",
        "2.0",
        {"shared_by_the_host.py": b"WHERE = 'package'\n"},
        requires=["torch"],
    )
    directory = tmp_path / "bundle"
    assert bundle(directory, links, "--package", "shared-by-the-host==2.0", "--zero-device-code") == 0
    contents = json.loads((directory / "bundle.json").read_text())
    (name,) = contents["packages"]
    assert contents["packages"][name] == {
        "sha256": hashlib.sha256((directory / "packages" / name).read_bytes()).hexdigest(),
        "device_code": False,
    }
    assert ran(directory)[3] == "package"


def test_a_package_that_names_no_release_is_refused(
    links: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bundle(tmp_path / "bundle", links, "--package", "vllm") == 4
    assert "--package: 'vllm' does not name a release" in capsys.readouterr().err
