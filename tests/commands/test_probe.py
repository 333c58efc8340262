"""``cudabatch probe`` on simulated libraries and on a host without any."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pytest_cudabatch.abi import CudaVersion
from pytest_cudabatch.commands import main
from pytest_cudabatch.commands import probe as verb
from pytest_cudabatch.contract import (
    Answer,
    Contract,
    ContractAnswer,
    Question,
    Recording,
    RecordingHost,
    Source,
    contract_text,
    load_contract,
    page,
)
from pytest_cudabatch.native import library

RUNTIME = library("simcuda/runtime-13.0/libcudart.so.13")
VALID = Question("valid", "cudaMemcpyBatchAsync")
ZERO = Question("count-zero", "cudaMemcpyBatchAsync")


def cudabatch(
    *arguments: str, driver: str | None = None, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own, on a simulated driver or on none."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("CUDABATCH_")}
    path = str(library(f"simcuda/driver-{driver}/libcuda.so.1").parent) if driver else "/nonexistent"
    return subprocess.run(
        [sys.executable, "-m", "pytest_cudabatch", "probe", *arguments],
        env={**environment, "LD_LIBRARY_PATH": path, **variables},
        cwd="/",
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_tells_the_driver_and_the_runtimes() -> None:
    done = cudabatch("--json", "--runtime", str(RUNTIME), driver="13.0")
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    assert {key: told["driver"][key] for key in ("version", "context", "simulated", "reason")} == {
        "version": "13.0",
        "context": True,
        "simulated": True,
        "reason": "",
    }
    assert [(runtime["release"], runtime["path"]) for runtime in told["runtimes"]] == [("13.0", str(RUNTIME))]


def test_tells_the_same_to_people() -> None:
    done = cudabatch("--runtime", str(RUNTIME), driver="13.0")
    lines = done.stdout.splitlines()
    assert lines[1] == "supports  CUDA 13.0"
    assert lines[-3:] == ["context   can be made", "", f"13.0      v13000  --runtime        {RUNTIME}"]


@pytest.fixture
def toolkit(tmp_path: Path) -> dict[str, str]:
    """The environment of a host with a toolkit, one of whose two runtimes is damaged."""
    libraries = tmp_path / "toolkit" / "lib64"
    libraries.mkdir(parents=True)
    shutil.copy(RUNTIME, libraries)
    (libraries / "libcudart.so.12").write_text("no library")
    return {"CUDA_HOME": str(tmp_path / "toolkit"), "XDG_CACHE_HOME": str(tmp_path)}


def test_tells_where_each_runtime_was_found(toolkit: dict[str, str]) -> None:
    libraries = Path(toolkit["CUDA_HOME"], "lib64")
    problem = f"{libraries}/libcudart.so.12: not a 64-bit little-endian ELF file"
    told = json.loads(cudabatch("--json", driver="13.0", **toolkit).stdout)
    assert {
        "release": "13.0",
        "abi": "v13000",
        "exports_batch": True,
        "source": "simulated",
        "path": f"{libraries}/libcudart.so.13",
        "found_via": "CUDA_HOME",
    } in told["runtimes"]
    assert {
        "path": f"{libraries}/libcudart.so.12",
        "found_via": "CUDA_HOME",
        "problem": problem,
    } in told["unusable"]
    lines = cudabatch(driver="13.0", **toolkit).stdout.splitlines()
    assert f"13.0      v13000  CUDA_HOME        {libraries}/libcudart.so.13" in lines
    assert f"unusable          CUDA_HOME        {problem}" in lines


def test_says_plainly_that_there_is_no_driver() -> None:
    done = cudabatch("--runtime", str(RUNTIME))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("no driver: libcuda could not be loaded: libcuda.so.1: ")
    assert done.stdout.endswith(f"\n\n13.0      v13000  --runtime        {RUNTIME}\n")


def test_asks_every_row_of_a_runtime_and_records_the_answers(tmp_path: Path) -> None:
    """Rows that crash are among them; each question has an answer, and none was lost."""
    file = tmp_path / "recording.json"
    done = cudabatch("--contract", "--json", "--runtime", str(RUNTIME), "--record", str(file), driver="13.0")
    assert done.stderr == ""
    told, recording = json.loads(done.stdout), Recording.read(file)
    answers = recording.runtimes["13.0"]
    assert (told["answers"], told["lost"]) == (len(answers), [])
    assert recording.host.platform == "simulated"
    assert answers[VALID] == Answer(code=0, last_error=0, sync=0, copied=1)
    assert answers[Question("wrong-parameter-list", "cudaMemcpyBatchAsync")] == Answer(signal="SIGSEGV")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--record", "x.json"], "--record goes with --contract"),
        (["--simulated"], "--simulated goes with --contract"),
        (["--update", "a", "b"], "--update goes with --contract"),
        (["--page", "a", "b"], "--page goes with --contract"),
        (["--contract", "--limit", "0"], "--limit and --jobs must be above 0"),
        (["--contract", "--jobs", "0"], "--limit and --jobs must be above 0"),
        (
            ["--contract", "--simulated", "--runtime", str(RUNTIME)],
            "--simulated brings its own runtimes; leave --runtime out",
        ),
    ],
)
def test_refuses_what_makes_no_sense(
    arguments: list[str], error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["probe", *arguments]) == 4
    assert capsys.readouterr() == ("", f"cudabatch: {error}\n")


def test_says_why_there_is_nothing_to_ask() -> None:
    done = cudabatch("--contract", "--runtime", str(RUNTIME))
    assert (done.returncode, done.stdout) == (4, "")
    assert done.stderr.startswith("cudabatch: there is nothing to ask: libcuda could not be loaded: ")


SOURCE = Source("gpu", CudaVersion(13, 0), "observed", "A GPU, driver 580.1")
CONTRACT = Contract((ContractAnswer(VALID, "13.0.96", Answer(code=0), SOURCE),))


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> dict[Question, Answer]:
    """What the libraries answer, to be changed by a test, without asking them."""
    given: dict[Question, Answer] = {VALID: Answer(code=0), ZERO: Answer(code=1)}

    def ask(targets: Any, questions: Any, *, limit: float, jobs: int) -> Any:
        return dict.fromkeys(targets, given)

    monkeypatch.setattr("pytest_cudabatch.contract.ask", ask)
    monkeypatch.setattr("pytest_cudabatch.contract.load_contract", lambda: CONTRACT)
    return given


def test_says_where_a_host_differs(
    answers: dict[Question, Answer], capsys: pytest.CaptureFixture[str]
) -> None:
    answers[VALID] = Answer(signal="SIGSEGV")
    assert main(["probe", "--contract", "--simulated"]) == 1
    assert capsys.readouterr().out == (
        "13.0.96 on 13.0: valid, cudaMemcpyBatchAsync: expected 0 (A GPU, driver 580.1), got SIGSEGV\n"
        "2 answers of 1 runtimes: 1 differ from the contract, 1 are not in it, 0 could not be had\n"
    )


def test_an_answer_that_could_not_be_had_is_no_success(
    answers: dict[Question, Answer], capsys: pytest.CaptureFixture[str]
) -> None:
    answers[ZERO] = Answer(lost="no context")
    assert main(["probe", "--contract", "--simulated", "--json"]) == 1
    assert json.loads(capsys.readouterr().out) == {
        "answers": 2,
        "not_in_contract": 1,
        "lost": ["13.0.96: count-zero, cudaMemcpyBatchAsync: not asked: no context"],
        "differences": [],
    }


def test_equal_answers_are_a_success(
    answers: dict[Question, Answer], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["probe", "--contract", "--simulated"]) == 0
    assert capsys.readouterr().out.count("\n") == 1


def test_update_puts_a_recording_into_the_contract(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    contract, recording = tmp_path / "contract.toml", tmp_path / "observed" / "h200.json"
    contract.write_text(contract_text(CONTRACT), encoding="utf-8")
    host = RecordingHost("device", CudaVersion(13, 0), "580.1", ("NVIDIA H200",), "x86_64")
    recording.parent.mkdir()
    recorded = Recording("2026-01-31", host, {"12.9.79": {ZERO: Answer(code=1, fail_index="max")}})
    recording.write_text(recorded.text(), encoding="utf-8")

    assert main(["probe", "--contract", "--update", str(contract), str(recording)]) == 0
    assert capsys.readouterr().out == f"{contract}: 2 answers, 1 before\n"
    source = Source("h200", CudaVersion(13, 0), "observed", "H200, driver 580.1", "observed/h200.json")
    assert load_contract(contract) == Contract(
        (
            ContractAnswer(VALID, "13.0.96", Answer(code=0), SOURCE),
            ContractAnswer(ZERO, "12.9.79", Answer(code=1, fail_index="max"), source),
        )
    )


def test_page_of_a_contract(tmp_path: Path) -> None:
    contract, file = tmp_path / "contract.toml", tmp_path / "contract.md"
    contract.write_text(contract_text(CONTRACT), encoding="utf-8")
    assert main(["probe", "--contract", "--page", str(contract), str(file)]) == 0
    assert file.read_text(encoding="utf-8") == page(CONTRACT)


def test_a_plain_probe_imports_nothing_of_the_contract() -> None:
    script = (
        "import sys; from pytest_cudabatch.commands import main; main(['probe']); "
        "print([name for name in sys.modules if name.startswith('pytest_cudabatch.contract')])"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd="/", capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
    assert verb.__name__ == "pytest_cudabatch.commands.probe"
