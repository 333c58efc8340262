"""Decodes x86-64 instructions as far as reading a few functions of a libcudart needs it.

Every instruction of the integer and SSE sets gets its length and operands; what an instruction does is
known only for the forms that have a name here. Vector instructions behind a VEX or EVEX prefix, and bytes
that are no instruction, are refused, never guessed. Facts: Intel 64 and IA-32 Architectures Software
Developer's Manual, volume 2: chapter 2 (format), appendix A (opcode maps).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

__all__ = [
    "CALL",
    "CALLER_SAVED",
    "JUMPS",
    "MOV_IMMEDIATE",
    "POP",
    "PUSH",
    "RBP",
    "RDI",
    "RETURNS",
    "RSP",
    "TRAPS",
    "Instruction",
    "Memory",
    "UnknownInstructionError",
    "decode",
    "instructions",
    "written_registers",
]

RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI = range(8)
CALLER_SAVED = frozenset({RAX, RCX, RDX, RSI, RDI, 8, 9, 10, 11})
"""Registers that a call may change (System V ABI, AMD64 supplement); parameter 1 comes in RDI."""

MOV_STORE, MOV_LOAD = 0x89, 0x8B
"""``mov r/m, r`` and ``mov r, r/m``; between two registers either is used."""
MOV_IMMEDIATE = 0xC7
"""``mov r/m, imm32``."""
CALL, JUMP, SHORT_JUMP = 0xE8, 0xE9, 0xEB
JUMPS = frozenset({JUMP, SHORT_JUMP})
RETURNS = frozenset({0xC2, 0xC3})
TRAPS = frozenset({0xF4, 0x0F0B})
"""``hlt`` and ``ud2``: nothing follows."""
PUSH, POP = range(0x50, 0x58), range(0x58, 0x60)
_CONDITIONAL = frozenset({*range(0x70, 0x80), *range(0xE0, 0xE4), *range(0x0F80, 0x0F90)})
"""Jumps with a condition, and the loop instructions."""
_INDIRECT = 0xFF

_ONE_BYTE_IMMEDIATE = frozenset(
    {0x6A, 0x6B, 0x80, 0x83, 0xA8, 0xC0, 0xC1, 0xC6, 0xCD, 0xEB}
    | {*range(0x70, 0x80), *range(0xB0, 0xB8), *range(0xE0, 0xE8)}
    | {base | 4 for base in range(0, 0x40, 8)}
    | {0x0F70, 0x0F71, 0x0F72, 0x0F73, 0x0FA4, 0x0FAC, 0x0FBA, 0x0FC2, 0x0FC4, 0x0FC5, 0x0FC6}
)
_FULL_IMMEDIATE = frozenset({0x68, 0x69, 0x81, 0xA9, 0xC7} | {base | 5 for base in range(0, 0x40, 8)})
"""Four bytes, sign-extended; two behind an operand-size prefix."""
_RELATIVE = frozenset({CALL, JUMP, *range(0x0F80, 0x0F90)})
"""Four bytes whatever the prefixes are."""
_OPERAND_BYTE = frozenset(
    {base | low for base in range(0, 0x40, 8) for low in range(4)}
    | {0x63, 0x69, 0x6B, 0x80, 0x81, 0x83, *range(0x84, 0x90), 0xC0, 0xC1, 0xC6, 0xC7}
    | {*range(0xD0, 0xD4), *range(0xD8, 0xE0), 0xF6, 0xF7, 0xFE, 0xFF}
)
"""Opcodes of the first map that a ModRM byte follows."""
_BARE = frozenset(
    {0x0F05, 0x0F06, 0x0F08, 0x0F09, 0x0F0B, 0x0F31, 0x0F77, 0x0FA2, *range(0x0F80, 0x0F90)}
    | {0x0FA0, 0x0FA1, 0x0FA8, 0x0FA9, *range(0x0FC8, 0x0FD0)}
)
"""Opcodes of the second map without one."""
_INVALID = frozenset(
    {base | low for base in range(0, 0x40, 8) for low in (6, 7)}
    | {0x60, 0x61, 0x62, 0x82, 0x9A, 0xC4, 0xC5, 0xCE, 0xD4, 0xD5, 0xD6, 0xEA}
    | {0x0F04, 0x0F07, 0x0F0A, 0x0F0C, 0x0F0E, 0x0F0F, *range(0x0F24, 0x0F28), *range(0x0F39, 0x0F40)}
    | {0x0F36, 0x0F7A, 0x0F7B, 0x0FA6, 0x0FA7}
)
"""No instruction in 64-bit mode, or the start of a VEX or EVEX one."""

_LEGACY_PREFIXES = frozenset(b"\x26\x2e\x36\x3e\x64\x65\x66\x67\xf0\xf2\xf3")


class UnknownInstructionError(ValueError):
    """The bytes at a place are no instruction that this room decodes."""


@dataclass(frozen=True)
class Memory:
    """A memory operand: registers by number (``base`` None: an absolute or instruction-relative address)."""

    base: int | None
    index: int | None
    displacement: int


@dataclass(frozen=True)
class Instruction:
    """One instruction; ``opcode`` has its escape bytes in front (0x0F84, 0x0F3814).

    ``reg`` is the register (or opcode extension) of the ModRM byte, ``rm`` its other register, or ``memory``
    the operand in its place; ``low`` is the register in the opcode's own low bits. ``wide`` tells REX.W,
    ``prefixes`` are the legacy ones. ``immediate`` is signed; that of a branch is relative to ``end``.
    """

    address: int
    end: int
    opcode: int
    prefixes: bytes
    wide: bool
    reg: int | None
    rm: int | None
    memory: Memory | None
    low: int
    immediate: int | None

    @property
    def is_copy(self) -> bool:
        """Whether it copies a whole register to another."""
        return self.opcode in (MOV_STORE, MOV_LOAD) and self.wide and self.rm is not None

    @property
    def copied(self) -> tuple[int, int]:
        """Source and destination of a copy."""
        assert self.reg is not None  # asked of a copy only, which has both
        assert self.rm is not None
        return (self.reg, self.rm) if self.opcode == MOV_STORE else (self.rm, self.reg)

    @property
    def is_jump(self) -> bool:
        """Whether it is a direct jump, with a condition or without."""
        return self.opcode in JUMPS or self.opcode in _CONDITIONAL

    @property
    def is_indirect_jump(self) -> bool:
        """Whether it goes on at an address that a register or memory holds."""
        return self.opcode == _INDIRECT and self.reg is not None and self.reg & 7 in (4, 5)

    @property
    def is_call(self) -> bool:
        """Whether it is a call, direct or not."""
        return self.opcode == CALL or (
            self.opcode == _INDIRECT and self.reg is not None and self.reg & 7 in (2, 3)
        )

    @property
    def is_push(self) -> bool:
        """Whether it puts a value on the stack."""
        pushes_operand = self.opcode == _INDIRECT and self.reg is not None and self.reg & 7 == 6
        return self.opcode in PUSH or self.opcode in (0x68, 0x6A) or pushes_operand

    @property
    def target(self) -> int:
        """Where a direct call or jump goes."""
        assert self.immediate is not None  # asked of those only
        return self.end + self.immediate


class _Bytes:
    """Takes bytes off the front of an instruction. Raises UnknownInstructionError behind the end."""

    def __init__(self, code: bytes, position: int) -> None:
        self._code = code
        self.position = position

    def peek(self) -> int:
        if self.position >= len(self._code):
            raise UnknownInstructionError("the code ends inside an instruction")
        return self._code[self.position]

    def byte(self) -> int:
        value = self.peek()
        self.position += 1
        return value

    def signed(self, size: int) -> int:
        value = bytes(self.byte() for _ in range(size))
        return int.from_bytes(value, "little", signed=True)


def instructions(code: bytes, address: int) -> Iterator[Instruction]:
    """Yield the instructions of ``code``, which lies at ``address``, one behind the other.

    Raises UnknownInstructionError at the first one that is not decoded.
    """
    position = 0
    while position < len(code):
        instruction = decode(code, position, address)
        yield instruction
        position = instruction.end - address


def decode(code: bytes, position: int, address: int) -> Instruction:
    """Return the instruction at ``position`` of ``code``. Raises UnknownInstructionError."""
    take = _Bytes(code, position)
    prefixes = bytearray()
    while take.peek() in _LEGACY_PREFIXES:
        prefixes.append(take.byte())
    rex = take.byte() if take.peek() & 0xF0 == 0x40 else 0
    opcode = _opcode(take)
    reg, rm, memory = _operands(take, rex) if _has_operands(opcode) else (None, None, None)
    immediate = take.signed(size) if (size := _immediate_size(opcode, reg, rex, bytes(prefixes))) else None
    return Instruction(
        address=address + position,
        end=address + take.position,
        opcode=opcode,
        prefixes=bytes(prefixes),
        wide=bool(rex & 8),
        reg=reg,
        rm=rm,
        memory=memory,
        low=opcode & 7 | (rex & 1) << 3,
        immediate=immediate,
    )


def _opcode(take: _Bytes) -> int:
    opcode = take.byte()
    if opcode == 0x0F:
        opcode = 0x0F00 | take.byte()
        if opcode in (0x0F38, 0x0F3A):
            return opcode << 8 | take.byte()
    if opcode in _INVALID:
        raise UnknownInstructionError(f"opcode {opcode:#x}")
    return opcode


def _has_operands(opcode: int) -> bool:
    return opcode in _OPERAND_BYTE if opcode <= 0xFF else opcode not in _BARE


def _operands(take: _Bytes, rex: int) -> tuple[int, int | None, Memory | None]:
    """Read the ModRM byte and what belongs to it: its register, and the other one or the memory operand."""
    operand = take.byte()
    mode, low = operand >> 6, operand & 7
    reg = operand >> 3 & 7 | (rex & 4) << 1
    if mode == 3:
        return reg, low | (rex & 1) << 3, None
    index = None
    base: int | None = low | (rex & 1) << 3
    if low == RSP:  # a SIB byte follows
        scaled = take.byte()
        index = scaled >> 3 & 7 | (rex & 2) << 2
        index = None if index == RSP else index
        low = scaled & 7
        base = low | (rex & 1) << 3
    if mode == 0 and low == RBP:  # no base; without a SIB byte it is relative to the next instruction
        return reg, None, Memory(None, index, take.signed(4))
    displacement = take.signed((0, 1, 4)[mode]) if mode else 0
    return reg, None, Memory(base, index, displacement)


def _immediate_size(opcode: int, reg: int | None, rex: int, prefixes: bytes) -> int:
    """Return how many bytes of immediate an instruction has."""
    full = 2 if 0x66 in prefixes and not rex & 8 else 4
    if opcode in _RELATIVE:
        return 4
    if opcode in _ONE_BYTE_IMMEDIATE or opcode >> 8 == 0x0F3A:
        return 1
    if opcode in _FULL_IMMEDIATE:
        return full
    if 0xB8 <= opcode <= 0xBF:
        return 8 if rex & 8 else full
    if opcode in (0xF6, 0xF7):  # of the group only test has an immediate
        return 0 if reg is None or reg & 7 > 1 else (1 if opcode == 0xF6 else full)
    return {0xC2: 2, 0xCA: 2, 0xC8: 3, **dict.fromkeys(range(0xA0, 0xA4), 8)}.get(opcode, 0)


_READ_ONLY = frozenset({0x84, 0x85, 0xA8, 0xA9, *range(0x38, 0x3E), *PUSH, 0x68, 0x6A, 0x0F1F, 0x0F1E})
"""test, cmp, push and the long nops: they name registers, but change none (push: but RSP)."""
_VECTOR_ONLY = frozenset(
    {*range(0x0F10, 0x0F18), 0x0F28, 0x0F29, 0x0F2A, 0x0F2B, 0x0F2E, 0x0F2F, *range(0x0F51, 0x0F77)}
    | {0x0F7C, 0x0F7D, 0x0F7F, 0x0FC2, 0x0FC4, 0x0FC6, *range(0x0FD0, 0x0FD7), *range(0x0FD8, 0x1000)}
)
"""SSE instructions that change vector registers or memory only."""
_GROUP_COMPARES = {0x80: (7,), 0x81: (7,), 0x83: (7,), 0xF6: (0, 1), 0xF7: (0, 1), _INDIRECT: (2, 3, 4, 5, 6)}
"""Opcode extensions with which a group only reads its operand: cmp, test, call, jmp and push."""
_IMPLICIT = {
    0x98: {RAX},
    0x99: {RDX},
    0xC8: {RSP, RBP},
    0xC9: {RSP, RBP},
    0x0F05: {RAX, RCX, 11},
    0x0F31: {RAX, RDX},
    0x0FA2: {RAX, RBX, RCX, RDX},
    0x0FB0: {RAX},
    0x0FB1: {RAX},
    0x0FC7: {RAX, RDX},
    0xF6: {RAX},
    0xF7: {RAX, RDX},
    **{code: {RAX, RCX, RSI, RDI} for code in (*range(0x6C, 0x70), *range(0xA4, 0xA8), *range(0xAA, 0xB0))},
    **{code: {RCX} for code in range(0xE0, 0xE4)},
    **{code: {RAX} for code in (0x9F, 0xA0, 0xA1, 0xD7, *range(0xE4, 0xF0))},
    **{base | low: {RAX} for base in range(0, 0x38, 8) for low in (4, 5)},
}
"""What some instructions change beside the registers that they name, or more than that."""


def written_registers(instruction: Instruction) -> frozenset[int]:
    """Return the registers that may hold something else afterwards; rather too many than too few."""
    opcode, reg = instruction.opcode, instruction.reg
    if instruction.is_call:
        return CALLER_SAVED
    if opcode in _READ_ONLY or opcode in _VECTOR_ONLY:
        return frozenset()
    if reg is not None and reg & 7 in _GROUP_COMPARES.get(opcode, ()):
        return frozenset()
    written = set(_IMPLICIT.get(opcode, ()))
    if opcode in POP or 0x90 <= opcode <= 0x97 or 0xB0 <= opcode <= 0xBF or 0x0FC8 <= opcode <= 0x0FCF:
        written |= {instruction.low, RAX} if 0x91 <= opcode <= 0x97 else {instruction.low}
    if instruction.rm is not None:
        written.add(instruction.rm)
    if reg is not None and opcode not in (0x88, MOV_STORE, MOV_IMMEDIATE, 0xC6, 0x0F7E, *_GROUP_COMPARES):
        written.add(reg)
    return frozenset(written)
