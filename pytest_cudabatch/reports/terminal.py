"""The terminal's summary: the matrix, a paragraph per cause, and what did not run."""

from __future__ import annotations

import io
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_cudabatch.abi import CudaVersion
from pytest_cudabatch.findings import Finding
from pytest_cudabatch.reports.load_orders import LoadOrders
from pytest_cudabatch.verdicts import Cell, Verdict

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["Summary"]

GLYPHS = {
    Verdict.PASSED: ("✓", "P", "green"),
    Verdict.FAILED: ("✗", "F", "red"),
    Verdict.CRASHED: ("☠", "C", "bold red"),
    Verdict.HUNG: ("⧖", "H", "magenta"),
    Verdict.UNAVAILABLE: ("?", "?", "yellow"),
    Verdict.SKIPPED: ("-", "-", "bright_black"),
}
"""Glyph, its ASCII stand-in, and colour of each verdict."""

WORST_FIRST = (
    Verdict.CRASHED,
    Verdict.HUNG,
    Verdict.FAILED,
    Verdict.UNAVAILABLE,
    Verdict.PASSED,
    Verdict.SKIPPED,
)

LISTED = 40
"""How many names a line of a paragraph lists before it only counts them: all 36 pairings fit."""

ROW_HEAD, COLUMN = 8, 12
"""Widths in characters: of a runtime's name, and of a verdict with its path."""


@dataclass(frozen=True)
class Summary:
    """Everything that the summary is made from.

    ``command`` is the start of a command line that reruns a cell when the cell's id is added to it,
    as ``shown`` writes it.
    """

    cells: Sequence[Cell]
    command: Sequence[str]
    shown: Callable[[str], str]
    width: int
    colour: bool
    unicode: bool

    def text(self) -> str:
        """Return the summary, with ANSI colours where they were asked for."""
        from rich.console import Console  # noqa: PLC0415 - only when there is something to draw

        stream = io.StringIO()
        console = Console(
            file=stream,
            width=self.width,
            force_terminal=self.colour,
            color_system="standard" if self.colour else None,
            legacy_windows=False,
            highlight=False,
            emoji=False,
            markup=False,
        )
        for part in self._parts():
            # Soft wrapping leaves long lines whole, so that a command can be copied from any terminal.
            console.print(part, soft_wrap=isinstance(part, str))
        return stream.getvalue()

    def _parts(self) -> Iterator[RenderableType]:
        for implementation in dict.fromkeys(cell.identity.implementation for cell in self.cells):
            cells = [cell for cell in self.cells if cell.identity.implementation == implementation]
            if any(cell.identity.pairing for cell in cells):
                yield from self._matrix(implementation, cells)
            if orders := LoadOrders(cells):
                yield from self._load_orders(implementation, orders)
        yield from self._paragraphs()
        yield from self._totals()

    def _matrix(self, implementation: str | None, cells: Sequence[Cell]) -> Iterator[RenderableType]:
        """Draw runtimes by drivers: the worst verdict of each pairing's cells, and the usual path."""
        from rich.table import Table  # noqa: PLC0415
        from rich.text import Text  # noqa: PLC0415

        by_place: dict[tuple[CudaVersion, CudaVersion | None], list[Cell]] = {}
        for cell in cells:
            if (pairing := cell.identity.pairing) is not None:
                by_place.setdefault((pairing.runtime.version, pairing.driver.version), []).append(cell)
        runtimes = sorted({runtime for runtime, _ in by_place})
        # A run has either drivers or none, so that None stands alone here.
        with_driver = {driver for _, driver in by_place if driver is not None}
        drivers: list[CudaVersion | None] = [*sorted(with_driver)] or [None]
        with_paths = ROW_HEAD + COLUMN * len(drivers) <= self.width
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
        table.add_column("", no_wrap=True, min_width=len("cu12.9"))
        for driver in drivers:
            table.add_column("dnone" if driver is None else f"d{driver}", no_wrap=True)
        for runtime in runtimes:
            squares = [by_place.get((runtime, driver), ()) for driver in drivers]
            table.add_row(Text(f"cu{runtime}"), *(self._square(square, with_paths) for square in squares))
        yield f"{implementation or 'cells without an implementation'}: runtime (rows) on driver (columns)"
        yield table
        yield ""

    def _load_orders(self, implementation: str | None, orders: LoadOrders) -> Iterator[RenderableType]:
        """Draw what the extension links by what was loaded first, in words: it fits 80 columns."""
        from rich.table import Table  # noqa: PLC0415
        from rich.text import Text  # noqa: PLC0415

        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
        for heading in ("", *orders.linked):
            table.add_column(heading, no_wrap=True)
        for first in orders.loaded:
            cells = [orders.cell(linked, first) for linked in orders.linked]
            squares = [
                Text(orders.word(cell), style=GLYPHS[cell.verdict][2]) if cell else Text(".")
                for cell in cells
            ]
            table.add_row(Text(first), *squares)
        yield f"{implementation}: what was loaded first (rows), the runtime that it links (columns)"
        yield table
        yield ""

    def _square(self, cells: Sequence[Cell], with_path: bool) -> RenderableType:
        from rich.text import Text  # noqa: PLC0415

        if not cells:
            return Text(".", style="bright_black")
        worst = min((cell.verdict for cell in cells), key=WORST_FIRST.index)
        glyph, letter, colour = GLYPHS[worst]
        path = _usual_path(cells) if with_path else ""
        return Text(f"{glyph if self.unicode else letter} {path}".rstrip(), style=colour)

    def _paragraphs(self) -> Iterator[str]:
        """One paragraph per cause, however many pairings share it."""
        causes: dict[tuple[object, ...], list[Cell]] = {}
        for cell in self.cells:
            if cell.finding is not None:
                key = (cell.identity.implementation, cell.verdict, *cell.finding.cause)
                causes.setdefault(key, []).append(cell)
        for cells in causes.values():
            finding = cells[0].finding
            assert finding is not None  # only cells with a finding were grouped
            yield from self._paragraph(finding, cells)
            yield ""

    def _paragraph(self, finding: Finding, cells: Sequence[Cell]) -> Iterator[str]:
        first = cells[0]
        how = f"{first.verdict.value}, {first.signal}" if first.signal else first.verdict.value
        yield f"{finding.code.value}: {how} in {_count(cells, 'cell')}"
        yield f"  {finding.summary}"
        yield from _details(finding)
        pairings = [cell.identity.pairing.id for cell in cells if cell.identity.pairing]
        if pairings:
            yield f"  pairings: {_listed(pairings)}"
        yield f"  cases: {_listed(_functions(cells))}"
        yield f"  hint: {finding.hint}"
        yield f"  rerun one: {shlex.join([*self.command, self.shown(first.identity.nodeid)])}"

    def _totals(self) -> Iterator[str]:
        for platform in sorted(
            {cell.identity.pairing.platform for cell in self.cells if cell.identity.pairing}
        ):
            cells = [c for c in self.cells if c.identity.pairing and c.identity.pairing.platform == platform]
            verdicts = Counter(cell.verdict for cell in cells)
            counts = ", ".join(
                f"{verdicts[verdict]} {verdict.value}" for verdict in Verdict if verdicts[verdict]
            )
            bases = Counter(cell.identity.pairing.basis for cell in cells if cell.identity.pairing)
            basis = ", ".join(f"{count} {name}" for name, count in sorted(bases.items()))
            yield f"{platform} cells: {counts} (basis: {basis})"
        if not any(
            cell.identity.pairing and cell.identity.pairing.platform == "device" for cell in self.cells
        ):
            yield "device cells: 0 (nothing here ran on a GPU)"


