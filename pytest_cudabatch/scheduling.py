"""Cells over xdist's workers: which worker gets which, and which of them share a process there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest
    from xdist.scheduler import LoadScopeScheduling

__all__ = ["BY_PAIRING", "affinity", "pairing_scheduler", "without_group", "worker_number"]

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
    return nodeid.removeprefix(without_group(nodeid, distribution)) or None


def without_group(nodeid: str, distribution: str) -> str:
    """Return the id as pytest made it: in ``loadgroup`` xdist adds ``@`` and the test's group."""
    if distribution != "loadgroup":
        return nodeid
    # Parameters and directories may hold an "@" of their own.
    start = nodeid.rfind("]") if "]" in nodeid else nodeid.rfind("::")
    end = nodeid.find("@", max(0, start))
    return nodeid if end < 0 else nodeid[:end]


def worker_number(config: pytest.Config) -> tuple[int, int] | None:
    """Return this xdist worker's number, from 0, and how many there are; None in a process that is none.

    Workers that replace dead ones have numbers beyond.
    """
    told: dict[str, Any] | None = getattr(config, "workerinput", None)
    return None if told is None else (int(told["workerid"].removeprefix("gw")), int(told["workercount"]))


def pairing_scheduler(config: Any, log: Any, pairings: list[str]) -> LoadScopeScheduling:
    """Return a scheduler that gives all cells of a pairing to one worker."""
    from xdist.scheduler import LoadScopeScheduling  # noqa: PLC0415 - only with xdist

    class PairingScheduling(LoadScopeScheduling):  # type: ignore[misc] # xdist is not typed
        """Groups by pairing."""

        def _split_scope(self, nodeid: str) -> str:
            # xdist documents this method as the one to override for groups of one's own.
            return next((pairing for pairing in pairings if nodeid.endswith(f"{pairing}]")), nodeid)

        def remove_node(self, node: Any) -> str | None:
            """Return the item that a worker died with; unlike xdist's own, do not deal it out again."""
            workload = self.assigned_work.pop(node)
            pending = [
                (unit, nodeid) for unit in workload.values() for nodeid, done in unit.items() if not done
            ]
            if not pending:
                return None
            unit, crashed = pending[0]
            unit[crashed] = True
            self.workqueue.update({scope: unit for scope, unit in workload.items() if not all(unit.values())})
            for other in self.assigned_work:
                self._reschedule(other)
            return str(crashed)

    return PairingScheduling(config, log)
