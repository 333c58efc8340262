"""The committed reports of real hosts: each is whole, says where it comes from, and shows what we claim."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from pytest_cudabatch import CudaVersion
from pytest_cudabatch.pairings import load_matrix

OBSERVED = Path(str(files("pytest_cudabatch") / "matrix" / "observed"))
H200 = "h200-580.159.04-2026-11-30.json"

RUNTIMES = {"12.8": "12.8.90", "12.9": "12.9.79", "13.0": "13.0.96", "13.2": "13.2.75", "13.5": "13.5.37"}
CU12, CU13 = ("cu12.8-d13.0", "cu12.9-d13.0"), ("cu13.0-d13.0", "cu13.2-d13.0", "cu13.5-d13.0")

SEEN = {
    "matrix-reference": {},
    "matrix-driver-version": dict.fromkeys(CU12, ("crashed", "SIGSEGV", "wrong-abi", 8, 9)),
    "matrix-dlsym-always-9": dict.fromkeys(CU13, ("crashed", "SIGSEGV", "wrong-abi", 9, 8)),
    "matrix-dlsym-always-8": dict.fromkeys(CU12, ("crashed", "SIGSEGV", "wrong-abi", 8, 9)),
}
"""What each implementation's cells came to on the H200, where they did not pass."""

DRIVER_FAULT = "cudabatch/test_bytes.py::test_bytes_match[h2d-mixed-4096]"
"""One call of 4,096 mixed host-to-device descriptors: this driver segfaults on it although the call is right
(vLLM issue 49276). reference sends 1,024 at most, a specimen all of them."""


def reports() -> list[Path]:
    """Return the suite's reports; the other kinds have their own form and their own tests."""
    return sorted(
        path for kind in ("matrix", "gate", "shipped") for path in OBSERVED.glob(f"{kind}-*/*.json")
    )


def read(path: Path) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return data


