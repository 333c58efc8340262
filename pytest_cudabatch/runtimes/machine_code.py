"""What a libcudart's own code says: its exact version, and how many parameters its batch function has.

Read from the bytes of an x86-64 library that nobody loads. Both readings follow a rule that compilers'
output of such functions keeps; where the code does not keep it the answer is None, never a guess.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path

from elftools.elf.elffile import ELFFile

from pytest_cudabatch.abi import BatchAbi, CudaVersion
from pytest_cudabatch.errors import UsageError
from pytest_cudabatch.runtimes import x86_64
from pytest_cudabatch.runtimes.elf import ELF_DAMAGE, SharedObject, defined_symbols, dynamic_segment
from pytest_cudabatch.runtimes.x86_64 import Instruction, UnknownInstructionError, written_registers

__all__ = ["BATCH_FUNCTION", "VERSION_FUNCTION", "RuntimeCode"]

BATCH_FUNCTION, VERSION_FUNCTION = "cudaMemcpyBatchAsync", "cudaRuntimeGetVersion"

_LONGEST = 4096
"""Bytes of a function that are looked at; the two that matter have under 800."""
_DEPTH = 2
"""Calls that are followed from the exported function; it hands its parameter to the one that answers."""
_OLDEST_MAJOR = 12
_REGISTER_PARAMETERS = 6
_LEAVE = 0xC9
_FIRST_STACK_PARAMETER = 0x10
"""Its offset from RBP, above the saved RBP and the return address (System V ABI, AMD64 supplement)."""


@dataclass(frozen=True)
class RuntimeCode:
    """A libcudart's answers: ``version`` and ``parameters`` (8 or 9) are None where they are not known.

    ``simulated`` tells this project's own libraries, by their note; their version is set for each process,
    so their code says nothing of it.
    """

    version: CudaVersion | None = None
    parameters: int | None = None
    simulated: bool = False

    def __str__(self) -> str:
        if self.simulated:
            return "simulated"
        version = f"CUDA {self.version}" if self.version else "CUDA of an unknown version"
        return f"{version}, {self.parameters or 'unknown'} parameters"

    @classmethod
    def read(cls, path: Path) -> RuntimeCode:
        """Read the library at ``path``. Raises UsageError where it is none, is damaged or is unreadable."""
        try:
            return cls.parse(path.read_bytes())
        except OSError as error:
            raise UsageError(f"{path}: {error.strerror}") from error
        except ValueError as error:
            raise UsageError(f"{path}: {error}") from error

    @classmethod
    def parse(cls, content: bytes) -> RuntimeCode:
        """Read the library whose file holds ``content``. Raises ValueError where it is not one."""
        if SharedObject.parse(content).simulated:
            return cls(simulated=True)
        image = _Image.parse(content)
        if image is None:
            return cls()
        return cls(_version(image), _parameters(image))


@dataclass(frozen=True)
class _Image:
    """The code of a library: its executable segments (address and bytes) and two exported functions."""

    segments: tuple[tuple[int, bytes], ...]
    functions: dict[str, tuple[int, int]]

    @classmethod
    def parse(cls, content: bytes) -> _Image | None:
        """Return the code, or None where it is not that of an x86-64. Raises ValueError for damage."""
        try:
            elf = ELFFile(io.BytesIO(content))
            if elf["e_machine"] != "EM_X86_64":
                return None
            return cls(tuple(_executable(elf, content)), dict(_functions(elf)))
        except ELF_DAMAGE as error:
            raise ValueError(f"a damaged ELF file ({type(error).__name__}: {error})") from error

    def code(self, address: int, size: int) -> bytes:
        """Return up to ``size`` bytes of code from ``address`` on; none where there is no code."""
        for start, content in self.segments:
            if start <= address < start + len(content):
                return content[address - start : address - start + size]
        return b""


def _executable(elf: ELFFile, content: bytes) -> list[tuple[int, bytes]]:
    return [
        (segment["p_vaddr"], content[segment["p_offset"] : segment["p_offset"] + segment["p_filesz"]])
        for segment in elf.iter_segments("PT_LOAD")
        if segment["p_flags"] & 1
    ]


def _functions(elf: ELFFile) -> list[tuple[str, tuple[int, int]]]:
    dynamic = dynamic_segment(elf)
    return [
        (name, (address, size))
        for name, address, size in (defined_symbols(elf, dynamic) if dynamic else ())
        if name in (BATCH_FUNCTION, VERSION_FUNCTION)
    ]


def _version(image: _Image) -> CudaVersion | None:
    """Return the one version that cudaRuntimeGetVersion stores through its parameter."""
    if VERSION_FUNCTION not in image.functions:
        return None
    walk = _ParameterWalk(image)
    try:
        walk.follow(image.functions[VERSION_FUNCTION][0], _DEPTH)
    except UnknownInstructionError:
        return None
    if len(walk.stored) != 1:
        return None
    (number,) = walk.stored
    version = CudaVersion.from_api(number)
    return version if version.api == number and version.major >= _OLDEST_MAJOR else None


class _ParameterWalk:
    """Follows a function's first parameter, a pointer, to the constants that are stored through it."""

    def __init__(self, image: _Image) -> None:
        self._image = image
        self._seen: set[int] = set()
        self.stored: set[int] = set()

    def follow(self, start: int, depth: int) -> None:
        """Walk through the function at ``start``, which has the parameter in RDI.

        Raises UnknownInstructionError where the code cannot be followed.
        """
        if start in self._seen or depth < 0:
            return
        self._seen.add(start)
        for instruction, holders in _with_holders(self._image.code(start, _LONGEST), start):
            if _stores_constant(instruction, holders) and instruction.immediate is not None:
                self.stored.add(instruction.immediate)
            leaves = instruction.opcode in x86_64.JUMPS and not _within(start, instruction.target)
            if x86_64.RDI in holders and (leaves or instruction.opcode == x86_64.CALL):
                self.follow(instruction.target, depth - 1)


