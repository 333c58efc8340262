"""The vendor's own static runtime, linked into code under test: what it asks the driver is seen.

On the simulated driver it goes no further than its look-ups, since that has none of the private tables.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from pytest_cudabatch import native
from pytest_cudabatch.interposer import Binding, Location

from .programs import Programs

ASK = """
claim()
load("TEST_DRIVER")
user = load("TEST_USER")
say(runtime=user.runtime_version(), driver=user.driver_version())
"""


def archives() -> list[Path]:
    """Return the static runtimes of installed nvidia-cuda-runtime wheels, which nothing else needs."""
    spec = importlib.util.find_spec("nvidia")
    roots = list(spec.submodule_search_locations or ()) if spec else []
    return [archive for root in roots for archive in Path(root).glob("*/lib/libcudart_static.a")]


def test_real_static_runtime_is_seen_by_its_look_ups(programs: Programs) -> None:
    found = archives()
    if not found:
        pytest.skip("no libcudart_static.a: nvidia-cuda-runtime is not installed")
    for archive in found:
        rest = [f"-l:{name}" for name in ("libculibos.a",) if archive.with_name(name).exists()]
        user = programs.compiler.library(
            "libuser.so",
            "static_runtime_user.c",
            *("-Wl,--whole-archive", str(archive), "-Wl,--no-whole-archive", "-Wl,--exclude-libs,ALL"),
            *(f"-L{archive.parent}", *rest, "-ldl", "-lpthread", "-lrt"),
        )
        driver = native.library("simcuda/driver-13.0/libcuda.so.1")
        ended = programs.run(ASK, {"driver": driver, "user": user})
        assert (ended.status, ended.errors) == (0, "")
        said, evidence = ended.said[0], ended.evidence
        assert said["driver"] == 13000
        asked = {
            (row.version, row.flags, row.caller.file)
            for row in evidence.lookups
            if row.name == "cuMemcpyBatchAsync" and row.found is not None
        }
        versions = {12080} if said["runtime"] < 13000 else {12080, 13000}
        assert asked == {(version, flags, str(user)) for version in versions for flags in (0, 2)}
        queries = {(row.function, row.caller.file, row.version) for row in evidence.version_queries}
        assert queries == {("cuDriverGetVersion", str(user), 13000)}
        [binding] = [row for row in evidence.bindings if row.function == "cuGetProcAddress_v2"]
        callee = Location(str(driver), binding.callee.offset, "cuGetProcAddress_v2")
        assert binding == Binding("cuGetProcAddress_v2", str(user), callee, "dlsym")
