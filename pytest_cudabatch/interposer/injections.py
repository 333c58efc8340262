"""Injection by request: on which calls a rule takes effect, and what it does to them.

Grammar: rule (";" rule)*, where a rule is TARGET ["@" N ["+"]] "=" EFFECT. Only rules about ``batch`` look at
calls by anybody, since a libcudart then sees the code and keeps it as its last error; all others look at
calls by the code under test. ``lookup`` is about look-ups of batch functions, by dlsym and dlvsym too; a
look-up function named by itself is about every name that it is asked for.

Effects: a return code; ``null`` and ``other-abi`` for look-ups; ``delay:MS``, ``hang`` and ``crash``.
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from typing import NoReturn

from pytest_cudabatch.errors import EvidenceError, UsageError
from pytest_cudabatch.interposer.functions import FUNCTIONS
from pytest_cudabatch.interposer.layout import (
    EVIDENCE_DLSYM,
    RULE_BATCH_NAME,
    RULE_CRASHES,
    RULE_DELAYS,
    RULE_FINDS_NULL,
    RULE_FINDS_OTHER_ABI,
    RULE_HANGS,
    RULE_RETURNS_CODE,
    RULE_UNDER_TEST,
    EvidenceRule,
)

__all__ = [
    "AppliedInjection",
    "Effect",
    "EffectKind",
    "Injection",
    "applied_injection",
    "parse_injections",
    "rule_of",
]

_EXAMPLE = "batch@2=801; lookup=null"
_EVERY_LATER_ONE = 2**64 - 1
_LARGEST_CODE = 2**31 - 1
_LARGEST_NUMBER = 10**9
_LONGEST_DELAY = 3_600_000
_LOOKUP = re.compile(r"cuGetProcAddress.*|cudaGetDriverEntryPoint.*")


class EffectKind(enum.Enum):
    """What a rule can do, by the word that spells it (a code is spelled by its number alone)."""

    CODE = "code"
    NULL = "null"
    OTHER_ABI = "other-abi"
    DELAY = "delay"
    HANG = "hang"
    CRASH = "crash"


_EFFECTS = {
    EffectKind.CODE: RULE_RETURNS_CODE,
    EffectKind.NULL: RULE_FINDS_NULL,
    EffectKind.OTHER_ABI: RULE_FINDS_OTHER_ABI,
    EffectKind.DELAY: RULE_DELAYS,
    EffectKind.HANG: RULE_HANGS,
    EffectKind.CRASH: RULE_CRASHES,
}
_KINDS = {number: kind for kind, number in _EFFECTS.items()}
_WORDS = {kind.value: kind for kind in EffectKind if kind not in {EffectKind.CODE, EffectKind.DELAY}}
_FOR_LOOKUPS = {EffectKind.NULL: "null", EffectKind.OTHER_ABI: "the other ABI"}


@dataclass(frozen=True)
class Effect:
    """What a rule does to a call. ``argument`` is the code, or the delay in milliseconds; 0 for the others.

    * A code is returned in place of the real call, by a look-up with NULL as its answer.
    * NULL: success with NULL, and the query's result "symbol not found" where the caller asks for it.
    * OTHER_ABI: the look-up is made and answers with the counterpart of what it found: a driver's
      eight-parameter function for the nine-parameter one and back, or by dlsym the function of a runtime of
      the other ABI that is loaded too. Where there is none, the true answer stands and no effect is counted.
    * DELAY: the call is made, so many milliseconds later. Delays of several rules add up.
    * HANG: the call never returns; signal handlers still run, and a signal that ends the process ends it.
    * CRASH: SIGSEGV at address 0, in place of the real call.

    A call that hangs or crashes is in flight in the evidence; a look-up or a version query then has no code.
    dlsym answers NULL for any code; as nothing failed there, dlerror has no message, at which ctypes itself
    crashes in a Python without the fix of CPython's gh-126554, such as 3.11.
    """

    kind: EffectKind
    argument: int = 0

    def __str__(self) -> str:
        """Return the effect as parse_injections reads it."""
        if self.kind is EffectKind.CODE:
            return str(self.argument)
        return f"delay:{self.argument}" if self.kind is EffectKind.DELAY else self.kind.value


@dataclass(frozen=True)
class _Target:
    """What a rule's first word means: bits of function numbers, and conditions on the call."""

    functions: int
    conditions: int = RULE_UNDER_TEST
    finds: bool = False
    """Whether these are look-ups, which can find nothing, or the wrong function."""


