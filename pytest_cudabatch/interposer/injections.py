"""Injection by request: which calls are answered by a rule instead of the real function, and with what.

Grammar: rule (";" rule)*, where a rule is TARGET ["@" N ["+"]] "=" EFFECT. Only rules about ``batch`` look at
calls by anybody, since a libcudart then sees the code and keeps it as its last error; all others look at
calls by the code under test. ``lookup`` is about look-ups of batch functions, by dlsym and dlvsym too; a
look-up function named by itself is about every name that it is asked for.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NoReturn

from pytest_cudabatch.errors import EvidenceError, UsageError
from pytest_cudabatch.interposer.layout import (
    EVIDENCE_DLSYM,
    FUNCTIONS,
    RULE_BATCH_NAME,
    RULE_FINDS_NULL,
    RULE_RETURNS_CODE,
    RULE_UNDER_TEST,
    EvidenceRule,
)

__all__ = ["AppliedInjection", "Injection", "applied_injection", "parse_injections", "rule_of"]

_EXAMPLE = "batch@2=801; lookup=null"
_EVERY_LATER_ONE = 2**64 - 1
_LARGEST_CODE = 2**31 - 1
_LARGEST_NUMBER = 10**9
_LOOKUP = re.compile(r"cuGetProcAddress.*|cudaGetDriverEntryPoint.*")


@dataclass(frozen=True)
class _Target:
    """What a rule's first word means: bits of function numbers, and conditions on the call."""

    functions: int
    conditions: int = RULE_UNDER_TEST
    finds: bool = False
    """Whether these are look-ups, which can find nothing."""


def _functions(pattern: str) -> int:
    return sum(1 << number for number, name in enumerate(FUNCTIONS) if re.fullmatch(pattern, name))


_TARGETS = {
    "batch": _Target(_functions(r"cuMemcpyBatchAsync.*"), conditions=0),
    "per-copy": _Target(_functions(r"cu(da)?Memcpy(HtoD|DtoH|DtoD)?Async.*")),
    "lookup": _Target(
        _functions(_LOOKUP.pattern) | 1 << EVIDENCE_DLSYM, RULE_UNDER_TEST | RULE_BATCH_NAME, finds=True
    ),
    "driver-version": _Target(_functions(r"cu(da)?DriverGetVersion")),
    "runtime-version": _Target(_functions(r"cudaRuntimeGetVersion")),
}
_GROUPS = ", ".join(_TARGETS)
_TARGETS |= {
    name: _Target(1 << number, finds=_LOOKUP.fullmatch(name) is not None)
    for number, name in enumerate(FUNCTIONS)
}
_NAMES = {(target.functions, target.conditions): name for name, target in reversed(_TARGETS.items())}
"""How a rule is spelled; runtime-version has one function only and stays the name of its rules."""


@dataclass(frozen=True)
class Injection:
    """One rule: at the ``number``-th call to ``target``, from 1, the real function is not called.

    With ``and_later`` that holds for every later call too. ``code`` is returned instead, by a look-up with
    NULL as its answer; None is ``null``: success with NULL, and the query's result "symbol not found" where
    the caller asks for it. dlsym answers NULL either way; as nothing failed there, dlerror has no message,
    at which ctypes itself crashes in a Python without the fix of CPython's gh-126554, such as 3.11.
    """

    target: str
    code: int | None
    number: int = 1
    and_later: bool = True

    def __str__(self) -> str:
        """Return the rule as parse_injections reads it."""
        effect = "null" if self.code is None else self.code
        if self.and_later and self.number == 1:
            return f"{self.target}={effect}"
        return f"{self.target}@{self.number}{'+' if self.and_later else ''}={effect}"


@dataclass(frozen=True)
class AppliedInjection:
    """What came of a rule: how many calls it has counted (``seen``) and how many it answered (``fired``)."""

    rule: str
    seen: int
    fired: int


