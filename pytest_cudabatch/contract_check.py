"""The contract beside what the libraries of this cell answer."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_cudabatch.contract import Answer, Contract, ContractAnswer, Question
    from pytest_cudabatch.contract.bench import Bench

__all__ = ["ContractCheck", "known_contract"]


@functools.cache
def known_contract() -> Contract:
    """Return the packaged contract; read once, in a zygote before the forks of the cells that need it."""
    from pytest_cudabatch.contract import load_contract  # noqa: PLC0415 - only where a cell asks for it

    return load_contract()


class ContractCheck:
    """The ``cuda_contract`` fixture: what this pairing's own libraries answer, beside what is known of them.

    A row is a call and an entry a function that it is put to, by their names in docs/contract.md. ``known``
    holds what real libraries of these versions answered, or a header says; what is assumed is not in it.
    """

    def __init__(self, bench: Bench, known: dict[Question, ContractAnswer]) -> None:
        self._bench = bench
        self._known = known

    def known(self, row: str) -> dict[str, Answer]:
        """Return the contract's answers to ``row``, by entry. Raises ValueError where it has none."""
        found = {question.entry: each.answer for question, each in self._known.items() if question.row == row}
        if not found:
            raise ValueError(f"the contract has no answer to {row!r} on this pairing")
        return found

    def answer(self, row: str, entry: str) -> Answer:
        """Put ``row`` to ``entry`` in this process. Raises ValueError for a row that may end the process."""
        from pytest_cudabatch.contract import Question  # noqa: PLC0415 - in the cell only
        from pytest_cudabatch.contract.replies import reply  # noqa: PLC0415 - in the cell only

        question = Question(row, entry)
        if question.alone:
            raise ValueError(f"{row!r} may end the process; ask it by: cudabatch probe --contract")
        return reply(self._bench, question)

    def differences(self, *rows: str) -> list[str]:
        """Put each row to every batch function that the contract has an answer of; return where they differ.

        Single copies are left out: in this cell's evidence they would be a fallback.
        """
        from pytest_cudabatch.contract.entries import entry_of  # noqa: PLC0415 - in the cell only

        found = []
        for row in rows:
            for entry, expected in self.known(row).items():
                if entry_of(entry).shape == "copy":
                    continue
                actual = self.answer(row, entry)
                if not expected.agrees_with(actual):
                    found.append(f"{row}, {entry}: expected {expected}, got {actual}")
        return found
