"""What an implementation can do. Cells that ask for more are skipped, with the reason."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_cudabatch.abi import CudaVersion
from pytest_cudabatch.errors import CudaBatchError

if TYPE_CHECKING:
    from pytest_cudabatch.copies import Direction, Mixture, Plan

__all__ = ["ANYTHING", "SPECIAL_STREAMS", "Capabilities", "NotCapable", "capabilities_of"]

SPECIAL_STREAMS = {0x0: "the default stream", 0x1: "cudaStreamLegacy", 0x2: "cudaStreamPerThread"}
"""Stream handles that no call creates (driver_types.h)."""

DIRECTIONS = ("h2d", "d2h", "d2d", "mixed")


class NotCapable(CudaBatchError):  # noqa: N818 - nothing is wrong: the cell is skipped
    """The implementation cannot do what a cell asks for; the message says what."""


@dataclass(frozen=True)
class Capabilities:
    """What an implementation can be asked for; what its interface has no words for is left out.

    ``directions`` are the values of Direction; ``pages_only`` says that it copies pages of KV-cache pools
    (see PagePlan) and no other addresses, ``empty_copies`` that a batch may have copies of no bytes.
    ``special_streams`` are the handles below 3 that a caller can pass, and ``runtime_major`` is the CUDA
    version whose libcudart its package brings along (None: it takes what is there).
    """

    directions: Collection[str] = field(default=DIRECTIONS)
    pages_only: bool = False
    empty_copies: bool = True
    special_streams: Collection[int] = field(default=tuple(SPECIAL_STREAMS))
    runtime_major: int | None = None

    def check_runtime(self, version: CudaVersion) -> None:
        """Raise NotCapable where the package brings a libcudart of another major version than ``version``."""
        if self.runtime_major not in (None, version.major):
            raise NotCapable(
                f"its package brings libcudart.so.{self.runtime_major}, the pairing has {version}"
            )

    def check_stream(self, stream: int) -> None:
        """Raise NotCapable where a caller has no way to pass the handle ``stream``."""
        if stream in SPECIAL_STREAMS and stream not in self.special_streams:
            raise NotCapable(f"its callers cannot name {SPECIAL_STREAMS[stream]}")

    def plan(
        self,
        direction: Direction,
        mixture: Mixture,
        count: int,
        seed: int,
        *,
        sizes: Sequence[int] | None = None,
        nbytes_limit: int | None = None,
        empty: Collection[int] | float = 0.0,
        gaps: Sequence[int] | None = None,
        closest: bool = False,
    ) -> Plan:
        """Make a plan as ``make_plan`` does, or one of pages where only those can be copied.

        With ``gaps``, and ``sizes``, it is ``make_packing_plan``'s.

        Raises NotCapable where such a plan cannot be taken. With ``closest`` the nearest plan that can is
        made instead: another direction, one size for all.
        """
        from pytest_cudabatch.copies import Direction, Mixture, make_packing_plan, make_page_plan, make_plan  # noqa: PLC0415 - numpy

        if closest:
            direction = (
                direction if direction.value in self.directions else Direction(next(iter(self.directions)))
            )
            mixture = Mixture.UNIFORM if self.pages_only else mixture
        self._check_plan(direction.value, mixture.value, empty)
        if not self.pages_only and gaps is not None and sizes is not None:
            return make_packing_plan(direction, count, seed, sizes=sizes, gaps=gaps)
        if not self.pages_only:
            return make_plan(
                direction, mixture, count, seed, sizes=sizes, nbytes_limit=nbytes_limit, empty=empty
            )
        if gaps is not None and not closest:
            raise NotCapable("it copies pages of pools, and not such that lie side by side")
        if count == 0:
            raise NotCapable("it copies one page at least")
        page_bytes = None if sizes is None else sizes[seed % len(sizes)]
        return make_page_plan(direction, count, seed, page_bytes=page_bytes, nbytes_limit=nbytes_limit)

    def check_plan(self, plan: Plan) -> None:
        """Raise NotCapable where ``plan``, which somebody else has made, cannot be taken."""
        if self.pages_only:
            raise NotCapable("it copies pages of pools, and these are other addresses")
        self._check_plan(plan.direction.value, plan.mixture.value, int((plan.sizes == 0).sum()))

    def _check_plan(self, direction: str, mixture: str, empty: Collection[int] | float) -> None:
        if direction not in self.directions:
            raise NotCapable(f"it copies {' and '.join(self.directions)}, not {direction}")
        if self.pages_only and mixture == "mixed":
            raise NotCapable("it copies pages of one size, not a mixture of sizes")
        if not self.empty_copies and empty:
            raise NotCapable("it has no copies of no bytes")


ANYTHING = Capabilities()
"""An implementation that says nothing of itself takes any plan, stream and runtime."""


def capabilities_of(implementation: object) -> Capabilities:
    """Return what ``implementation`` says of itself in its attribute ``capabilities``; else ANYTHING.

    Raises TypeError where that attribute is something else.
    """
    found: object = getattr(implementation, "capabilities", ANYTHING)
    if not isinstance(found, Capabilities):
        raise TypeError(f"the capabilities of {implementation!r} are no Capabilities but {found!r}")
    return found
