"""``cudabatch bundle DIR``: a directory from which a host without any network installs and runs.

DIR/wheels/          the plugin, its dependencies for the target's Python, and pip
DIR/runtimes/        one directory a fetched runtime, as in the user's cache
DIR/packages/        of packages under test what their adapters use, to be installed without their needs
DIR/run.sh           makes a virtual environment beside itself, then runs pytest in it
DIR/bundle.json      what is inside, with checksums
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import shutil
import sys
import tempfile
from collections.abc import Sequence
from importlib.metadata import metadata
from importlib.resources import files
from pathlib import Path
from typing import Any

from packaging.specifiers import SpecifierSet

from pytest_cudabatch.commands.fetch import describe
from pytest_cudabatch.commands.index_options import add_index_options, index_of
from pytest_cudabatch.commands.packages import gather_packages, package_problems
from pytest_cudabatch.commands.plugin_wheel import make_plugin_wheel
from pytest_cudabatch.commands.wheelhouse import Target, gather_dependencies
from pytest_cudabatch.errors import CudaBatchError, UsageError
from pytest_cudabatch.runtimes import IndexOptions, RuntimeFile, RuntimeRequest, fetch

__all__ = ["configure", "run"]

_SCHEMA = 1
_INSTALLER = "pip>=23"
"""Travels along, since a host's Python may come without ensurepip."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.add_argument(
        "directory", metavar="DIR", type=Path, help="the bundle; must not be there yet, or be empty"
    )
    parser.add_argument(
        "--python",
        metavar="VERSION",
        default=f"{sys.version_info[0]}.{sys.version_info[1]}",
        help="the target's Python, such as 3.12 (default: this one's)",
    )
    parser.add_argument(
        "--runtime",
        metavar="VERSION",
        action="append",
        default=[],
        help="a CUDA runtime to take along, as for fetch; may be repeated",
    )
    parser.add_argument(
        "--package",
        metavar="NAME==VERSION",
        action="append",
        default=[],
        help="a package under test to take along, as far as its adapter uses it; may be repeated. What it "
        "needs, such as torch, is the host's: run there with CUDABATCH_SYSTEM_SITE=1",
    )
    parser.add_argument(
        "--zero-device-code",
        action="store_true",
        help="fill the device code of these packages with zeros, so that they travel; copies do not need it",
    )
    parser.add_argument(
        "--source",
        metavar="DIR",
        type=Path,
        help="this project's checked-out source, to build its wheel from (default: the current directory "
        "where it is one, else the installed package)",
    )
    parser.add_argument("--json", action="store_true", help="print what is inside as JSON")
    add_index_options(parser)


def run(options: argparse.Namespace) -> int:
    """Make the bundle, and say what it holds and how large it is."""
    target, directory, index = Target(options.python), options.directory, index_of(options)
    _check(target, directory, options.runtime, options.package)
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".bundle-", dir=directory.parent) as made:
            contents = _make(Path(made, "bundle"), target, options, index)
            Path(made, "bundle").replace(directory)  # whole or not at all
    except OSError as error:
        raise CudaBatchError(f"cannot make {directory}: {error}") from error
    text = json.dumps(contents, indent=1) if options.json else _summary(directory, contents)
    sys.stdout.write(text + "\n")
    return 0


def _check(target: Target, directory: Path, runtimes: Sequence[str], packages: Sequence[str]) -> None:
    """Raise one UsageError with everything that is wrong with what the user asked for."""
    problems = []
    supported = metadata("pytest-cudabatch")["Requires-Python"]
    if not re.fullmatch(r"\d\.\d{1,2}", target.python) or target.python not in SpecifierSet(supported):
        problems.append(f"--python: {target.python!r} is not a Python version {supported}, such as 3.12")
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        problems.append(f"{directory}: is there already and is not an empty directory")
    try:
        RuntimeRequest.parse_all(runtimes)
    except UsageError as error:
        problems.extend(error.problems)
    problems += package_problems(packages)
    if found := UsageError.collect(problems):
        raise found


def _make(bundle: Path, target: Target, options: argparse.Namespace, index: IndexOptions) -> dict[str, Any]:
    """Fill ``bundle`` and return what is inside."""
    wheels = bundle / "wheels"
    wheels.mkdir(parents=True)
    runtimes = fetch(options.runtime, index=index)
    plugin = make_plugin_wheel(wheels, options.source, index)
    gather_dependencies(plugin, wheels, target, index, also=(_INSTALLER,))
    _copy_runtimes(runtimes, bundle / "runtimes")
    device_code = not options.zero_device_code
    packages = gather_packages(options.package, bundle / "packages", target, index, device_code=device_code)
    _write_script(bundle / "run.sh", target)
    contents = {
        "schema": _SCHEMA,
        "python": target.python,
        "plugin": plugin.name,
        "wheels": {path.name: _sha256(path) for path in sorted(wheels.iterdir())},
        "packages": {path.name: {"sha256": _sha256(path), "device_code": device_code} for path in packages},
        "runtimes": [describe(runtime) | {"path": f"runtimes/{runtime.release}"} for runtime in runtimes],
        "bytes": sum(path.stat().st_size for path in bundle.rglob("*") if path.is_file()),
    }
    (bundle / "bundle.json").write_text(json.dumps(contents, indent=1) + "\n", encoding="utf-8")
    return contents


def _copy_runtimes(runtimes: Sequence[RuntimeFile], directory: Path) -> None:
    directory.mkdir()
    for runtime in runtimes:
        shutil.copytree(runtime.path.parent, directory / runtime.release)


def _write_script(path: Path, target: Target) -> None:
    template = files("pytest_cudabatch.commands").joinpath("bundled_run.sh").read_text(encoding="utf-8")
    path.write_text(template.replace("@PYTHON@", target.python), encoding="utf-8")
    path.chmod(0o755)


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _summary(directory: Path, contents: dict[str, Any]) -> str:
    releases = ", ".join(runtime["release"] for runtime in contents["runtimes"]) or "none"
    return (
        f"{directory}: {contents['bytes'] / 1e6:.1f} MB for Python {contents['python']}\n"
        f"  plugin    {contents['plugin']}\n"
        f"  wheels    {len(contents['wheels'])}\n"
        f"  runtimes  {releases}\n"
        f"  packages  {', '.join(contents['packages']) or 'none'}\n"
        f"run there: {directory.name}/run.sh --cuda-matrix --cuda-suite-only"
    )
