"""Shared objects with the C entry point: the expected path, and loading."""

from __future__ import annotations

import ctypes.util
from dataclasses import dataclass
from pathlib import Path

import pytest

from pytest_cudabatch.copies import Direction, Mixture, make_plan
from pytest_cudabatch.implementations import Route, SharedObject

PLAN = make_plan(Direction.H2D, Mixture.UNIFORM, 4, 0)


@dataclass(frozen=True)
class Routes:
    runtime_route: bool
    driver_route: bool


@pytest.mark.parametrize(
    ("route", "routes", "path"),
    [
        ("driver-first", Routes(runtime_route=True, driver_route=True), "batch"),
        ("driver-first", Routes(runtime_route=False, driver_route=True), "batch"),
        ("driver-first", Routes(runtime_route=True, driver_route=False), "batch"),
        ("driver-first", Routes(runtime_route=False, driver_route=False), "fallback"),
        ("runtime", Routes(runtime_route=True, driver_route=True), "batch"),
        ("runtime", Routes(runtime_route=True, driver_route=False), "batch"),
        ("runtime", Routes(runtime_route=False, driver_route=True), "fallback"),
        ("runtime", Routes(runtime_route=False, driver_route=False), "fallback"),
        ("per-copy", Routes(runtime_route=True, driver_route=True), "fallback"),
        ("per-copy", Routes(runtime_route=False, driver_route=False), "fallback"),
    ],
)
def test_the_expected_path_follows_from_the_route(route: Route, routes: Routes, path: str) -> None:
    assert SharedObject("mine", Path("mine.so"), route).expected_path(PLAN, routes) == path


@pytest.mark.parametrize(
    "plan", [make_plan(Direction.H2D, Mixture.MIXED, count, 0, sizes=(0,)) for count in (0, 3)]
)
def test_a_plan_without_bytes_takes_no_path(plan: object) -> None:
    routes = Routes(runtime_route=True, driver_route=True)
    assert SharedObject("mine", Path("mine.so"), "runtime").expected_path(plan, routes) == "none"


def test_a_file_that_cannot_be_loaded_is_an_import_error(tmp_path: Path) -> None:
    path = tmp_path / "mine.so"
    path.write_bytes(b"not ELF " * 512)
    with pytest.raises(ImportError, match=r"implementation 'mine': .*invalid ELF header"):
        SharedObject("mine", path, "runtime").open()


def test_a_library_without_the_entry_point_is_an_import_error(tmp_path: Path) -> None:
    name = ctypes.util.find_library("m")
    assert name is not None
    path = tmp_path / "mine.so"
    path.symlink_to(_directory_of(name) / name)
    with pytest.raises(ImportError, match=r"implementation 'mine': .*undefined symbol: cudabatch_copy"):
        SharedObject("mine", path, "runtime").open()


def _directory_of(soname: str) -> Path:
    ctypes.CDLL(soname)
    for line in Path("/proc/self/maps").read_text().splitlines():
        if line.endswith("/" + soname):
            return Path(line.split()[-1]).parent
    raise AssertionError(f"{soname} was loaded but is not mapped")
