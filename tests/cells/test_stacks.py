"""Which frames of a dump are left out."""

from __future__ import annotations

from pytest_cudabatch.cells.stacks import without_runner

HEADER = "Current thread 0x1 (most recent call first):"
TEST = '  File "/project/test_a.py", line 3 in test_one'
FIXTURE = '  File "/site-packages/_pytest/fixtures.py", line 9 in call'
PLUGIN = '  File "/site-packages/pluggy/_callers.py", line 9 in _multicall'
OURS = '  File "/package/pytest_cudabatch/cells/child.py", line 9 in run'
MAIN = '  File "<frozen runpy>", line 88 in _run_code'


def joined(*lines: str) -> str:
    return "\n".join(lines)


def test_the_runners_outermost_frames_are_left_out_in_every_thread():
    dump = joined("Thread 0x2:", TEST, "", HEADER, TEST, FIXTURE, TEST, PLUGIN, OURS, MAIN) + "\n"
    assert without_runner(dump) == joined("Thread 0x2:", TEST, "", HEADER, TEST, FIXTURE, TEST)


def test_a_stack_without_other_frames_stays():
    dump = joined(HEADER, PLUGIN, OURS, MAIN) + "\n"
    assert without_runner(dump) == dump


def test_the_interpreters_own_start_is_left_out_on_python_3_10_too():
    dump = joined(HEADER, TEST, '  File "/usr/lib/python3.10/runpy.py", line 86 in _run_code')
    assert without_runner(dump) == joined(HEADER, TEST)


def test_nothing_stays_nothing():
    assert without_runner("") == ""
