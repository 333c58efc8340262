from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from vendor_wheels import compile_library

from pytest_cudabatch import native
from pytest_cudabatch.runtimes.x86_64 import (
    RBP,
    RDI,
    RSP,
    Memory,
    UnknownInstructionError,
    decode,
    written_registers,
)

LIBRARIES = (
    "libcudabatch_interposer.so",
    "simcuda/driver-13.0/libcuda.so.1",
    "simcuda/runtime-13.0/libcudart.so.13",
    "implementations/libreference.so",
)
FLOATS = """
double mixed(double *values, int count, char *text, long size) {
    double sum = 0;
    for (int i = 0; i < count; i++) sum += values[i] * (text[i % size] / 3) - (float)i;
    return sum;
}
"""


def disassembled(path: Path) -> Iterator[tuple[bytes, str]]:
    """Yield the bytes and the text of each instruction, by binutils."""
    command = ["objdump", "-d", "-w", "-j", ".text", str(path)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    for line in output.splitlines():
        if match := re.match(r"\s*[0-9a-f]+:\t([0-9a-f ]+)\t(.*)", line):
            yield bytes.fromhex(match[1]), match[2]


@pytest.mark.parametrize("name", LIBRARIES)
def test_lengths_are_those_of_objdump(name: str) -> None:
    found = list(disassembled(native.library(name)))
    assert len(found) > 100
    assert [(code, text) for code, text in found if decode(code + bytes(16), 0, 0).end != len(code)] == []


@pytest.mark.parametrize("level", ["-O0", "-O1", "-O2", "-O3", "-Os"])
def test_lengths_of_floating_point_code(tmp_path: Path, level: str) -> None:
    path = compile_library(tmp_path / "lib.so", FLOATS, level, "-ffast-math")
    found = list(disassembled(path))
    assert [(code, text) for code, text in found if decode(code + bytes(16), 0, 0).end != len(code)] == []


@pytest.mark.parametrize(
    ("code", "memory", "immediate"),
    [
        pytest.param("c7 07 3a 2f 00 00", Memory(RDI, None, 0), 12090, id="movl $12090,(%rdi)"),
        pytest.param("c7 04 24 01 00 00 00", Memory(RSP, None, 0), 1, id="movl $1,(%rsp)"),
        pytest.param("41 c7 04 24 01 00 00 00", Memory(12, None, 0), 1, id="movl $1,(%r12)"),
        pytest.param("48 83 7d 18 00", Memory(RBP, None, 0x18), 0, id="cmpq $0,0x18(%rbp)"),
        pytest.param("48 8b 85 20 01 00 00", Memory(RBP, None, 0x120), None, id="mov 0x120(%rbp),%rax"),
        pytest.param("49 8b 44 c5 f8", Memory(13, 0, -8), None, id="mov -8(%r13,%rax,8),%rax"),
        pytest.param("48 8b 05 10 00 00 00", Memory(None, None, 16), None, id="mov 16(%rip),%rax"),
        pytest.param("4a 8b 04 e5 10 00 00 00", Memory(None, 12, 16), None, id="mov 16(,%r12,8),%rax"),
        pytest.param("ff 75 20", Memory(RBP, None, 0x20), None, id="push 0x20(%rbp)"),
        pytest.param("66 c7 07 3a 2f", Memory(RDI, None, 0), 12090, id="movw $12090,(%rdi)"),
    ],
)
def test_operands(code: str, memory: Memory, immediate: int | None) -> None:
    content = bytes.fromhex(code)
    instruction = decode(content, 0, 0x1000)
    assert (instruction.memory, instruction.immediate) == (memory, immediate)
    assert instruction.end == 0x1000 + len(content)


@pytest.mark.parametrize(
    ("code", "target"),
    [("e8 fb ff ff ff", 0x1000), ("eb fe", 0x1000), ("74 10", 0x1012), ("0f 84 00 01 00 00", 0x1106)],
)
def test_targets(code: str, target: int) -> None:
    assert decode(bytes.fromhex(code), 0, 0x1000).target == target


@pytest.mark.parametrize(
    ("code", "written"),
    [
        pytest.param("48 85 ff", set(), id="test %rdi,%rdi"),
        pytest.param("48 39 ef", set(), id="cmp %rbp,%rdi"),
        pytest.param("48 83 ff 01", set(), id="cmp $1,%rdi"),
        pytest.param("48 83 c7 01", {RDI}, id="add $1,%rdi"),
        pytest.param("48 01 ef", {RDI, RBP}, id="add %rbp,%rdi, of which only %rdi changes"),
        pytest.param("48 8d 7d f8", {RDI}, id="lea -8(%rbp),%rdi"),
        pytest.param("48 89 7d f8", set(), id="mov %rdi,-8(%rbp)"),
        pytest.param("bf 02 00 00 00", {RDI}, id="mov $2,%edi"),
        pytest.param("5d", {RBP}, id="pop %rbp"),
        pytest.param("41 5d", {13}, id="pop %r13"),
        pytest.param("c9", {RSP, RBP}, id="leave"),
        pytest.param("0f 29 6d 80", set(), id="movaps %xmm5,-0x80(%rbp)"),
        pytest.param("ff 75 18", set(), id="push 0x18(%rbp)"),
        pytest.param("f3 48 ab", {0, 1, 6, RDI}, id="rep stos %rax,(%rdi)"),
        pytest.param("ff d0", {0, 1, 2, 6, 7, 8, 9, 10, 11}, id="call *%rax"),
    ],
)
def test_written_registers(code: str, written: set[int]) -> None:
    assert written_registers(decode(bytes.fromhex(code), 0, 0)) == written


@pytest.mark.parametrize(
    "code",
    [
        pytest.param("", id="nothing"),
        pytest.param("48", id="a prefix alone"),
        pytest.param("c7 07 3a 2f", id="cut short"),
        pytest.param("06", id="no instruction in 64-bit mode"),
        pytest.param("c5 f8 77", id="VEX: vzeroupper"),
        pytest.param("62 f1 7c 48 28 c0", id="EVEX"),
    ],
)
def test_what_is_refused(code: str) -> None:
    with pytest.raises(UnknownInstructionError):
        decode(bytes.fromhex(code), 0, 0)