def _details(finding: Finding) -> Iterator[str]:
    """Say where, and what the choice was made from."""
    places = {"called by": finding.caller, "callee": finding.callee, "failed at": finding.fault}
    for word, place in places.items():
        if place is not None:
            yield f"  {word}: {place.describe()}"
    for sentence in finding.decided_by:
        yield f"  decided by: {sentence}"
    if finding.control is not None:
        yield f"  control: {finding.control}"


def _usual_path(cells: Sequence[Cell]) -> str:
    """Return the path that most cells took; some take another by design, as on the default stream."""
    paths = Counter(cell.path for cell in cells if cell.path != "none")
    return paths.most_common(1)[0][0] if paths else ""


def _count(cells: Sequence[Cell], noun: str) -> str:
    return f"{len(cells)} {noun}" if len(cells) == 1 else f"{len(cells)} {noun}s"


def _functions(cells: Sequence[Cell]) -> Iterator[str]:
    """Name the test functions, and how many cases each stands for where it has parameters of its own."""
    cases: dict[str, set[str]] = {}
    for cell in cells:
        function, bracket, own = cell.identity.case.partition("[")
        cases.setdefault(function, set()).update({own} if bracket else ())
    for function, parameters in cases.items():
        yield f"{function} ({len(parameters)} cases)" if len(parameters) > 1 else function


def _listed(names: Iterable[str]) -> str:
    """List distinct names in order of appearance, and count those that would make the line too long."""
    distinct = list(dict.fromkeys(names))
    shown = " ".join(distinct[:LISTED])
    more = len(distinct) - LISTED
    return f"{shown} and {more} more" if more > 0 else shown
