"""Signals in words."""

from __future__ import annotations

import signal

__all__ = ["describe_signal", "signal_name"]


def signal_name(number: int) -> str:
    """Return a name such as ``SIGSEGV``; most real-time signals have none, and get their number."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIG{number}"


def describe_signal(name: str) -> str:
    """Say in words that a process was killed by the signal of this name (see ``signal_name``)."""
    number = getattr(signal, name, None)
    meaning = (signal.strsignal(number) if number else None) or "real-time signal"
    return f"killed by {name} ({meaning})"
