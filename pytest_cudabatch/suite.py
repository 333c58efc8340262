"""The built-in suite as a collector of its own, outside the project's paths, settings and fixtures.

The cases are ordinary pytest tests under ``conformance/``. A zygote with the plugin's own configuration
collects them, so that the project's ``python_files``, ``usefixtures``, conftest and autouse fixtures do not
reach them; what stands in the session here are their ids, markers and places.
"""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_cudabatch.errors import CellError

if TYPE_CHECKING:
    from pytest_cudabatch.cells import CollectedItem, Zygote

__all__ = [
    "SUITE_DIRECTORY",
    "SUITE_NAME",
    "Suite",
    "SuiteCell",
    "is_asked_for",
    "is_ignored",
    "named_in_suite",
    "suite_id",
]

SUITE_NAME = "cudabatch"
SUITE_DIRECTORY = Path(__file__).parent / "conformance"


def suite_id(zygote_id: str) -> str:
    """Turn the suite zygote's id of a test into the session's: ``cudabatch/test_abi.py::test_...``."""
    return f"{SUITE_NAME}/{zygote_id}"


def named_in_suite(argument: str, start: Path, root: Path) -> str | None:
    """Return what a command-line argument names of the suite: a file, case or cell, or all of it; else None.

    pytest prints ids relative to ``root`` or to where it was started (``start``), so both are understood. A
    file of the project under the same name is the project's.
    """
    file, separator, rest = argument.partition("::")
    absolute = os.path.normpath(start / file)
    names = (os.path.normpath(file), os.path.relpath(absolute, root))
    name = next((Path(name) for name in names if Path(name).parts[:1] == (SUITE_NAME,)), None)
    if name is None or Path(absolute).exists() or not (name.suffix == ".py" or name == Path(SUITE_NAME)):
        return None
    return f"{name.as_posix()}{separator}{rest}"


def is_asked_for(nodeid: str, asked: Sequence[str] | None) -> bool:
    """Whether ``asked`` (None: everything) names the cell, its case, its class or its file."""
    if asked is None:
        return True
    return any(nodeid == name or nodeid.startswith((f"{name}/", f"{name}::", f"{name}[")) for name in asked)


def is_ignored(config: pytest.Config, file_id: str) -> bool:
    """Whether ``--ignore`` or ``--ignore-glob`` leaves a file of the suite out, as if it lay in rootdir."""
    start, root = config.invocation_params.dir, config.rootpath
    names = [named_in_suite(str(path), start, root) for path in config.getoption("ignore") or ()]
    globs = [os.path.normpath(start / str(glob)) for glob in config.getoption("ignore_glob") or ()]
    path = os.path.normpath(start / file_id)
    return is_asked_for(file_id, [name for name in names if name]) or any(
        fnmatch.fnmatch(path, glob) for glob in globs
    )


class Suite(pytest.Collector):
    """The whole suite; one child for each of its files."""

    start_zygote: Callable[[], Zygote]
    asked: Sequence[str] | None

    @classmethod
    def over(
        cls, session: pytest.Session, start_zygote: Callable[[], Zygote], asked: Sequence[str] | None
    ) -> Suite:
        """Make the suite's node over what its zygote will collect, as far as it was asked for."""
        suite: Suite = cls.from_parent(session, name=SUITE_NAME, nodeid=SUITE_NAME)
        suite.start_zygote, suite.asked = start_zygote, asked
        return suite

    def collect(self) -> Iterator[SuiteFile]:
        """Yield a node for each file that has cells to run. Raises CollectError where the suite is broken."""
        try:
            zygote = self.start_zygote()
        except CellError as error:
            raise self.CollectError(str(error)) from error
        if zygote.errors:
            raise self.CollectError("\n".join(error.text for error in zygote.errors))
        files: dict[str, list[CollectedItem]] = {}
        for item in zygote.items:
            if is_asked_for(suite_id(item.nodeid), self.asked):
                files.setdefault(item.nodeid.partition("::")[0], []).append(item)
        for name, items in files.items():
            if not is_ignored(self.config, suite_id(name)):
                yield SuiteFile.over(self, name, items)


class SuiteFile(pytest.Collector):
    """One file of the suite."""

    items: Sequence[CollectedItem]

    @classmethod
    def over(cls, parent: Suite, name: str, items: Sequence[CollectedItem]) -> SuiteFile:
        """Make a file's node over its items."""
        node: SuiteFile = cls.from_parent(
            parent, name=name, nodeid=suite_id(name), path=SUITE_DIRECTORY / name
        )
        node.items = items
        return node

    def collect(self) -> Iterator[SuiteCell]:
        """Yield the file's cells."""
        for item in self.items:
            yield SuiteCell.over(self, item)


class SuiteCell(pytest.Item):
    """One cell of the suite: what stands for it in this session. It runs in the suite's zygote."""

    collected: CollectedItem

    @classmethod
    def over(cls, parent: SuiteFile, item: CollectedItem) -> SuiteCell:
        """Make a cell's node from what the zygote said of it."""
        cell: SuiteCell = cls.from_parent(parent, name=item.nodeid.partition("::")[2])
        cell.collected = item
        cell.extra_keyword_matches.update(item.keywords)
        for marker in item.markers:
            if marker.name.startswith("cuda_") and marker.name != "cuda_identity":
                cell.add_marker(getattr(pytest.mark, marker.name)(*marker.args, **marker.kwargs))
        return cell

    def runtest(self) -> None:
        """Refuse: without the plugin's protocol there is no process to run the cell in."""
        raise CellError(
            f"{self.nodeid} runs in the suite's zygote only; something replaced the plugin's protocol"
        )

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Point at the case in the installed suite."""
        _, line, domain = self.collected.location
        return self.path, line, domain

    @property
    def identity(self) -> dict[str, Any]:
        """The case, kind, implementation and pairing, as the zygote told them."""
        for marker in self.collected.markers:
            if marker.name == "cuda_identity":
                return {**marker.kwargs, "case": suite_id(marker.kwargs["case"])}
        raise CellError(f"the suite's zygote did not say what {self.nodeid} is")
