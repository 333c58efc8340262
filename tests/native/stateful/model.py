"""What the calls should do: memory as bytes, streams as promises about them, captures as lists of work.

Work is applied to the bytes when it is queued. That is right as long as all work on the same memory is in
order, which the bench sees to: ``users`` says which streams may still be at it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

OK, INVALID, NOT_READY, ALREADY, NOT_REGISTERED = 0, 1, 600, 712, 713
UNSUPPORTED, INVALIDATED = 900, 901
GLOBAL, RELAXED = 0, 2


@dataclass(eq=False)
class Stream:
    handle: int
    device: int
    capture: Capture | None = None


@dataclass(eq=False)
class Memory:
    """An allocation, or pages of the program, of which the ranges ``registered`` are known to the driver."""

    address: int
    content: bytearray
    kind: str  # "device", "pinned", "pages", or "pool"
    registered: list[range] = field(default_factory=list)
    users: set[Stream] = field(default_factory=set)

    @property
    def is_host(self) -> bool:
        return self.kind in {"pinned", "pages"}

    def parts(self) -> list[range]:
        """The ranges that the driver knows as one thing each."""
        return self.registered if self.kind == "pages" else [range(len(self.content))]


@dataclass(frozen=True)
class Work:
    """One piece: what it does to the bytes, and whose bytes."""

    memories: tuple[Memory, ...]
    apply: Callable[[], None]


@dataclass(eq=False)
class Capture:
    mode: int
    works: list[Work] = field(default_factory=list)
    invalidated: bool = False

    def take(self, work: Work) -> int:
        """Capture a piece of work; the code that the call answers."""
        if self.invalidated:
            return INVALIDATED
        self.works.append(work)
        return OK

    def disturb(self) -> int:
        """What a call answers that is not allowed meanwhile."""
        self.invalidated = True
        return UNSUPPORTED


@dataclass(eq=False)
class Graph:
    handle: int
    works: list[Work]


@dataclass(frozen=True)
class Piece:
    """A range of one memory."""

    memory: Memory
    start: int
    size: int

    @property
    def address(self) -> int:
        return self.memory.address + self.start

    @property
    def end(self) -> int:
        return self.start + self.size

    def overlaps(self, other: Piece) -> bool:
        return self.memory is other.memory and self.start < other.end and other.start < self.end

    @property
    def is_known(self) -> bool:
        """Whether it lies in one thing that the driver knows."""
        return any(part.start <= self.start and self.end <= part.stop for part in self.memory.parts())

    @property
    def can_be_copied(self) -> bool:
        """The same, or it touches none: pageable memory."""
        touches = any(self.start < part.stop and part.start < self.end for part in self.memory.parts())
        return self.is_known or not touches


def copy_of(to: Piece, source: Piece) -> Work:
    def apply() -> None:
        content = source.memory.content[source.start : source.start + source.size]
        to.memory.content[to.start : to.start + to.size] = content

    return Work((to.memory, source.memory), apply)


def fill_of(to: Piece, value: int) -> Work:
    def apply() -> None:
        to.memory.content[to.start : to.start + to.size] = bytes([value]) * to.size

    return Work((to.memory,), apply)
