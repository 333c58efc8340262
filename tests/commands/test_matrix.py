from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_cudabatch.commands import main


def test_all_pairings(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["matrix", "--json"]) == 0
    pairings = json.loads(capsys.readouterr().out)["pairings"]
    assert len(pairings) == 36
    paths = {pairing["id"]: pairing["reference"] for pairing in pairings}
    assert {id_ for id_, path in paths.items() if path == "fallback"} == {
        "cu12.6-d12.4",
        "cu12.8-d12.4",
        "cu12.9-d12.4",
    }
    assert set(paths.values()) == {"batch", "fallback"}


def test_one_pairing_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["matrix", "--json", "--select", "runtime==12.6 on driver==12.8"]) == 0
    (pairing,) = json.loads(capsys.readouterr().out)["pairings"]
    assert {name: value for name, value in pairing.items() if name not in {"basis", "source"}} == {
        "id": "cu12.6-d12.8",
        "runtime": {"version": "12.6", "abi": "v12080", "exports_batch": False},
        "driver": {"version": "12.8"},
        "routes": {"runtime": False, "driver": True},
        "reference": "batch",
    }


OWN_MATRIX = {
    "runtimes.toml": """
schema = 1
[[runtime]]
version = "14.1"
abi = "v13000"
exports_batch = true
basis = "assumed"
source = "none"
""",
    "drivers.toml": """
schema = 1
[[driver]]
version = "14.2"
exports = ["cuMemcpyBatchAsync", "cuMemcpyBatchAsync_v2"]
basis = "assumed"
source = "none"
""",
    "pairings.toml": """
schema = 1
[[legal]]
runtime = ">=14"
driver = ">=14"
basis = "assumed"
source = "an announcement"
""",
}


@pytest.fixture
def own_matrix(tmp_path: Path) -> Path:
    for name, content in OWN_MATRIX.items():
        (tmp_path / name).write_text(content)
    return tmp_path


def test_a_projects_own_pairing_as_a_table(own_matrix: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It need not be simulated to be printed."""
    assert main(["matrix", "--matrix-dir", str(own_matrix), "--select", "runtime>=14"]) == 0
    assert capsys.readouterr().out == (
        "pairing       runtime route  driver route  reference  basis    source\n"
        "cu14.1-d14.2  yes            yes           batch      assumed  an announcement\n"
    )


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--matrix-dir", "/none"], "--matrix-dir: there is no directory '/none'"),
        (
            ["--select", "driver>=580"],
            "--select: the selection does not parse: 580 is a driver release; a driver is selected by the "
            "CUDA version that it reports, such as driver>=13.0 "
            "(write it like 'runtime>=12.8,<13 on driver>=13')\n"
            "  driver>=580\n"
            "        ^",
        ),
    ],
)
def test_bad_input(arguments: list[str], error: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["matrix", *arguments]) == 4
    assert capsys.readouterr() == ("", f"cudabatch: {error}\n")


@pytest.mark.parametrize("form", [[], ["--json"]], ids=["table", "json"])
def test_a_selection_of_nothing_is_told(form: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["matrix", *form, "--select", "runtime>=99"]) == 1
    assert capsys.readouterr() == ("", "cudabatch: --select: no pairing matches 'runtime>=99'\n")
