from __future__ import annotations

import random
from pathlib import Path

import pytest

from pytest_cudabatch.abi import CudaVersion
from pytest_cudabatch.contract import (
    Answer,
    Contract,
    ContractAnswer,
    Question,
    Recording,
    Source,
    contract_text,
    differences,
    load_contract,
    packaged_contract,
    page,
    updated,
)
from pytest_cudabatch.errors import UsageError

REPOSITORY = Path(__file__).parents[2]
SOURCE = Source("gpu", CudaVersion(13, 0), "observed", "A GPU, driver 580.1")
BATCH, OTHER = "cudaMemcpyBatchAsync", "cuMemcpyBatchAsync"

TEXT = """\
schema = 1

[source.gpu]
driver = "13.0"
basis = "observed"
text = "A GPU, driver 580.1"

[[answer]]
row = "valid"
entries = ["cudaMemcpyBatchAsync", "cuMemcpyBatchAsync"]
runtimes = ["12.8.90", "12.9.79"]
source = "gpu"
answer = { code = 0, fail_index = "max" }
"""


def known(row: str, entry: str, release: str, **parts: object) -> ContractAnswer:
    return ContractAnswer(Question(row, entry), release, Answer(**parts), SOURCE)  # type: ignore[arg-type]


CONTRACT = Contract(
    tuple(
        known("valid", entry, release, code=0, fail_index="max")
        for entry in (BATCH, OTHER)
        for release in ("12.8.90", "12.9.79")
    )
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "contract.toml"
    path.write_text(TEXT, encoding="utf-8")
    return path


def test_reads_every_answer(file: Path) -> None:
    assert load_contract(file) == CONTRACT


def test_equal_answers_become_one_entry_whatever_their_order(file: Path) -> None:
    shuffled = list(CONTRACT.answers)
    random.Random(1).shuffle(shuffled)
    text = contract_text(Contract(tuple(shuffled)))
    assert text[text.index("schema = 1") :] == TEXT


def test_written_text_reads_back(tmp_path: Path) -> None:
    mixed = (
        *CONTRACT.answers,
        known("valid", BATCH, "13.0.96", code=0),
        known("wrong-parameter-list", BATCH, "13.0.96", signal="SIGSEGV"),
        known("captured-global", BATCH, "12.9.79", code=900, end_capture=0, nodes=0),
    )
    path = tmp_path / "contract.toml"
    path.write_text(contract_text(Contract(mixed)), encoding="utf-8")
    assert set(load_contract(path).answers) == set(mixed)


def test_packaged_contract_is_as_the_tool_writes_it() -> None:
    text = packaged_contract().read_text(encoding="utf-8")
    assert contract_text(load_contract()) == text
    assert (REPOSITORY / "matrix" / "contract.toml").read_text(encoding="utf-8") == text


@pytest.mark.parametrize(
    "file", sorted((packaged_contract().parent / "observed" / "contract").glob("*.json"))
)
def test_packaged_contract_holds_every_answer_of_a_recording(file: Path) -> None:
    contract, recording = load_contract(), Recording.read(file)
    name = file.relative_to(packaged_contract().parent).as_posix()
    assert set(updated(contract, recording, name).answers) == set(contract.answers)
    known = [answer for answer in contract.answers if answer.source.file == name]
    assert len(known) == sum(map(len, recording.runtimes.values())) >= 150


def test_committed_page_is_the_contracts() -> None:
    """To write it anew: cudabatch probe --contract --page matrix/contract.toml docs/contract.md."""
    committed = (REPOSITORY / "docs" / "contract.md").read_text(encoding="utf-8")
    assert committed == page(load_contract())


def test_all_problems_are_told_at_once(file: Path) -> None:
    file.write_text(
        """\
schema = 1
sauce = 1

[source.gpu]
driver = "13.0.1"
basis = "guessed"
file = "not-there.json"

[source.good]
driver = "13.0"
basis = "header"
text = "cuda.h"

[[answer]]
row = "invalid"
entries = ["cudaMemcpyBatchAsync", "cudaMemcpyNow"]
runtimes = "12.9.79"
source = "best"
answer = { code = 0, signal = "SIGSEGV" }

[[answer]]
row = "fail-index-null"
entries = ["cudaMemcpyBatchAsync"]
runtimes = ["13.0.96", "12.9"]
source = "good"

[[answer]]
row = "fail-index-null"
entries = ["cudaMemcpyBatchAsync"]
runtimes = ["13.0.96"]
source = "good"
answer = { code = 0 }

[[answer]]
row = "valid"
entries = ["cudaMemcpyBatchAsync", "cudaMemcpyBatchAsync"]
runtimes = ["13.0.96"]
source = "good"
answer = { code = 0 }
""",
        encoding="utf-8",
    )
    with pytest.raises(UsageError) as raised:
        load_contract(file)
    assert raised.value.problems == tuple(
        f"{file}: {problem}"
        for problem in (
            "sauce: unknown key",
            "source.gpu: driver: must be a CUDA version, major.minor, not '13.0.1'",
            "source.gpu: basis: must be observed or header or assumed, not 'guessed'",
            "source.gpu: text: is missing",
            "source.gpu: file: must be a file there is, not 'not-there.json'",
            "answer 1: row: must be a row, see docs/contract.md, not 'invalid'",
            "answer 1: source: must be the name of a [source], not 'best'",
            "answer 1: entries: 'cudaMemcpyNow' is not an entry",
            "answer 1: runtimes: must be a list that is not empty",
            "answer 1: answer: must have exactly one of code, signal, hung, missing, lost",
            "answer 2: runtimes: '12.9' is not a release such as 12.9.79",
            "answer 2: answer: must be a table such as { code = 0 }",
            "answer 3: entries: fail-index-null is not put to cudaMemcpyBatchAsync with runtime 13.0.96",
            "answer: valid, cudaMemcpyBatchAsync with runtime 13.0.96 on driver 13.0 is there twice",
        )
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("schema = 2", "schema: must be 1, the only one that this version reads"),
        ("schema = 1\nsource = 1", "source: must be tables, [source.NAME]"),
        ("schema = 1\nanswer = 1", "answer: must be an array of tables, [[answer]]"),
        ("schema =", "Invalid value (at end of document)"),
    ],
)
def test_what_is_no_contract_at_all(file: Path, text: str, problem: str) -> None:
    file.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError) as raised:
        load_contract(file)
    assert raised.value.problems == (f"{file}: {problem}",)


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as raised:
        load_contract(tmp_path / "none.toml")
    assert str(raised.value) == f"{tmp_path}/none.toml: No such file or directory"


DRIVER = CudaVersion(13, 0)
QUESTION = Question("valid", BATCH)


@pytest.mark.parametrize("release", ["12.9.79", "12.9.37", "12.9"])
def test_a_release_is_held_against_its_own_or_a_near_one(release: str) -> None:
    (difference,) = differences(CONTRACT, release, DRIVER, {QUESTION: Answer(code=1)})
    assert str(difference) == (
        f"{release} on 13.0: valid, cudaMemcpyBatchAsync: "
        "expected 0, failIdx SIZE_MAX (A GPU, driver 580.1), got 1"
    )


def test_what_the_contract_does_not_state_is_no_difference() -> None:
    right = Answer(code=0, fail_index="max", last_error=0, sync=0)
    assert list(differences(CONTRACT, "12.9.79", DRIVER, {QUESTION: right})) == []
    wrong = {QUESTION: Answer(code=1)}
    assert list(differences(CONTRACT, "13.0.96", DRIVER, wrong)) == []
    assert list(differences(CONTRACT, "12.9.79", CudaVersion(13, 5), wrong)) == []