@pytest.mark.parametrize("path", reports(), ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_the_name_says_which_host_and_day(path: Path) -> None:
    report = read(path)
    host = report["host"]
    assert report["schema"] == "pytest-cudabatch/report/1"
    assert host["platform"] == "device"
    gpu = host["gpus"][0]["name"].removeprefix("NVIDIA ").lower().replace(" ", "-")
    day = report["run"]["started"].partition("T")[0]
    assert path.name == f"{gpu}-{host['driver_release']}-{day}.json"
    assert report["errors"] == []


def judged(cell: dict[str, Any]) -> tuple[object, ...]:
    finding = cell["finding"]
    return (cell["verdict"], cell["signal"], finding["code"], finding["given"], finding["taken"])


@pytest.mark.parametrize("kind", sorted(SEEN))
def test_what_the_h200_showed(kind: str) -> None:
    cells = read(OBSERVED / kind / H200)["cells"]
    assert {cell["pairing"]: cell["runtime"]["version"] for cell in cells} == {
        f"cu{version}-d13.0": release for version, release in RUNTIMES.items()
    }
    for cell in cells:
        expected: tuple[object, ...] | None = SEEN[kind].get(cell["pairing"])
        if expected is None and kind != "matrix-reference" and cell["case"] == DRIVER_FAULT:
            expected = ("crashed", "SIGSEGV", "crash", 8, 8)
        if expected is None:
            assert (cell["verdict"], cell["path"]) == ("passed", "batch"), cell["nodeid"]
        else:
            assert judged(cell) == expected, cell["nodeid"]


def test_reference_passes_the_whole_gate_on_the_h200() -> None:
    cells = read(OBSERVED / "gate-reference" / H200)["cells"]
    skipped = {cell["case"] for cell in cells if cell["verdict"] == "skipped"}
    assert skipped == {"cudabatch/test_contexts.py::test_another_device_is_current"}  # the host has one GPU
    assert {cell["verdict"] for cell in cells if cell["case"] not in skipped} == {"passed"}
    assert {cell["pairing"] for cell in cells} == {f"cu{version}-d13.0" for version in RUNTIMES}
    kinds = (1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12, 15, 16, 17, 18, 19, 22, 23, 24, 25, 26)
    assert {cell["kind"] for cell in cells} == {"bytes", *(f"F{number}" for number in kinds)}


def the_cell(kind: str, case: str, implementation: str) -> dict[str, Any]:
    (cell,) = (
        cell
        for cell in read(OBSERVED / kind / H200)["cells"]
        if cell["case"] == f"cudabatch/{case}" and cell["implementation"] == implementation
        if cell["verdict"] != "skipped"
    )
    return cell


def test_sglang_kernel_with_a_second_runtime_on_the_h200() -> None:
    """The accepted mend asks the runtime that it was linked with, and dlsym gives the one loaded first."""
    case = "test_two_runtimes.py::test_the_other_major_was_loaded_first[global]"
    cell = the_cell("shipped-two-runtimes", case, "sgl-kernel")
    assert judged(cell) == ("crashed", "SIGSEGV", "split-owner", 8, 9)
    assert Path(cell["finding"]["caller"]["file"]).name == "common_ops.abi3.so"
    assert Path(cell["finding"]["callee"]["file"]).name == "libcudart.so.12"


def test_vllms_reported_batch_on_the_h200() -> None:
    """vLLM issue 49276: 51,828 mixed descriptors in one call, and the same ones one by one."""
    cell = the_cell("shipped-reported-batch", "test_large.py::test_the_reported_batch[h2d]", "vllm")
    assert judged(cell) == ("crashed", "SIGSEGV", "driver-fault", 9, 9)
    assert cell["finding"]["control"] == {"runs": 5, "right": 5, "valid": 5}
    assert Path(cell["finding"]["fault"]["file"]).name == "libcuda.so.580.159.04"
    other = the_cell("shipped-reported-batch", "test_large.py::test_the_reported_batch[d2h]", "vllm")
    assert (other["verdict"], other["path"]) == ("passed", "batch")


@pytest.mark.parametrize(
    ("kind", "right", "wrong"),
    [("gate-driver-version", CU13, CU12), ("gate-dlsym-always-9", CU12, CU13)],
)
def test_the_drivers_fault_is_known_and_the_wrong_call_is_not_excused(
    kind: str, right: tuple[str, ...], wrong: tuple[str, ...]
) -> None:
    """The same batch of 4,096 mixed copies that crashed in another run left a lost context in this one."""
    cells = [cell for cell in read(OBSERVED / kind / H200)["cells"] if cell["case"] == DRIVER_FAULT]
    assert {cell["pairing"] for cell in cells} == {*right, *wrong}
    for cell in cells:
        if cell["pairing"] in right:
            assert (cell["verdict"], cell["known_issue"], cell["pytest"]) == (
                "crashed",
                "mixed-h2d-batch",
                "xfailed",
            )
            assert cell["finding"]["summary"].endswith("cudaStreamSynchronize returned CUDA error 719")
        else:
            assert (cell["known_issue"], cell["pytest"]) == (None, "failed")
            assert cell["finding"]["code"] == "wrong-abi"


def test_the_diagnosis_of_the_original_bug() -> None:
    cells = read(OBSERVED / "matrix-driver-version" / H200)["cells"]
    named = {
        tuple(Path(cell["finding"][side]["file"]).name for side in ("caller", "callee"))
        for cell in cells
        if cell["finding"] and cell["finding"]["code"] == "wrong-abi"
    }
    assert named == {("libspecimen-driver-version.so", "libcudart.so.12")}


def test_the_matrix_calls_observed_what_lies_here() -> None:
    matrix = load_matrix()
    observed = {
        f"cu{runtime.version}-d{driver.version}"
        for runtime, driver, basis in matrix.legal_pairs()
        if basis == "observed"
    }
    assert observed == {cell["pairing"] for cell in read(OBSERVED / "matrix-reference" / H200)["cells"]}
    assert matrix.basis(CudaVersion(12, 9), CudaVersion(13, 0)) == "observed"


@pytest.mark.parametrize("kind", sorted(SEEN))
def test_observed_cells_are_cells_of_this_version(kind: str) -> None:
    """A case that was renamed or dropped would leave its observation without a meaning."""
    for cell in read(OBSERVED / kind / H200)["cells"]:
        file, _, name = cell["case"].partition("::")
        source = Path(str(files("pytest_cudabatch") / "conformance"), file.rpartition("/")[2])
        assert f"def {name.partition('[')[0]}(" in source.read_text(encoding="utf-8")
