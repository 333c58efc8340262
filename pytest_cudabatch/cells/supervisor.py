"""A zygote as its users see it: started when first needed, replaced when lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType

from pytest_cudabatch.cells.batch import Batch, BatchCell, run_batch
from pytest_cudabatch.cells.cell import CellRefusedError, run_cell
from pytest_cudabatch.cells.launch import Environment, RunningZygote
from pytest_cudabatch.cells.outcome import CollectedItem, CollectionError, Outcome
from pytest_cudabatch.cells.protocol import Json
from pytest_cudabatch.errors import CellError

__all__ = ["Zygote"]


class Zygote:
    """A fresh interpreter that has collected an environment's tests and forks one child per run.

    Lazy: ``start``, ``items``, ``errors`` and ``run`` start it. One thread uses it at a time, and the thread
    that starts it outlives the start. A zygote that is lost (a test killed it) costs the run a CellError and
    is started anew by the next. Close it, or use it with ``with``.
    """

    def __init__(self, environment: Environment, *, start_limit: float = 60.0) -> None:
        self.environment = environment
        self._start_limit = start_limit
        self._running: RunningZygote | None = None

    def start(self) -> None:
        """Start and collect, unless that is done.

        Raises CellError, with the zygote's own output, where it ends or is not ready within ``start_limit``
        seconds.
        """
        self._started()

    @property
    def items(self) -> tuple[CollectedItem, ...]:
        """What was collected, in pytest's order."""
        return tuple(self._started().items.values())

    @property
    def errors(self) -> tuple[CollectionError, ...]:
        """What failed to be collected, such as a module that does not import; ``items`` run all the same."""
        return self._started().errors

    def item(self, nodeid: str) -> CollectedItem:
        """Return the item of this node id. Raises CellError where there is none."""
        items = self._started().items
        if nodeid not in items:
            where = f"{len(items)} items and {len(self.errors)} errors of {self.environment.name!r}"
            raise CellError(f"{nodeid} is not among the {where}")
        return items[nodeid]

    def run(self, nodeid: str, *, deadline: float, payload: Mapping[str, Json] | None = None) -> Outcome:
        """Run one item in a process of its own, for ``deadline`` seconds from now at most.

        The child finds ``payload`` in ``config.stash[PAYLOAD]``. Whatever the test does is an Outcome; raises
        CellError where there is no such item or the machinery failed, CellRefusedError where the zygote is in
        no state to be forked.
        """
        self.item(nodeid)
        try:
            return run_cell(self._started(), nodeid, deadline, payload or {})
        except CellRefusedError:
            raise
        except BaseException:
            # A lost zygote, or Ctrl-C with a child still running: closing ends both.
            self.close()
            raise

    def run_batch(self, cells: Sequence[BatchCell]) -> Batch:
        """Run items one after the other in one process; see Batch for what then counts. Raises as ``run``."""
        for cell in cells:
            self.item(cell.nodeid)
        try:
            return run_batch(self._started(), cells)
        except CellRefusedError:
            raise
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End the zygote and whatever runs below it. It may be started again."""
        running, self._running = self._running, None
        if running is not None:
            running.close()

    def _started(self) -> RunningZygote:
        if self._running is None:
            self._running = RunningZygote(self.environment, self._start_limit)
        return self._running

    def __enter__(self) -> Zygote:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
