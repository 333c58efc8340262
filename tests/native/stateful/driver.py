"""The other end of child.py."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from ..processes import clean_environment

__all__ = ["Driver"]

Word = int | str | Sequence[int]


class Driver:
    """A simulated driver in another process, which survives what a sequence of calls does."""

    def __init__(self, library: Path, variables: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-S",
                "-E",
                str(Path(__file__).with_name("child.py")),
                str(library),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=clean_environment(variables),
        )
        self._is_open = False

    def __enter__(self) -> Driver:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()

    def begin(self, variables: Mapping[str, str]) -> None:
        if self._is_open:
            self.end()
        assert self._ask(begin=dict(variables)) == "begun"
        self._is_open = True

    def end(self) -> None:
        """End the sequence. Its process must end by itself, with status 0."""
        self._is_open = False
        self._send(end=True)
        assert self._receive() == {"ended": 0}

    def call(self, name: str, *words: Word) -> Any:
        """Return the code, or the code and what was written to the words ``out``."""
        answer = self._ask(call=name, words=words)
        return answer[0] if len(answer) == 1 else tuple(answer)

    def made(self, name: str, *words: Word) -> int:
        """Make a call that must succeed; return what it wrote to its first word ``out``."""
        code, made, *_ = self.call(name, *words)
        assert code == 0, (name, words, code)
        return int(made)

    def pages(self, count: int) -> int:
        return int(self._ask(pages=count))

    def read(self, address: int, size: int) -> bytes:
        return bytes.fromhex(self._ask(read=[address, size]))

    def write(self, address: int, content: bytes) -> None:
        self._ask(write=[address, content.hex()])

    def _ask(self, **request: Any) -> Any:
        self._send(**request)
        answer = self._receive()
        if isinstance(answer, dict):
            self._is_open = False
            raise AssertionError(f"{request} ended the process with {answer['ended']}")
        return answer

    def _send(self, **request: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        self._process.stdin.flush()

    def _receive(self) -> Any:
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())
