"""Classes of pairings that behave alike, so that a case needs to run on one of each only."""

from __future__ import annotations

from collections.abc import Iterable

from pytest_cudabatch.pairings.pairing import Pairing

__all__ = ["one_of_each_class", "one_of_each_major"]


def one_of_each_class(pairings: Iterable[Pairing]) -> tuple[Pairing, ...]:
    """Return the last pairing of each class, in order: those with the same two libraries behave alike.

    Meant for simulated CUDA, where one file stands for several versions that differ in nothing but the number
    that they report. On real hosts every release is a file, and so a class, of its own.
    """
    newest = {(pairing.runtime.path, pairing.driver.path): pairing for pairing in pairings}
    return tuple(newest.values())


def one_of_each_major(pairings: Iterable[Pairing]) -> tuple[Pairing, ...]:
    """Return, on the newest driver, the pairing with the newest runtime of each major version, in order.

    Runtimes without the batch function are left out. Meant for cases in which two majors meet.
    """
    having = [pairing for pairing in pairings if pairing.runtime.exports_batch]
    newest = max((pairing.driver.version for pairing in having if pairing.driver.version), default=None)
    by_runtime = sorted(
        (pairing for pairing in having if pairing.driver.version == newest),
        key=lambda pairing: pairing.runtime.version,
    )
    return tuple({pairing.runtime.version.major: pairing for pairing in by_runtime}.values())
