"""What a library answered to one call, or what the contract says that it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

__all__ = ["Answer"]


@dataclass(frozen=True)
class Answer:
    """One answer. A part that is None was not asked, does not exist for the call, or is not stated.

    How the call ended is exactly one of: ``code`` (what it returned), ``signal`` (the name of the signal
    that ended the process), ``hung`` (it did not return in time), ``missing`` (the library lacks the function
    of that name, which the row needs), ``lost`` (the asking itself failed, for the reason that it gives).

    * ``fail_index``: what the call left in failIdx: ``"max"`` (SIZE_MAX), ``"untouched"``, or an index.
    * ``last_error``: cudaGetLastError right afterwards, for functions of the runtime.
    * ``sync``: cudaDeviceSynchronize after that.
    * ``copied``: how many of the batch's copies have arrived then.
    * ``end_capture``, ``nodes``: cudaStreamEndCapture's code, and how many nodes the graph has.
    * ``replayed``: how many copies had arrived when the graph had run, in bytes written after the capture.
    * ``found``: for look-ups, the exported name of the function that was handed out; ``"nothing"`` for NULL.
    """

    code: int | None = None
    signal: str | None = None
    hung: bool | None = None
    missing: str | None = None
    lost: str | None = None
    fail_index: int | str | None = None
    last_error: int | None = None
    sync: int | None = None
    copied: int | None = None
    end_capture: int | None = None
    nodes: int | None = None
    replayed: int | None = None
    found: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the stated parts as JSON data, in the order of the fields."""
        parts = ((field.name, getattr(self, field.name)) for field in fields(self))
        return {name: value for name, value in parts if value is not None}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Answer:
        """Read ``to_json``'s form back. Raises ValueError that says what is wrong with it."""
        if problems := _problems(data):
            raise ValueError("; ".join(problems))
        return cls(**data)

    def agrees_with(self, other: Answer) -> bool:
        """Whether ``other`` is the same in every part that this answer states."""
        theirs = other.to_json()
        return all(theirs.get(name) == value for name, value in self.to_json().items())

    def __str__(self) -> str:
        """Return the answer in the words of the tables and of differences."""
        if self.signal:
            return self.signal
        if self.hung:
            return "does not return"
        if self.missing:
            return f"no {self.missing}"
        if self.lost:
            return f"not asked: {self.lost}"
        parts = [("failIdx", {"max": "SIZE_MAX"}.get(str(self.fail_index), self.fail_index))]
        parts += [("last error", self.last_error), ("sync", self.sync), ("copied", self.copied)]
        parts += [("EndCapture", self.end_capture), ("nodes", self.nodes)]
        parts += [("replayed", self.replayed), ("gives", self.found)]
        return ", ".join([str(self.code), *(f"{name} {value}" for name, value in parts if value is not None)])


_ENDS = ("code", "signal", "hung", "missing", "lost")
_TEXTS = {"signal", "missing", "lost", "found"}


def _problems(data: Mapping[str, Any]) -> list[str]:
    known = {field.name for field in fields(Answer)}
    problems = [f"{name}: unknown key" for name in sorted(data.keys() - known)]
    problems += [
        f"{name}: cannot be {data[name]!r}"
        for name in sorted(data.keys() & known)
        if not _is_of_its_kind(name, data[name])
    ]
    if sum(name in data for name in _ENDS) != 1:
        problems.append(f"must have exactly one of {', '.join(_ENDS)}")
    return problems


def _is_of_its_kind(name: str, value: object) -> bool:
    if name in _TEXTS:
        return isinstance(value, str) and value != ""
    if name == "hung":
        return value is True
    if name == "fail_index" and value in {"max", "untouched"}:
        return True
    return type(value) is int and value >= 0
