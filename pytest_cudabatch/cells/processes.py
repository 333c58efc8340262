"""What a zygote asks of Linux about processes: dying with the parent, adopting, counting, killing."""

from __future__ import annotations

import ctypes
import os
import select
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

__all__ = [
    "adopt_orphans",
    "children",
    "die_with_parent",
    "kill_children_except",
    "other_threads",
    "outlive_parent",
]

# <linux/prctl.h>
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36

_libc_prctl = ctypes.CDLL(None, use_errno=True).prctl

KILL_LIMIT = 5.0
"""Seconds for killed processes to be gone. Longer means one that the kernel cannot end."""


def die_with_parent(parent: int | None = None) -> None:
    """Have the kernel kill this process when the thread that made it ends.

    ``parent`` is its process where it is known: if that has ended already, this process ends here.
    """
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if parent is not None and os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def outlive_parent() -> None:
    """Undo ``die_with_parent``."""
    _prctl(_PR_SET_PDEATHSIG, 0)


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends, whatever session it is in."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def _prctl(option: int, value: int) -> None:
    arguments = [ctypes.c_ulong(number) for number in (value, 0, 0, 0)]
    if _libc_prctl(option, *arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"prctl({option}): {os.strerror(number)}")


def other_threads() -> tuple[str, ...]:
    """Name every thread of this process but the calling one, those that Python does not know too."""
    tasks = os.listdir("/proc/self/task")  # noqa: PTH208 - asked before every fork, where a Path costs more
    if len(tasks) == 1:
        return ()
    others = {int(task) for task in tasks} - {threading.get_native_id()}
    known = {thread.native_id: f"Python thread {thread.name!r}" for thread in threading.enumerate()}
    return tuple(known.get(other) or f"native thread {_name_of_thread(other)!r}" for other in sorted(others))


def _name_of_thread(thread: int) -> str:
    try:
        return Path(f"/proc/self/task/{thread}/comm").read_text().strip()
    except OSError:
        return f"{thread}, ended"


def children() -> frozenset[int]:
    """Return the process ids of this process's children, ended but unreaped ones included."""
    return frozenset(_children()) if _has_children() else frozenset()


def _has_children() -> bool:
    # One system call answers the common case; WNOWAIT takes no exit status away from its owner.
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _children() -> Iterator[int]:
    own = str(os.getpid())
    for entry in Path("/proc").iterdir():
        # /proc/self/task/*/children would be cheaper, but not every kernel has it (CONFIG_PROC_CHILDREN).
        if entry.name.isdigit() and _parent_of(entry) == own:
            yield int(entry.name)


def _parent_of(process: Path) -> str | None:
    try:
        status = (process / "stat").read_text(errors="replace")
    except OSError:
        return None
    # "pid (name) state ppid ...", and the name may hold anything, parentheses too
    return status.rpartition(")")[2].split()[1]


def kill_children_except(spared: frozenset[int]) -> int:
    """Kill and reap all children but the ``spared``, and theirs as they are adopted; return how many lived.

    Raises TimeoutError where one cannot be killed within KILL_LIMIT.
    """
    limit = time.monotonic() + KILL_LIMIT
    killed = 0
    while found := children() - spared:
        for child in found:
            killed += _end(child, limit)
    return killed


def _end(child: int, limit: float) -> bool:
    """Kill and reap one child; return whether it still lived."""
    if os.waitpid(child, os.WNOHANG)[0] == child:
        return False
    watched = os.pidfd_open(child)
    try:
        os.kill(child, signal.SIGKILL)
        poll = select.poll()
        poll.register(watched, select.POLLIN)
        if not poll.poll(max(0.0, limit - time.monotonic()) * 1000):
            raise TimeoutError(f"process {child} does not end on SIGKILL")
    finally:
        os.close(watched)
    os.waitpid(child, 0)
    return True
