"""Classes of pairings that behave alike, so that a case needs to run on one of each only."""

from __future__ import annotations

from collections.abc import Iterable

from pytest_cudabatch.pairings.pairing import Pairing

__all__ = ["one_of_each_class"]


def one_of_each_class(pairings: Iterable[Pairing]) -> tuple[Pairing, ...]:
    """Return the last pairing of each class, in order: those with the same two libraries behave alike.

    Meant for simulated CUDA, where one file stands for several versions that differ in nothing but the number
    that they report. On real hosts every release is a file, and so a class, of its own.
    """
    newest = {(pairing.runtime.path, pairing.driver.path): pairing for pairing in pairings}
    return tuple(newest.values())
