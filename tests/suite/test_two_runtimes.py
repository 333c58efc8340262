"""The load-order matrix of two runtimes: 4 splits, 6 silent fallbacks, 10 consistent, on both grounds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from vendor_wheels import libcudart

from pytest_cudabatch.cuda.signatures import PARAMETERS
from pytest_cudabatch.runtimes import probe

SPECIMEN = "specimen:linked-runtime-version"
CASES = "cudabatch/test_two_runtimes.py::test_"

PASSES, SILENT = (None, None, None), ("silent-fallback", None, None)
SPLIT = {
    ("shared", 12): ("split-owner", 9, 8),
    ("shared", 13): ("split-owner", 8, 9),
    ("static", 12): ("wrong-abi", 9, 8),
    ("static", 13): ("wrong-abi", 8, 9),
}
"""By what is linked: finding, parameters given, parameters taken. Nothing shows whom a static runtime's
version was asked of: that call never leaves the object. What it led to shows all the same."""
ALSO_LOADED = ("nothing", "12-global", "12-local", "13-global", "13-local")


def expected(linkage: str, major: int, also: str) -> tuple[object, ...]:
    """The table of what two libcudarts in a process come to, measured with the vendor's own."""
    if also == f"{25 - major}-global":
        return SPLIT[linkage, major]
    return SILENT if linkage == "static" and also != f"{major}-global" else PASSES


LOAD_ORDERS = {
    (linkage, major, also): expected(linkage, major, also)
    for linkage in ("shared", "static")
    for major in (12, 13)
    for also in ALSO_LOADED
}


def run(pytester: pytest.Pytester, *arguments: str) -> list[dict[str, Any]]:
    pytester.runpytest_subprocess(
        "--cuda-matrix", "--cuda-suite-only", "--cuda-report=report.json", *arguments
    )
    cells: list[dict[str, Any]] = json.loads((pytester.path / "report.json").read_text())["cells"]
    return cells


def judged(cell: dict[str, Any]) -> tuple[object, ...]:
    finding = cell["finding"] or dict.fromkeys(("code", "given", "taken"))
    return (finding["code"], finding["given"], finding["taken"])


def by_order(cells: list[dict[str, Any]], case: str) -> dict[tuple[str, int, str], tuple[object, ...]]:
    """Map (linkage, linked major, the rest of the case's parameters) to what each cell came to."""
    found = {}
    for cell in cells:
        function, _, parameters = cell["case"].removeprefix(CASES).rstrip("]").partition("[")
        if function == case:
            linkage, _, rest = parameters.partition("-")
            found[linkage, int(cell["pairing"][2:4]), rest] = judged(cell)
    return found


def test_the_table_has_the_known_counts() -> None:
    found = list(LOAD_ORDERS.values())
    split = sum(answer in SPLIT.values() for answer in found)
    assert (split, found.count(SILENT), found.count(PASSES)) == (4, 6, 10)


def test_on_simulated_cuda(pytester: pytest.Pytester) -> None:
    arguments = ("--cuda-platform=simulated", f"--cuda-implementation={SPECIMEN}", "-k", "two_runtimes")
    cells = run(pytester, *arguments)
    assert by_order(cells, "load_order") == LOAD_ORDERS
    assert by_order(cells, "beside_torchs_runtime") == {
        (linkage, major, str(torch)): PASSES if torch == major else SPLIT[linkage, major]
        for linkage in ("shared", "static")
        for major in (12, 13)
        for torch in (12, 13)
    }
    assert by_order(cells, "the_other_major_was_loaded_first") == {
        (visibility, major, ""): SPLIT["shared", major] if visibility == "global" else PASSES
        for visibility in ("global", "local")
        for major in (12, 13)
    }
    assert {cell["verdict"] for cell in cells if judged(cell) in SPLIT.values()} == {"crashed"}


def test_the_reference_passes_all_of_them(pytester: pytest.Pytester) -> None:
    cells = run(pytester, "--cuda-platform=simulated", "-k", "two_runtimes")
    assert by_order(cells, "load_order") == dict.fromkeys(LOAD_ORDERS, PASSES)
    assert [(cell["verdict"], cell["path"]) for cell in cells] == [("passed", "batch")] * 32


