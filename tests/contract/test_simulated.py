"""The simulated libraries answer as the contract says, to everything that it has an answer to."""

from __future__ import annotations

import pytest

from pytest_cudabatch.contract import Target, ask, differences, load_contract, simulated_targets
from pytest_cudabatch.pairings import load_matrix

CONTRACT = load_contract()
TARGETS = simulated_targets(load_matrix(), CONTRACT)


def test_every_runtime_and_driver_of_the_contract_is_simulated() -> None:
    assert {(target.release, target.driver) for target in TARGETS} == {
        (answer.release, answer.source.driver) for answer in CONTRACT.answers
    }


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: f"{target.release}-on-{target.driver}")
def test_answers_as_the_contract_says(target: Target) -> None:
    expected = CONTRACT.of(target.release, target.driver)
    answers = ask([target], {target: list(expected)}, limit=20.0, jobs=2)[target]
    found = list(differences(CONTRACT, target.release, target.driver, answers))
    assert [str(each) for each in found] == []
    assert set(answers) == set(expected)
