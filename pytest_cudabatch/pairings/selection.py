"""The expressions that select pairings: ``runtime>=12.8,<13 on driver>=13``, or one half of it.

A clause on the driver matches no pairing without one.
Grammar: clause ["on" clause], where a clause is "runtime" or "driver" and PEP 440 specifiers separated by
commas; the runtime comes first. Both names mean CUDA versions, never the driver's release.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NoReturn

from pytest_cudabatch.errors import UsageError
from pytest_cudabatch.pairings.pairing import Pairing
from pytest_cudabatch.pairings.version_range import SpecifierError, VersionRange

__all__ = ["Selection", "select"]

_NAMES = ("runtime", "driver")
_EXAMPLE = "runtime>=12.8,<13 on driver>=13"
_FIRST_RELEASE_BRANCH = 100
"""CUDA versions are far below it, the driver's own releases (580.159.04) far above."""


@dataclass(frozen=True)
class Selection:
    """A parsed expression: one range for each of the two versions."""

    runtime: VersionRange = field(default_factory=VersionRange)
    driver: VersionRange = field(default_factory=VersionRange)

    @classmethod
    def parse(cls, expression: str) -> Selection:
        """Read an expression. Raises UsageError that points at the first thing that is wrong."""
        return _Parser(expression).selection()

    def matches(self, pairing: Pairing) -> bool:
        """Whether both versions of ``pairing`` are within their ranges; no driver is within no range."""
        runtime, driver = pairing.runtime, pairing.driver.version
        on_driver = not self.driver.specifiers if driver is None else self.driver.contains(driver)
        return on_driver and self.runtime.contains(runtime.version, runtime.release)


def select(pairings: Iterable[Pairing], expression: str) -> tuple[Pairing, ...]:
    """Return the pairings that ``expression`` selects, in their order; none is no error here.

    Raises UsageError where the expression does not parse.
    """
    selection = Selection.parse(expression)
    return tuple(pairing for pairing in pairings if selection.matches(pairing))


class _Parser:
    """Reads one expression; every position is an index into it, for the caret of an error."""

    def __init__(self, expression: str) -> None:
        self._expression = expression

    def selection(self) -> Selection:
        joints = list(re.finditer(r"(?<!\S)on(?!\S)", self._expression))
        if len(joints) > 1:
            self._fail("only one 'on' joins the runtime and the driver", joints[1].start())
        if not joints:
            return Selection(**dict([self._clause(0, len(self._expression))]))
        first = self._clause(0, joints[0].start())
        second = self._clause(joints[0].end(), len(self._expression))
        if (first[0], second[0]) != _NAMES:
            self._fail("the runtime comes before 'on' and the driver after it", 0)
        return Selection(**dict([first, second]))

    def _clause(self, start: int, end: int) -> tuple[str, VersionRange]:
        """Read the clause between two positions: its name and its range."""
        match = re.compile(r"\s*([^\s<>=!~,]*)\s*").match(self._expression, start, end)
        assert match is not None  # every part of it may be empty
        name = match[1]
        if name not in _NAMES:
            self._fail(
                f"'runtime' or 'driver' belongs here{f', not {name!r}' if name else ''}", match.start(1)
            )
        range_ = self._range(self._expression[match.end() : end], match.end())
        if name == "driver":
            self._check_driver(range_, match.end())
        return name, range_

    def _range(self, text: str, start: int) -> VersionRange:
        try:
            return VersionRange.parse(text)
        except SpecifierError as error:
            self._fail(str(error), start + error.position)

    def _check_driver(self, range_: VersionRange, position: int) -> None:
        for specifier in range_.specifiers:
            if int(re.split(r"\D", specifier.version, maxsplit=1)[0] or 0) >= _FIRST_RELEASE_BRANCH:
                self._fail(
                    f"{specifier.version} is a driver release; a driver is selected by the CUDA version that "
                    "it reports, such as driver>=13.0",
                    position,
                )

    def _fail(self, problem: str, position: int) -> NoReturn:
        raise UsageError(
            f"the selection does not parse: {problem} (write it like {_EXAMPLE!r})\n"
            f"  {self._expression}\n"
            f"  {' ' * position}^"
        )
