"""The plugin's own wheel for a bundle: built from a checked-out source, or the installed package repacked.

The source is the directory that the user names, else the current directory where it is this project's,
else what an editable install points to. Without any of them the installed package is put back into a
wheel: the format has the installed files, a .dist-info directory and a RECORD of their checksums, and an
installer adds to the latter only what is left out here (packaging.python.org, "Recording installed
projects").
"""

from __future__ import annotations

import json
import sys
import zipfile
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path
from urllib.parse import unquote, urlsplit

from pytest_cudabatch.commands.wheel_file import WheelWriter
from pytest_cudabatch.errors import InstallationError, UsageError
from pytest_cudabatch.runtimes import IndexOptions, run_pip

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["make_plugin_wheel"]

_PROJECT = "pytest-cudabatch"
_WRITTEN_BY_INSTALLERS = frozenset({"RECORD", "INSTALLER", "REQUESTED", "direct_url.json"})


def make_plugin_wheel(directory: Path, source: Path | None, index: IndexOptions) -> Path:
    """Put the plugin's wheel into ``directory`` and return its path.

    Raises UsageError where ``source`` is not this project, DownloadError where it does not build, and
    InstallationError where there is neither a source nor an installed package.
    """
    found = _source(source)
    if found is None:
        return _repack(distribution(_PROJECT), directory)
    run_pip(["wheel", "--no-deps", "-w", str(directory), *index.arguments(), str(found)])
    (wheel,) = directory.glob("pytest_cudabatch-*.whl")
    return wheel


def _source(named: Path | None) -> Path | None:
    if named is not None:
        if not _is_project(named):
            raise UsageError(f"--source: {named} has no pyproject.toml of {_PROJECT}")
        return named
    return Path.cwd() if _is_project(Path.cwd()) else _editable_source()


def _is_project(directory: Path) -> bool:
    try:
        document = tomllib.loads((directory / "pyproject.toml").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    project = document.get("project")
    return isinstance(project, dict) and project.get("name") == _PROJECT


def _editable_source() -> Path | None:
    """Return the directory that an editable install points to (direct_url.json, PEP 610)."""
    origin = json.loads(distribution(_PROJECT).read_text("direct_url.json") or "{}")
    if not origin.get("dir_info", {}).get("editable"):
        return None
    return Path(unquote(urlsplit(origin["url"]).path))


def _repack(installed: Distribution, directory: Path) -> Path:
    """Write the installed package's files and its .dist-info into a wheel."""
    name = f"{installed.metadata['Name'].replace('-', '_')}-{installed.version}"
    wheel = directory / f"{name}-{_tag(installed)}.whl"
    with zipfile.ZipFile(wheel, "w") as archive, WheelWriter(archive, f"{name}.dist-info") as writer:
        for inside, file in _packed_files(installed):
            writer.add(zipfile.ZipInfo.from_file(file, inside), file.read_bytes())
    return wheel


def _tag(installed: Distribution) -> str:
    """Return the platform tag that the package was built for, from its WHEEL file."""
    lines = (installed.read_text("WHEEL") or "").splitlines()
    tags = [line.partition(":")[2].strip() for line in lines if line.startswith("Tag:")]
    if len(tags) != 1:
        raise InstallationError(f"{_PROJECT} was not installed from a wheel; give its source by --source")
    return tags[0]


def _packed_files(installed: Distribution) -> Iterator[tuple[str, Path]]:
    """Yield the name inside the wheel and the file of everything that a wheel holds."""
    for file in installed.files or ():
        own = file.parts[0] == "pytest_cudabatch" and "__pycache__" not in file.parts
        metadata = file.parts[0].endswith(".dist-info") and file.name not in _WRITTEN_BY_INSTALLERS
        if own or metadata:
            yield file.as_posix(), Path(str(file.locate()))
