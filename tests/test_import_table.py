"""Who may import whom. The table is the design; this test holds it against the code."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import pytest_cudabatch

PACKAGE = Path(pytest_cudabatch.__file__).parent
NAME = PACKAGE.name

LEAVES = frozenset({"abi", "errors", "finding_codes", "finding_hints", "native"})
DIRECT = {
    "abi": {"errors"},
    "errors": set(),
    "native": {"errors"},
    "finding_codes": set(),
    "finding_hints": {"finding_codes"},
    "runtimes": set(),
    "pairings": {"runtimes"},
    "cells": set(),
    "interposer": set(),
    "cuda": set(),
    "copies": {"cuda"},
    "contract": {"cuda", "pairings"},
    "implementations": {"copies"},
    "places": {"interposer", "runtimes"},
    "findings": {"cells", "interposer", "pairings", "places"},
    "verdicts": {"cells", "interposer", "pairings", "findings"},
    "reports": {"verdicts", "findings"},
    "telling": {"finding_codes"},
    "cell_evidence": {"interposer", "pairings"},
    "under_test": {"cell_evidence", "telling", "implementations", "pairings"},
    "contract_check": {"contract"},
    "fixtures": {"under_test", "contract_check"},
    "load_order": {"fixtures", "under_test"},
    "hookspecs": {"verdicts"},
    "run": {"fixtures", "reports", "scheduling"},
    "settings": {"run", "cuda", "implementations", "interposer"},
    "plugin": {"fixtures", "load_order", "reports", "run", "hookspecs", "zygote_plugin", "controller"},
    "control": {"verdicts"},
    "trial": {"control", "verdicts", "fixtures", "cells"},
    "discovery": {"settings", "reports", "pairings"},
    "zygote_plugin": {"fixtures", "cells", "run", "plugin"},
    "suite": {"cells"},
    "command_line": set(),
    "scheduling": set(),
    "devices": set(),
    "temporary": set(),
    "sharing": {"cells", "interposer"},
    "runner": {
        "devices",
        "temporary",
        "plugin",
        "scheduling",
        "sharing",
        "suite",
        "zygote_plugin",
        "trial",
        "run",
    },
    "in_process": {"suite", "zygote_plugin", "trial", "run", "plugin"},
    "ledger": {"reports", "runner", "trial", "verdicts"},
    "progress": {"ledger", "verdicts"},
    "screen": {"ledger", "reports", "run", "scheduling", "settings", "suite"},
    "controller": {
        "progress",
        "screen",
        "temporary",
        "devices",
        "in_process",
        "settings",
        "ledger",
        "runner",
        "scheduling",
        "suite",
        "command_line",
        "discovery",
        "trial",
        "run",
        "plugin",
    },
    "recording": {"interposer", "copies"},
    "commands": {"recording", "reports", "implementations", "interposer", "pairings", "cells", "contract"},
    "__main__": {"commands"},
}
"""Direct permissions; the table is transitive, and everybody may import the leaves."""


def rooms() -> dict[str, list[Path]]:
    found: dict[str, list[Path]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        relative = path.relative_to(PACKAGE)
        room = relative.parts[0] if len(relative.parts) > 1 else relative.stem
        if room not in {"__init__", "matrix"}:
            found.setdefault(room, []).append(path)
    return found


def imports(path: Path) -> Iterator[str]:
    """Yield the room of each import of this package in ``path``, also lazy ones and those for types."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            parts = name.split(".")
            if parts[0] == NAME and len(parts) > 1:
                yield parts[1]


def permitted(room: str) -> set[str]:
    """Everything that ``room`` may import: the table's closure, the leaves, and itself."""
    seen: set[str] = set()
    waiting = [room]
    while waiting:
        current = waiting.pop()
        if current not in seen:
            seen.add(current)
            waiting.extend(DIRECT[current])
    return seen | LEAVES


def test_every_room_is_in_the_table() -> None:
    assert set(rooms()) == set(DIRECT) | {"conformance"}


@pytest.mark.parametrize("room", sorted(DIRECT))
def test_room_imports_only_what_the_table_permits(room: str) -> None:
    used = {name for path in rooms()[room] for name in imports(path)}
    assert used <= permitted(room)


def test_conformance_uses_public_names_only_and_is_imported_by_nobody() -> None:
    files = rooms()
    assert {name for path in files["conformance"] for name in imports(path)} <= set(pytest_cudabatch.__all__)
    assert {
        room for room, paths in files.items() for path in paths if "conformance" in set(imports(path))
    } == set()


def test_there_are_no_cycles_at_import_time() -> None:
    """Lazy imports inside functions may close a loop; those at the top of a file may not."""
    graph = {
        room: {name for path in paths for name in top_level_imports(path)} - {room}
        for room, paths in rooms().items()
    }
    remaining = dict(graph)
    while free := [room for room, needs in remaining.items() if not needs & set(remaining)]:
        for room in free:
            del remaining[room]
    assert remaining == {}


def top_level_imports(path: Path) -> Iterator[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == NAME:
            names = [f"{node.module}.{alias.name}".split(".") for alias in node.names]
            yield from (parts[1] for parts in names if len(parts) > 1)
