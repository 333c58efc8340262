"""The contract: what real libraries answer, each answer with where it is known from."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from pytest_cudabatch.abi import CudaVersion
from pytest_cudabatch.contract.answers import Answer
from pytest_cudabatch.contract.questions import Question

__all__ = ["Contract", "ContractAnswer", "Difference", "Source", "differences"]

Basis = Literal["observed", "header", "assumed"]


@dataclass(frozen=True)
class Source:
    """A ``[source.<name>]``: who answered. ``driver`` is the CUDA version that the driver reports.

    ``file`` is the recording, relative to the contract's file, where there is one.
    """

    name: str
    driver: CudaVersion
    basis: Basis
    text: str
    file: str | None = None


@dataclass(frozen=True)
class ContractAnswer:
    """The answer to one question by one runtime (its exact ``release``) on the source's driver."""

    question: Question
    release: str
    answer: Answer
    source: Source

    @property
    def runtime(self) -> CudaVersion:
        """The runtime's CUDA version."""
        return CudaVersion.parse(self.release)


@dataclass(frozen=True)
class Contract:
    """All answers, in the order of the file."""

    answers: tuple[ContractAnswer, ...]

    @property
    def releases(self) -> tuple[str, ...]:
        """The runtimes that it has answers of, oldest first."""
        return tuple(sorted({answer.release for answer in self.answers}, key=release_order))

    @property
    def drivers(self) -> tuple[CudaVersion, ...]:
        """The drivers that it has answers of, oldest first."""
        return tuple(sorted({answer.source.driver for answer in self.answers}))

    def of(self, release: str, driver: CudaVersion) -> dict[Question, ContractAnswer]:
        """Return what is known of a runtime on a driver.

        That of the exact release counts; where there is none, that of the newest release with the same major
        and minor version, since a patch level has not been seen to change an answer.
        """
        version = CudaVersion.parse(release)
        near = {
            known for known, on in self._by_pairing if on == driver and CudaVersion.parse(known) == version
        }
        if not near:
            return {}
        return self._by_pairing[release if release in near else max(near, key=release_order), driver]

    def exactly(self, release: str, driver: CudaVersion) -> Mapping[Question, ContractAnswer]:
        """Return what that very release answered on a driver."""
        return self._by_pairing.get((release, driver), {})

    @cached_property
    def _by_pairing(self) -> dict[tuple[str, CudaVersion], dict[Question, ContractAnswer]]:
        found: dict[tuple[str, CudaVersion], dict[Question, ContractAnswer]] = {}
        for answer in self.answers:
            found.setdefault((answer.release, answer.source.driver), {})[answer.question] = answer
        return found


@dataclass(frozen=True)
class Difference:
    """A runtime that answered otherwise than the contract says."""

    release: str
    driver: CudaVersion
    expected: ContractAnswer
    actual: Answer

    def __str__(self) -> str:
        """Return one line for people."""
        question = self.expected.question
        return (
            f"{self.release} on {self.driver}: {question.row}, {question.entry}: "
            f"expected {self.expected.answer} ({self.expected.source.text}), got {self.actual}"
        )


def differences(
    contract: Contract, release: str, driver: CudaVersion, answers: dict[Question, Answer]
) -> Iterator[Difference]:
    """Yield where ``answers`` differ from what the contract states."""
    known = contract.of(release, driver)
    for question, actual in answers.items():
        expected = known.get(question)
        if expected is not None and not expected.answer.agrees_with(actual):
            yield Difference(release, driver, expected, actual)


def is_release(text: str) -> bool:
    """Whether ``text`` is an exact release, with its patch level."""
    return re.fullmatch(r"\d+\.\d+\.\d+", text) is not None


def release_order(release: str) -> tuple[int, ...]:
    """Return the release as numbers, to sort by."""
    return tuple(int(part) for part in release.split("."))
