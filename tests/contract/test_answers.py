from __future__ import annotations

import re

import pytest

from pytest_cudabatch.contract import Answer

ANSWERS = [
    Answer(code=0, fail_index="max", last_error=0, sync=0, copied=1),
    Answer(code=1, fail_index=1, last_error=1, sync=0, copied=0),
    Answer(code=900, end_capture=0, nodes=0),
    Answer(code=1, found="nothing"),
    Answer(signal="SIGSEGV"),
    Answer(hung=True),
    Answer(missing="cudaHostRegister"),
    Answer(lost="no context"),
]


@pytest.mark.parametrize("answer", ANSWERS, ids=str)
def test_json_brings_back_the_answer(answer: Answer) -> None:
    assert Answer.from_json(answer.to_json()) == answer


def test_json_has_only_what_is_stated() -> None:
    assert Answer(code=0, fail_index=0).to_json() == {"code": 0, "fail_index": 0}


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ({}, "must have exactly one of code, signal, hung, missing, lost"),
        ({"code": 0, "signal": "SIGSEGV"}, "must have exactly one of code, signal, hung, missing, lost"),
        ({"code": True}, "code: cannot be True"),
        ({"code": -1}, "code: cannot be -1"),
        ({"code": 0, "fail_index": "min"}, "fail_index: cannot be 'min'"),
        ({"signal": ""}, "signal: cannot be ''"),
        ({"hung": False}, "hung: cannot be False"),
        ({"code": "0", "codes": 1}, "codes: unknown key; code: cannot be '0'"),
    ],
    ids=str,
)
def test_says_what_is_wrong_with_an_answer(data: dict[str, object], problem: str) -> None:
    with pytest.raises(ValueError, match=re.escape(problem) + "$"):
        Answer.from_json(data)


@pytest.mark.parametrize(
    ("stated", "agrees"),
    [
        (Answer(code=1), True),
        (Answer(code=1, last_error=1), True),
        (Answer(code=1, last_error=0), False),
        (Answer(code=0), False),
        (Answer(signal="SIGSEGV"), False),
        (Answer(code=1, sync=0), False),
    ],
    ids=str,
)
def test_agrees_in_what_it_states(stated: Answer, agrees: bool) -> None:
    assert stated.agrees_with(Answer(code=1, fail_index=0, last_error=1)) is agrees


def test_words_of_an_answer() -> None:
    assert [str(answer) for answer in ANSWERS] == [
        "0, failIdx SIZE_MAX, last error 0, sync 0, copied 1",
        "1, failIdx 1, last error 1, sync 0, copied 0",
        "900, EndCapture 0, nodes 0",
        "1, gives nothing",
        "SIGSEGV",
        "does not return",
        "no cudaHostRegister",
        "not asked: no context",
    ]
