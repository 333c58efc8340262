"""The record beside a fetched libcudart: what it is, which wheel it came from, and its checksum."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

__all__ = ["RECORD_NAME", "Record"]

RECORD_NAME = "record.json"
"""The file name of a record; it lies in the same directory as the library."""

_SCHEMA = 1


@dataclass(frozen=True)
class Record:
    """``release`` is the runtime's full version (``"12.9.79"``), ``library`` its file name.

    ``sha256`` is the library's, in hexadecimal; ``wheel`` is the file name of the wheel it came from.
    """

    release: str
    library: str
    sha256: str
    wheel: str

    def to_json(self) -> dict[str, Any]:
        """Return the record as JSON data, with the schema's version."""
        return {"schema": _SCHEMA, **asdict(self)}

    @classmethod
    def from_json(cls, data: object) -> Record:
        """Read ``to_json``'s form. Raises ValueError that says what is wrong with it."""
        if not isinstance(data, dict) or data.get("schema") != _SCHEMA:
            raise ValueError(f"not a record of schema {_SCHEMA}")
        record = cls(*(_text(data, name) for name in cls.__annotations__))
        if not re.fullmatch(r"\d+\.\d+(\.\d+)*", record.release) or "/" in record.library:
            raise ValueError("release or library is not what a record holds")
        return record

    @classmethod
    def read(cls, directory: Path) -> Record:
        """Read the record in ``directory``. Raises OSError, or ValueError on anything but a record."""
        return cls.from_json(json.loads((directory / RECORD_NAME).read_text(encoding="utf-8")))


def _text(data: dict[str, object], name: str) -> str:
    value = data.get(name)
    if not isinstance(value, str):
        raise ValueError(f"{name!r} of the record must be text")
    return value
