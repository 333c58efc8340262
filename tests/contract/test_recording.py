from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_cudabatch.abi import CudaVersion
from pytest_cudabatch.contract import (
    Answer,
    Contract,
    ContractAnswer,
    Question,
    Recording,
    RecordingHost,
    Source,
    updated,
)
from pytest_cudabatch.errors import UsageError

VALID, ZERO = Question("valid", "cudaMemcpyBatchAsync"), Question("count-zero", "cudaMemcpyBatchAsync")
HOST = RecordingHost("device", CudaVersion(13, 0), "580.159.04", ("NVIDIA H200",), "x86_64")
RECORDING = Recording(
    "2026-01-31",
    HOST,
    {
        "12.9.79": {VALID: Answer(code=0, fail_index="max"), ZERO: Answer(lost="no context")},
        "13.0.96": {VALID: Answer(code=0), Question("gone", "cudaMemcpyBatchAsync"): Answer(code=0)},
    },
)
EARLIER = Source("earlier", CudaVersion(13, 0), "assumed", "a report")
ELSEWHERE = Source("elsewhere", CudaVersion(13, 5), "observed", "B200, driver 615.1")


def test_text_is_json_and_reads_back(tmp_path: Path) -> None:
    path = tmp_path / "recording.json"
    path.write_text(RECORDING.text(), encoding="utf-8")
    assert Recording.read(path) == RECORDING
    assert json.loads(RECORDING.text()) == RECORDING.to_json()
    assert RECORDING.to_json()["host"] == {
        "platform": "device",
        "machine": "x86_64",
        "driver": "13.0",
        "driver_release": "580.159.04",
        "gpus": ["NVIDIA H200"],
    }


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"schema": "x"}', RECORDING.text().replace('"code"', '"kode"')]
)
def test_anything_else_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "recording.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match="not a recording of the contract"):
        Recording.read(path)


def test_update_replaces_what_was_asked_again_and_keeps_the_rest() -> None:
    old = Contract(
        (
            ContractAnswer(VALID, "12.9.79", Answer(code=1), EARLIER),
            ContractAnswer(ZERO, "12.9.79", Answer(code=1), EARLIER),
            ContractAnswer(VALID, "12.9.79", Answer(code=801), ELSEWHERE),
        )
    )
    source = Source("h200-580-159-04-2026-01-31", CudaVersion(13, 0), "observed", "H200, driver 580.159.04")
    assert updated(old, RECORDING, None).answers == (
        ContractAnswer(ZERO, "12.9.79", Answer(code=1), EARLIER),
        ContractAnswer(VALID, "12.9.79", Answer(code=801), ELSEWHERE),
        ContractAnswer(VALID, "12.9.79", Answer(code=0, fail_index="max"), source),
        ContractAnswer(VALID, "13.0.96", Answer(code=0), source),
    )


def test_update_names_the_recordings_file() -> None:
    file = "observed/contract/h200-580.159.04-2026-01-31.json"
    (first, *_) = updated(Contract(()), RECORDING, file).answers
    assert (first.source.name, first.source.file) == (
        "h200-580-159-04-2026-01-31",
        file,
    )


def test_simulated_answers_fill_in_what_nobody_knows() -> None:
    known = ContractAnswer(VALID, "12.9.79", Answer(code=1), EARLIER)
    simulated = replace(RECORDING, host=replace(HOST, platform="simulated"))
    filled = updated(Contract((known,)), simulated, None)
    assert known in filled.answers
    assert [(each.question, each.release, each.source.basis) for each in filled.answers[1:]] == [
        (VALID, "13.0.96", "assumed")
    ]
    assert updated(filled, simulated, None) == filled
    observed = updated(filled, RECORDING, None)
    assert {each.source.basis for each in observed.answers} == {"observed"}


def test_libraries_without_a_driver_answer_nothing() -> None:
    without = replace(RECORDING, host=replace(HOST, platform="no-driver"))
    with pytest.raises(UsageError, match="whose libraries copy nothing"):
        updated(Contract(()), without, None)


def test_a_runtime_without_a_patch_level_is_refused() -> None:
    coarse = replace(RECORDING, runtimes={"12.9": {}})
    with pytest.raises(UsageError) as raised:
        updated(Contract(()), coarse, None)
    assert str(raised.value) == "the recording does not tell the exact release of runtime 12.9"
