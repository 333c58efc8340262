"""Cells over xdist's workers: which worker gets which, and which of them share a process there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from xdist.scheduler import LoadScopeScheduling

__all__ = ["BY_PAIRING", "affinity", "pairing_scheduler"]

BY_PAIRING = frozenset({"load", "worksteal"})
"""Modes of ``--dist`` in which any worker may get any cell; cells that share a process are kept together."""


def affinity(nodeid: str, distribution: str) -> str | None:
    """Name what brings this cell to its worker: cells of one name come to one worker; None is no such thing.

    ``distribution`` is the mode of ``--dist``.
    """
    if distribution in BY_PAIRING or distribution in ("no", "each"):
        return ""
    if distribution == "loadfile":
        return nodeid.partition("::")[0]
    if distribution == "loadscope":
        return nodeid.rpartition("::")[0]
    # loadgroup: xdist adds a test's group to its id, and deals tests without one out singly.
    return nodeid.rpartition("@")[2] if "@" in nodeid.rpartition("]")[2] else None


def pairing_scheduler(config: Any, log: Any, pairings: list[str]) -> LoadScopeScheduling:
    """Return a scheduler that gives all cells of a pairing to one worker."""
    from xdist.scheduler import LoadScopeScheduling  # noqa: PLC0415 - only with xdist

    class PairingScheduling(LoadScopeScheduling):  # type: ignore[misc] # xdist is not typed
        """Groups by pairing."""

        def _split_scope(self, nodeid: str) -> str:
            # xdist documents this method as the one to override for groups of one's own.
            return next((pairing for pairing in pairings if nodeid.endswith(f"{pairing}]")), nodeid)

    return PairingScheduling(config, log)
