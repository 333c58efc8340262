"""A recording: every answer that a host gave, as JSON, and how it becomes part of the contract."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_cudabatch.abi import CudaVersion
from pytest_cudabatch.contract.answers import Answer
from pytest_cudabatch.contract.contract import Contract, ContractAnswer, Source, is_release
from pytest_cudabatch.contract.entries import ENTRIES
from pytest_cudabatch.contract.questions import ROWS, Question
from pytest_cudabatch.errors import UsageError

__all__ = ["Recording", "RecordingHost", "updated"]

SCHEMA = "pytest-cudabatch/contract/1"


@dataclass(frozen=True)
class RecordingHost:
    """Where answers were given. ``driver`` is what the driver reports, ``driver_release`` its own release."""

    platform: str
    driver: CudaVersion
    driver_release: str | None
    gpus: tuple[str, ...]
    machine: str

    @property
    def text(self) -> str:
        """The host in a few words: ``"H200, driver 580.159.04"``."""
        gpu = self.gpus[0].removeprefix("NVIDIA ") if self.gpus else "no GPU"
        return f"{gpu}, driver {self.driver_release or self.driver}"


@dataclass(frozen=True)
class Recording:
    """All answers of one host on one day; ``runtimes`` by their exact release."""

    date: str
    host: RecordingHost
    runtimes: Mapping[str, Mapping[Question, Answer]]

    def to_json(self) -> dict[str, Any]:
        """Return the recording as JSON data."""
        host = self.host
        return {
            "schema": SCHEMA,
            "date": self.date,
            "host": {
                "platform": host.platform,
                "machine": host.machine,
                "driver": str(host.driver),
                "driver_release": host.driver_release,
                "gpus": list(host.gpus),
            },
            "runtimes": [
                {
                    "release": release,
                    "answers": [
                        {"row": question.row, "entry": question.entry, "answer": answer.to_json()}
                        for question, answer in answers.items()
                    ],
                }
                for release, answers in self.runtimes.items()
            ],
        }

    def text(self) -> str:
        """Return the file's text: JSON, one answer a line."""
        data = self.to_json()
        runtimes = data.pop("runtimes")
        head = json.dumps(data, indent=1)[:-2]
        body = ",\n".join(
            f'  {{"release": {json.dumps(runtime["release"])}, "answers": [\n'
            + ",\n".join(f"   {json.dumps(answer)}" for answer in runtime["answers"])
            + "\n  ]}"
            for runtime in runtimes
        )
        return f'{head},\n "runtimes": [\n{body}\n ]\n}}\n'

    @classmethod
    def read(cls, path: Path) -> Recording:
        """Read a recording's file. Raises UsageError with what is wrong with it."""
        try:
            return cls.from_json(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, KeyError, TypeError, AttributeError, UsageError) as error:
            raise UsageError(f"{path}: not a recording of the contract: {error}") from error

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Recording:
        """Read ``to_json``'s form back.

        Raises KeyError, TypeError, AttributeError, ValueError or UsageError on anything else.
        """
        if data["schema"] != SCHEMA:
            raise ValueError(f"its schema is {data['schema']!r}, not {SCHEMA!r}")
        host = data["host"]
        return cls(
            date=data["date"],
            host=RecordingHost(
                platform=host["platform"],
                driver=CudaVersion.parse(host["driver"]),
                driver_release=host["driver_release"],
                gpus=tuple(host["gpus"]),
                machine=host["machine"],
            ),
            runtimes={
                runtime["release"]: {
                    Question(each["row"], each["entry"]): Answer.from_json(each["answer"])
                    for each in runtime["answers"]
                }
                for runtime in data["runtimes"]
            },
        )


def updated(contract: Contract, recording: Recording, file: str | None) -> Contract:
    """Return ``contract`` with the recording's answers in place of its own for the same runtimes and driver.

    ``file`` is the recording's, relative to the contract's, where it lies beside it. An answer that could not
    be had, and one to a row or entry that there no longer is, is left out. Answers of simulated libraries are
    assumptions, and only fill in what nobody knows. Raises UsageError for other platforms than these two, and
    for runtimes whose patch level is not known.
    """
    host = recording.host
    if host.platform not in {"device", "simulated"}:
        raise UsageError(f"the recording is of platform {host.platform}, whose libraries copy nothing")
    if coarse := [release for release in recording.runtimes if not is_release(release)]:
        raise UsageError(f"the recording does not tell the exact release of runtime {', '.join(coarse)}")
    if host.platform == "simulated":
        return _with_assumptions(contract, recording)
    name = Path(file).stem if file else f"{host.text.replace('driver ', '')}-{recording.date}"
    source = Source(_bare(name), host.driver, "observed", host.text, file)
    new = tuple(_answers(recording, source))
    replaced = {(answer.question, answer.release) for answer in new}
    kept = tuple(
        answer
        for answer in contract.answers
        if answer.source.driver != host.driver or (answer.question, answer.release) not in replaced
    )
    return Contract(kept + new)


def _with_assumptions(contract: Contract, recording: Recording) -> Contract:
    driver = recording.host.driver
    text = "nobody has asked yet; simulated CUDA answers so"
    source = Source(_bare(f"assumed-{driver}"), driver, "assumed", text)
    kept = tuple(answer for answer in contract.answers if answer.source != source)
    known = {(answer.question, answer.release, answer.source.driver) for answer in kept}
    new = (
        answer
        for answer in _answers(recording, source)
        if (answer.question, answer.release, driver) not in known
    )
    return Contract((*kept, *new))


def _answers(recording: Recording, source: Source) -> Iterator[ContractAnswer]:
    entries = {entry.name for entry in ENTRIES}
    for release, answers in recording.runtimes.items():
        for question, answer in answers.items():
            if answer.lost is None and question.row in ROWS and question.entry in entries:
                yield ContractAnswer(question, release, answer, source)


def _bare(text: str) -> str:
    """Return ``text`` as a TOML key that needs no quotes: ``"h200-580-159-04"``."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