def _functions(pattern: str) -> int:
    return sum(1 << number for number, name in enumerate(FUNCTIONS) if re.fullmatch(pattern, name))


_TARGETS = {
    "batch": _Target(_functions(r"cuMemcpy(3D)?BatchAsync.*"), conditions=0),
    "per-copy": _Target(_functions(r"cu(da)?Memcpy(HtoD|DtoH|DtoD|(3D)?WithAttributes)?Async.*")),
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
    if name.startswith("cu")  # dlsym of a layer is a look-up; rules about those count what it answers with
}
_NAMES = {(target.functions, target.conditions): name for name, target in reversed(_TARGETS.items())}
"""How a rule is spelled; runtime-version has one function only and stays the name of its rules."""


@dataclass(frozen=True)
class Injection:
    """One rule: at the ``number``-th call to ``target``, from 1, ``effect`` happens.

    With ``and_later`` that holds for every later call too.
    """

    target: str
    effect: Effect
    number: int = 1
    and_later: bool = True

    def __str__(self) -> str:
        """Return the rule as parse_injections reads it."""
        if self.and_later and self.number == 1:
            return f"{self.target}={self.effect}"
        return f"{self.target}@{self.number}{'+' if self.and_later else ''}={self.effect}"


@dataclass(frozen=True)
class AppliedInjection:
    """What came of a rule: how many calls it counted (``seen``), on how many it took effect (``fired``)."""

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
        if not _is_number(word, 1, _LARGEST_NUMBER):
            self._fail(f"the number of a call belongs here, from 1 to {_LARGEST_NUMBER}", start)
        return int(word), self._take("+")

    def _effect(self, target: str) -> Effect:
        start, word = self._word(r"[^\s;]*")
        if word in _WORDS:
            kind = _WORDS[word]
            if kind in _FOR_LOOKUPS and not _TARGETS[target].finds:
                self._fail(f"only a look-up can be answered with {_FOR_LOOKUPS[kind]}", start)
            return Effect(kind)
        name, colon, milliseconds = word.partition(":")
        if name == EffectKind.DELAY.value:
            if not _is_number(milliseconds, 1, _LONGEST_DELAY):
                self._fail(
                    f"delay:MS takes milliseconds from 1 to {_LONGEST_DELAY}", start + len(name) + len(colon)
                )
            return Effect(EffectKind.DELAY, int(milliseconds))
        if not _is_number(word, 0, _LARGEST_CODE):
            self._fail(
                "a return code such as 801 belongs here, or delay:MS, hang, crash, and for a look-up "
                "null, other-abi",
                start,
            )
        return Effect(EffectKind.CODE, int(word))

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


def _is_number(word: str, least: int, greatest: int) -> bool:
    return re.fullmatch(r"[0-9]{1,10}", word) is not None and least <= int(word) <= greatest


def rule_of(injection: Injection) -> EvidenceRule:
    """Return the rule as it lies in a slot. Raises UsageError for one that parse_injections never returns."""
    if parse_injections(str(injection)) != (injection,):
        raise UsageError(f"no injection is spelled like {injection!r}")
    target, effect = _TARGETS[injection.target], injection.effect
    return EvidenceRule(
        functions=target.functions,
        first=injection.number,
        last=_EVERY_LATER_ONE if injection.and_later else injection.number,
        conditions=target.conditions,
        effect=_EFFECTS[effect.kind],
        code=effect.argument if effect.kind is EffectKind.CODE else 0,
        delay=effect.argument if effect.kind is EffectKind.DELAY else 0,
    )


def applied_injection(row: EvidenceRule) -> AppliedInjection:
    """Read a slot's rule with its counters. Raises EvidenceError for one that rule_of never makes."""
    target, kind = _NAMES.get((row.functions, row.conditions)), _KINDS.get(row.effect)
    if target is None or kind is None:
        raise EvidenceError(
            f"the evidence is damaged: it has a rule about functions {row.functions:#x}, effect {row.effect}"
        )
    injection = Injection(
        target=target,
        effect=Effect(kind, row.delay if kind is EffectKind.DELAY else row.code),
        number=row.first,
        and_later=row.last == _EVERY_LATER_ONE,
    )
    return AppliedInjection(str(injection), row.seen, row.fired)