def test_the_summary_draws_the_matrix(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest_subprocess(
        *("--cuda-matrix", "--cuda-suite-only", "--cuda-platform=simulated", "-k", "test_load_order"),
        f"--cuda-implementation={SPECIMEN}",
    )
    heading = f"{SPECIMEN}: what was loaded first (rows), the runtime that it links (columns)"
    start = result.outlines.index(heading) + 1
    drawn = [line.split() for line in result.outlines[start : start + 6]]
    assert drawn[0] == ["shared", "12", "shared", "13", "static", "12", "static", "13"]
    links = [("shared", 12), ("shared", 13), ("static", 12), ("static", 13)]
    assert drawn[1:] == [
        [also, *(str(LOAD_ORDERS[linkage, major, also][0] or "passed") for linkage, major in links)]
        for also in ALSO_LOADED
    ]


def test_another_implementation_is_tested_as_it_is_built(pytester: pytest.Pytester) -> None:
    cells = run(
        pytester,
        *("--cuda-platform=simulated", "--cuda-implementation=specimen:dlsym-always-9", "-k", "two_runtimes"),
    )
    ran = {
        (cell["case"].removeprefix(CASES), cell["pairing"]): judged(cell)
        for cell in cells
        if cell["verdict"] != "skipped"
    }
    first = "the_other_major_was_loaded_first"
    wrong = ("wrong-abi", 9, 8)
    assert ran == {
        (f"{first}[global]", "cu12.9-d13.5"): wrong,
        (f"{first}[global]", "cu13.5-d13.5"): PASSES,
        (f"{first}[local]", "cu12.9-d13.5"): PASSES,
        (f"{first}[local]", "cu13.5-d13.5"): wrong,
    }
    assert len(cells) == 32


def test_a_run_without_the_other_major_says_so(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest_subprocess(
        *("--cuda-matrix", "--cuda-suite-only", "--cuda-platform=simulated", "-rs", "-k", "test_load_order"),
        "--cuda-select=runtime==12.9 on driver==13.0",
    )
    result.assert_outcomes(passed=6, skipped=4, deselected=result.parseoutcomes()["deselected"])
    result.stdout.fnmatch_lines(
        ["*no CUDA 13 runtime with the batch function is among the run's pairings*"], consecutive=False
    )


# ---- real runtimes without a driver -------------------------------------------------------------

NO_DRIVER = 35  # cudaErrorInsufficientDriver
FUNCTIONS = {*PARAMETERS, "cudaMemcpyAsync"} - {"cudaRuntimeGetVersion", "cudaDriverGetVersion"}
DRIVERLESS = "int cudaDriverGetVersion(int *version) { *version = 0; return 0; }\n" + "".join(
    f"int {name}(void) {{ return {NO_DRIVER}; }}\n" for name in ("cudaMemcpyBatchAsync", *sorted(FUNCTIONS))
)


@pytest.fixture
def runtimes(tmp_path: Path) -> list[str]:
    """Options that name a 12.9 and a 13.0 runtime with the vendor's version nodes, whose calls answer 35."""
    if (driver := probe(60.0).path) is not None:
        pytest.skip(f"this host has a driver, {driver}, and platform no-driver is for hosts without one")
    options = []
    for number in (12090, 13000):
        path = tmp_path / f"libcudart.so.{number // 1000}"
        nodes = tmp_path / f"{path.name}.map"
        nodes.write_text(f"{path.name} {{ global: cuda*; local: *; }};\n")
        libcudart(path, number, batch=False, extra=DRIVERLESS, options=(f"-Wl,--version-script,{nodes}",))
        options.append(f"--cuda-runtime={path}")
    return options


def test_without_a_driver(pytester: pytest.Pytester, runtimes: list[str]) -> None:
    """Nothing is copied and nothing crashes: the evidence alone tells the same."""
    options = ("--cuda-platform=no-driver", *runtimes, "-k", "test_load_order")
    cells = run(pytester, *options, f"--cuda-implementation={SPECIMEN}")
    assert by_order(cells, "load_order") == LOAD_ORDERS
    assert {cell["verdict"] for cell in cells} == {"passed", "failed"}


def test_the_reference_without_a_driver(pytester: pytest.Pytester, runtimes: list[str]) -> None:
    cells = run(pytester, "--cuda-platform=no-driver", *runtimes, "-k", "two_runtimes")
    assert by_order(cells, "load_order") == dict.fromkeys(LOAD_ORDERS, PASSES)
    assert {cell["verdict"] for cell in cells} == {"passed"}