def _with_holders(code: bytes, start: int) -> list[tuple[Instruction, frozenset[int]]]:
    """Return a function's instructions, each with the registers that hold the parameter in front of it.

    Those are what all ways to an instruction agree on; a backward jump with fewer of them than were assumed
    makes the sweep begin again with what it taught.
    """
    arriving = {start: frozenset({x86_64.RDI})}
    while True:
        swept, settled = _sweep(code, start, arriving)
        if settled:
            return swept


def _sweep(
    code: bytes, start: int, arriving: dict[int, frozenset[int]]
) -> tuple[list[tuple[Instruction, frozenset[int]]], bool]:
    """Go through the code once; put what arrives at each jump's target into ``arriving``.

    Also returns whether no jump backwards changed what had been assumed there.
    """
    swept: list[tuple[Instruction, frozenset[int]]] = []
    holders: frozenset[int] | None = None
    settled = True
    for instruction in x86_64.instructions(code, start):
        address = instruction.address
        jumped = arriving.get(address)
        holders = jumped if holders is None else holders & (holders if jumped is None else jumped)
        if holders is None:
            if address > max(arriving):
                break  # behind the function's end
            continue  # padding
        swept.append((instruction, holders))
        if instruction.is_jump and _within(start, target := instruction.target):
            known = arriving.get(target)
            arriving[target] = holders if known is None else holders & known
            settled = settled and (target > address or arriving[target] == known)
        holders = _after(instruction, holders)
    return swept, settled


def _within(start: int, target: int) -> bool:
    """Whether a jump's target may belong to the function at ``start``."""
    return start <= target < start + _LONGEST


def _stores_constant(instruction: Instruction, holders: frozenset[int]) -> bool:
    """Whether it is ``mov dword [register], constant`` through a register that holds the parameter."""
    memory = instruction.memory
    return (
        instruction.opcode == x86_64.MOV_IMMEDIATE
        and not instruction.wide
        and 0x66 not in instruction.prefixes
        and memory is not None
        and memory.base in holders
        and (memory.index, memory.displacement) == (None, 0)
    )


def _after(instruction: Instruction, holders: frozenset[int]) -> frozenset[int] | None:
    """Return the registers that hold the parameter behind ``instruction``; None where it does not go on."""
    opcode = instruction.opcode
    if opcode in x86_64.RETURNS or opcode in x86_64.JUMPS or opcode in x86_64.TRAPS:
        return None
    if instruction.is_indirect_jump:
        return None
    if instruction.is_copy:
        source, destination = instruction.copied
        return holders | {destination} if source in holders else holders - {destination}
    return holders - written_registers(instruction)


def _parameters(image: _Image) -> int | None:
    """Return how many parameters cudaMemcpyBatchAsync has: those in registers and those that it reads.

    It must set up RBP as its frame and keep it, so that a stack parameter is a fixed offset from RBP.
    """
    if BATCH_FUNCTION not in image.functions:
        return None
    address, size = image.functions[BATCH_FUNCTION]
    try:
        body = list(x86_64.instructions(image.code(address, min(size, _LONGEST)), address))
    except UnknownInstructionError:
        return None
    start = _frame_start(body)
    if start is None or size > _LONGEST or any(map(_changes_frame, body[start:])):
        return None
    offsets = {offset for i in body[start:] if (offset := _stack_parameter(i)) is not None}
    expected = {_FIRST_STACK_PARAMETER + 8 * number for number in range(len(offsets))}
    count = _REGISTER_PARAMETERS + len(offsets)
    return count if offsets == expected and count in {abi.parameters for abi in BatchAbi} else None


def _frame_start(body: list[Instruction]) -> int | None:
    """Return where the body begins behind ``push rbp; mov rbp, rsp``, which may have others between them."""
    for number, instruction in enumerate(body):
        if instruction.is_copy and instruction.copied == (x86_64.RSP, x86_64.RBP):
            pushes = [i for i in body[:number] if i.is_push]
            others = [i for i in body[:number] if not i.is_push]
            straight = len(pushes) == 1 and pushes[0].opcode in x86_64.PUSH and pushes[0].low == x86_64.RBP
            return number + 1 if straight and not any(map(_disturbs_entry, others)) else None
    return None


def _disturbs_entry(instruction: Instruction) -> bool:
    """Whether the stack may look otherwise afterwards, or the code go on elsewhere."""
    moves = {x86_64.RSP, x86_64.RBP} & written_registers(instruction)
    goes = instruction.is_call or instruction.is_jump or _after(instruction, frozenset()) is None
    return bool(moves) or goes


def _changes_frame(instruction: Instruction) -> bool:
    """Whether RBP may be another one afterwards, except at the function's end."""
    ends_frame = instruction.opcode == _LEAVE or instruction.opcode in x86_64.POP
    return x86_64.RBP in written_registers(instruction) and not ends_frame


def _stack_parameter(instruction: Instruction) -> int | None:
    """Return the offset from RBP of the stack parameter that an instruction names."""
    memory = instruction.memory
    if memory is None or memory.base != x86_64.RBP or memory.displacement < _FIRST_STACK_PARAMETER:
        return None
    return memory.displacement if memory.index is None else -1
