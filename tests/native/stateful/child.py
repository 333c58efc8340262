"""Makes driver calls for another process: ``child.py LIBCUDA``. Each sequence runs in a fork of its own.

Requests and answers are JSON lines. ``{"begin": {variable: value}}`` forks; the fork says ``"begun"``, and
answers requests until ``{"end": true}``. ``{"ended": status}`` follows from its parent, also when it dies.

``{"call": name, "words": [...]}`` calls a function; a word is a number, ``"out"``, or a list, which stands
for the address of an array of 64-bit words. The answer is the code, and what was written to each ``out``.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import sys
from typing import Any

_MASK = 2**64 - 1
_KEPT: list[Any] = []
"""Arrays and mappings that queued work may still use; the process is short."""


def _word(word: Any, outs: list[Any]) -> ctypes.c_uint64:
    if not isinstance(word, int):
        values = [0] if word == "out" else word
        array = (ctypes.c_uint64 * len(values))(*(value & _MASK for value in values))
        _KEPT.append(array)
        if word == "out":
            outs.append(array)
        word = ctypes.addressof(array)
    return ctypes.c_uint64(word & _MASK)


def _pages(count: int) -> int:
    mapping = mmap.mmap(-1, count * mmap.PAGESIZE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    _KEPT.append(mapping)
    return ctypes.addressof(ctypes.c_char.from_buffer(mapping))


def _answer(library: ctypes.CDLL, request: dict[str, Any]) -> Any:
    if "call" in request:
        outs: list[Any] = []
        words = [_word(word, outs) for word in request["words"]]
        code = getattr(library, request["call"])(*words)
        return [code, *(int(out[0]) for out in outs)]
    if "pages" in request:
        return _pages(request["pages"])
    if "read" in request:
        return ctypes.string_at(*request["read"]).hex()
    address, content = request["write"]
    ctypes.memmove(address, bytes.fromhex(content), len(content) // 2)
    return None


def _request() -> dict[str, Any]:
    """Read a line byte by byte, as it were: the other side sends no second one before the answer."""
    text = b""
    while not text.endswith(b"\n"):
        piece = os.read(0, 1 << 16)
        if not piece:
            os._exit(0)
        text += piece
    return dict(json.loads(text))


def _tell(answer: Any) -> None:
    os.write(1, json.dumps(answer).encode() + b"\n")


def _serve(library: ctypes.CDLL, variables: dict[str, str]) -> None:
    os.environ.update(variables)
    _tell("begun")
    while "end" not in (request := _request()):
        _tell(_answer(library, request))


def main() -> None:
    library = ctypes.CDLL(sys.argv[1])
    while True:
        variables = _request()["begin"]
        child = os.fork()
        if child == 0:
            _serve(library, variables)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        _tell({"ended": os.waitstatus_to_exitcode(status)})


if __name__ == "__main__":
    main()
