"""Faults that a program handles and lives on after."""

from __future__ import annotations

import signal

import pytest

from .faulty import FAULTY, both, faulty
from .programs import Programs

SURVIVED = (
    FAULTY
    + """
faulty.handle_by_recovering()
claim()
faulty.read_recovering.argtypes = [c_uint64]
say(recovered=[faulty.read_recovering(address) for address in (0x1000, 0x2000, 0x3000)])
"""
)


def test_program_that_recovers_recovers_as_often_as_it_likes(programs: Programs) -> None:
    recorded, alone = both(programs, SURVIVED, faulty(programs))
    assert recorded.said == alone.said == [{"recovered": [1, 1, 1]}]
    assert recorded.status == alone.status == 0
    assert recorded.evidence.fault is not None
    assert recorded.evidence.fault.address == 0x1000


RECOVERED_AND_CALLED = (
    FAULTY
    + """
runtime, caller = load("TEST_RUNTIME"), load("TEST_CALLER")
stream = new_stream(runtime)
faulty.handle_by_recovering()
claim()
faulty.read_recovering.argtypes = [c_uint64]
for address, handler in ((0x1000, None), (0x2000, signal.SIG_DFL)):
    assert faulty.read_recovering(address) == 1
    if handler is not None:
        signal.signal(signal.SIGSEGV, handler)
    assert caller.caller_copy(words(0, 0, 0, 1, 0, 0, 1, stream, 0, 0)) == 0
"""
)


@pytest.mark.parametrize(("then", "address"), [("", None), ("fail(0x3000)", 0x3000)])
def test_fault_that_was_survived_is_not_taken_for_the_end(
    programs: Programs, then: str, address: int | None
) -> None:
    runtime = programs.compiler.runtime(13)
    libraries = faulty(programs, runtime=runtime, caller=programs.compiler.caller("linked", runtime))
    ended = programs.run(f"import signal{RECOVERED_AND_CALLED}{then}", libraries)
    assert ended.errors == ""
    assert ended.status == (0 if address is None else -signal.SIGSEGV)
    assert (ended.evidence.fault and ended.evidence.fault.address) == address
