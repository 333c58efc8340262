"""Programs that fail in one way each (sources/faulty.c)."""

from __future__ import annotations

from .programs import Ended, Programs

FAULTY = """
faulty = load("TEST_FAULTY")
how, value = os.environ.get("TEST_HOW", "fail_read"), int(os.environ.get("TEST_VALUE", "4660"))
fail = faulty[how]
fail.argtypes = [c_uint64]
"""


def faulty(programs: Programs, **settings: object) -> dict[str, object]:
    return {"faulty": programs.compiler.library("libfaulty.so", "faulty.c"), **settings}


def both(programs: Programs, script: str, settings: dict[str, object]) -> tuple[Ended, Ended]:
    """Run a script recorded, and not recorded."""
    return programs.run(script, settings), programs.run(script, settings, audited=False)