def parse_injections(text: str) -> tuple[Injection, ...]:
    """Read rules such as ``batch@2=801; lookup=null``. Raises UsageError that points at what is wrong."""
    return _Parser(text).rules()


class _Parser:
    """Reads one text from left to right; the position is where the next word begins."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0

    def rules(self) -> tuple[Injection, ...]:
        rules = [self._rule()]
        while self._take(";"):
            rules.append(self._rule())
        if self._position < len(self._text):
            self._fail("';' belongs between two rules")
        return tuple(rules)

    def _rule(self) -> Injection:
        target = self._target()
        number, and_later = self._number() if self._take("@") else (1, True)
        if not self._take("="):
            self._fail("'=' and an effect belong here")
        return Injection(target, self._effect(target), number, and_later)

    def _target(self) -> str:
        start, word = self._word(r"[\w-]*")
        if word not in _TARGETS:
            self._fail(
                f"a target belongs here{f', not {word!r}' if word else ''}: "
                f"{_GROUPS}, or a watched function such as {FUNCTIONS[0]}",
                start,
            )
        return word

    def _number(self) -> tuple[int, bool]:
        """Read N or N+: the number, and whether every later one is meant too."""
        start, word = self._word(r"[^\s=;+]*")
        if not re.fullmatch(r"[0-9]{1,10}", word) or not 1 <= int(word) <= _LARGEST_NUMBER:
            self._fail(f"the number of a call belongs here, from 1 to {_LARGEST_NUMBER}", start)
        return int(word), self._take("+")

    def _effect(self, target: str) -> int | None:
        start, word = self._word(r"[^\s;]*")
        if word == "null":
            if not _TARGETS[target].finds:
                self._fail("only a look-up can be answered with null", start)
            return None
        if not re.fullmatch(r"[0-9]{1,10}", word) or int(word) > _LARGEST_CODE:
            self._fail("a return code such as 801 belongs here, or null for a look-up", start)
        return int(word)

    def _word(self, pattern: str) -> tuple[int, str]:
        """Take what matches ``pattern``, perhaps nothing, and the blanks around it; tell where it began."""
        match = re.compile(rf"\s*({pattern})\s*", re.ASCII).match(self._text, self._position)
        assert match is not None  # every part of it may be empty
        self._position = match.end()
        return match.start(1), match[1]

    def _take(self, sign: str) -> bool:
        _, found = self._word(f"{re.escape(sign)}?")
        return bool(found)

    def _fail(self, problem: str, position: int | None = None) -> NoReturn:
        raise UsageError(
            f"the injection does not parse: {problem} (write it like {_EXAMPLE!r})\n"
            f"  {self._text}\n"
            f"  {' ' * (self._position if position is None else position)}^"
        )


def rule_of(injection: Injection) -> EvidenceRule:
    """Return the rule as it lies in a slot. Raises UsageError for a target or effect that there is not."""
    parse_injections(str(injection))
    target = _TARGETS[injection.target]
    return EvidenceRule(
        functions=target.functions,
        first=injection.number,
        last=_EVERY_LATER_ONE if injection.and_later else injection.number,
        conditions=target.conditions,
        effect=RULE_FINDS_NULL if injection.code is None else RULE_RETURNS_CODE,
        code=injection.code or 0,
    )


def applied_injection(row: EvidenceRule) -> AppliedInjection:
    """Read a slot's rule with its counters. Raises EvidenceError for one that rule_of never makes."""
    target = _NAMES.get((row.functions, row.conditions))
    if target is None:
        raise EvidenceError(f"the evidence is damaged: it has a rule about functions {row.functions:#x}")
    injection = Injection(
        target=target,
        code=None if row.effect == RULE_FINDS_NULL else row.code,
        number=row.first,
        and_later=row.last == _EVERY_LATER_ONE,
    )
    return AppliedInjection(str(injection), row.seen, row.fired)
