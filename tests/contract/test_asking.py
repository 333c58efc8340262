"""Which process is asked what, and what its end means; the processes are real, what they ask is not."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType, SimpleNamespace

import pytest

from pytest_cudabatch.abi import BatchAbi, CudaVersion
from pytest_cudabatch.contract import Answer, Question, Target, ask, asking, questions

ROWS = ("one", "two", "three", "crash", "crash-in-company", "hang", "exit", "lost", "spoil", "alone")


@pytest.fixture(autouse=True)
def fake_child(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "_CHILD", Path(__file__).with_name("fake_child.py"))
    rows = {name: SimpleNamespace(alone=name == "alone") for name in ROWS}
    monkeypatch.setattr(questions, "ROWS", MappingProxyType(rows))


def ask_rows(*rows: str, name: str = "library", limit: float = 10.0) -> dict[str, Answer]:
    target = Target("13.0.96", BatchAbi.V13000, Path("/", name), CudaVersion(13, 0))
    answers = ask([target], {target: [Question(row, "f") for row in rows]}, limit=limit, jobs=2)
    return {question.row: answer for question, answer in answers[target].items()}


def test_questions_share_a_process() -> None:
    assert ask_rows("one", "two", "three") == dict.fromkeys(("one", "two", "three"), Answer(code=3))


def test_order_is_that_of_the_questions() -> None:
    assert list(ask_rows("alone", "one", "two").items()) == [
        ("alone", Answer(code=1)),
        ("one", Answer(code=2)),
        ("two", Answer(code=2)),
    ]


def test_a_crash_costs_one_question() -> None:
    assert ask_rows("one", "crash", "two", "three") == {
        "one": Answer(code=4),
        "crash": Answer(signal="SIGSEGV"),
        "two": Answer(code=2),
        "three": Answer(code=2),
    }


def test_a_crash_of_the_first_and_of_the_last() -> None:
    found = ask_rows("crash", "one", "exit")
    assert (found["crash"], found["one"]) == (Answer(signal="SIGSEGV"), Answer(code=2))


def test_a_crash_is_believed_only_when_it_happens_alone() -> None:
    assert ask_rows("one", "crash-in-company")["crash-in-company"] == Answer(code=1)


def test_a_hang_is_an_answer() -> None:
    assert ask_rows("one", "hang", "two", limit=1.0) == {
        "one": Answer(code=3),
        "hang": Answer(hung=True),
        "two": Answer(code=1),
    }


def test_an_end_without_an_answer_is_told_with_its_last_words() -> None:
    assert ask_rows("exit") == {"exit": Answer(lost="the process ended with status 1: cannot go on")}


def test_what_could_not_be_put_is_tried_again_alone_and_told() -> None:
    assert ask_rows("one", "lost", "two") == {
        "one": Answer(code=3),
        "lost": Answer(lost="set-up failed"),
        "two": Answer(code=1),
    }


def test_after_a_spoilt_process_the_rest_is_asked_in_others() -> None:
    assert ask_rows("spoil", "one", "two", "three") == {
        "spoil": Answer(code=4),
        "one": Answer(code=1),
        "two": Answer(code=2),
        "three": Answer(code=2),
    }


def test_a_process_that_never_gets_ready_loses_all_of_its_questions() -> None:
    assert ask_rows("one", "two", name="never-ready") == dict.fromkeys(
        ("one", "two"), Answer(lost="no device")
    )
