"""Plans of KV-cache pages: what operators copy that take pools and page numbers instead of addresses.

On the device each layer has a pool of its own for keys and one for values, tokens side by side ("layer
first"); on the host a pool holds all layers of a page together ("page first"). One copy moves the tokens of
one page of one layer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pytest_cudabatch.copies.plan import GUARD_BYTES, UNIFORM_SIZES, Direction, Mixture, Place, Plan

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["PageGeometry", "PagePlan", "make_page_plan"]

_MOST_LAYERS = 8
_TOKENS = (16, 8, 4, 2, 1)
"""Tokens of a page, as many as divide its bytes."""


@dataclass(frozen=True)
class PageGeometry:
    """The pools of a plan. ``parts`` is 2 for keys and values, 1 where they share a pool (MLA).

    Both kinds of pool have room for ``pool_pages`` pages of ``page_tokens`` tokens of ``token_bytes`` bytes;
    ``device_pages`` and ``host_pages`` are the numbers of the pages that are copied, in this order.
    """

    parts: int
    layers: int
    page_tokens: int
    token_bytes: int
    pool_pages: int
    device_pages: NDArray[np.int64]
    host_pages: NDArray[np.int64]

    @property
    def page_bytes(self) -> int:
        """Bytes of one page of one layer: the size of a copy."""
        return self.page_tokens * self.token_bytes

    @property
    def device_pool_bytes(self) -> int:
        """Bytes of one layer's pool on the device."""
        return self.pool_pages * self.page_bytes

    @property
    def host_pool_bytes(self) -> int:
        """Bytes of one pool on the host, with all layers."""
        return self.layers * self.device_pool_bytes

    def device_pool_offset(self, part: int, layer: int) -> int:
        """Return where a layer's pool begins in the device buffer."""
        return GUARD_BYTES + (part * self.layers + layer) * self.device_pool_bytes

    def host_pool_offset(self, part: int) -> int:
        """Return where a pool begins in the host buffer."""
        return GUARD_BYTES + part * self.host_pool_bytes

    def tokens_of(self, pages: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the numbers of all tokens of ``pages``, which is how such operators name pages."""
        tokens: NDArray[np.int64] = (
            pages[:, None] * self.page_tokens + np.arange(self.page_tokens, dtype=np.int64)
        ).reshape(-1)
        return tokens


@dataclass(frozen=True, eq=False)
class PagePlan(Plan):
    """A plan whose buffers hold the pools of ``geometry``: one buffer on the device, one on the host."""

    geometry: PageGeometry


def make_page_plan(
    direction: Direction,
    count: int,
    seed: int,
    *,
    page_bytes: int | None = None,
    nbytes_limit: int | None = None,
) -> PagePlan:
    """Make the plan of ``count`` copies, host to device or device to host; equal arguments give equal plans.

    ``count`` is split into keys and values, layers and pages without remainder. ``page_bytes`` is the size of
    a copy (default: one of UNIFORM_SIZES, or what fits). ``nbytes_limit`` is the most memory in bytes that
    the plan may need. A quarter of each pool's pages, and at least one, is not copied.

    Raises ValueError for another direction, fewer than one copy, and a limit that cannot be kept.
    """
    if direction not in (Direction.H2D, Direction.D2H) or count < 1:
        raise ValueError(f"no pages for {count} copies {direction.value}")
    random = np.random.default_rng(seed)
    parts, layers, pages = _split(count)
    pool_pages = pages + max(1, pages // 4)
    copies_of_pools = parts * layers * pool_pages
    size = page_bytes if page_bytes is not None else _page_bytes(nbytes_limit, copies_of_pools, random)
    if nbytes_limit is not None and 2 * (copies_of_pools * size + 2 * GUARD_BYTES) > nbytes_limit:
        raise ValueError(f"{count} copies of {size} bytes in pools do not fit into {nbytes_limit} bytes")
    tokens = next(tokens for tokens in _TOKENS if size % tokens == 0)
    device_pages, host_pages = (random.permutation(pool_pages)[:pages].astype(np.int64) for _ in range(2))
    geometry = PageGeometry(parts, layers, tokens, size // tokens, pool_pages, device_pages, host_pages)
    return _plan_of(geometry, direction, seed)


def _split(count: int) -> tuple[int, int, int]:
    """Return parts, layers and pages whose product is ``count``; several layers where that is possible."""
    parts = 2 if count % 2 == 0 else 1
    rest = count // parts
    layers = next(
        layers for layers in range(min(_MOST_LAYERS, max(rest // 2, 1)), 0, -1) if rest % layers == 0
    )
    return parts, layers, rest // layers


def _page_bytes(limit: int | None, pages: int, random: np.random.Generator) -> int:
    fitting = [
        size for size in UNIFORM_SIZES if limit is None or 2 * (pages * size + 2 * GUARD_BYTES) <= limit
    ]
    if fitting:
        return int(random.choice(fitting))
    assert limit is not None  # without one every size fits
    return max((limit // 2 - 2 * GUARD_BYTES) // pages, 1)


def _plan_of(geometry: PageGeometry, direction: Direction, seed: int) -> PagePlan:
    """Write out each copy: parts, then layers, then pages."""
    parts = np.arange(geometry.parts)[:, None, None]
    layers = np.arange(geometry.layers)[None, :, None]
    pool = (parts * geometry.layers + layers) * geometry.device_pool_bytes
    on_device = pool + geometry.device_pages * geometry.page_bytes
    page = geometry.host_pages * geometry.layers + layers
    on_host = parts * geometry.host_pool_bytes + page * geometry.page_bytes
    offsets = {
        Place.DEVICE: (GUARD_BYTES + on_device).reshape(-1).astype(np.uint64),
        Place.HOST: (GUARD_BYTES + on_host).reshape(-1).astype(np.uint64),
    }
    count = len(offsets[Place.HOST])
    source, destination = (
        (Place.HOST, Place.DEVICE) if direction is Direction.H2D else (Place.DEVICE, Place.HOST)
    )
    nbytes = geometry.parts * geometry.host_pool_bytes + 2 * GUARD_BYTES
    arrays = (
        np.full(count, geometry.page_bytes, dtype=np.uint64),
        np.full(count, source, dtype=np.uint8),
        np.full(count, destination, dtype=np.uint8),
        offsets[source],
        offsets[destination],
    )
    for array in arrays:
        array.setflags(write=False)
    extents = {Place.HOST: (nbytes, 0), Place.DEVICE: (0, nbytes)}
    return PagePlan(
        direction, Mixture.UNIFORM, seed, *arrays, extents[source], extents[destination], geometry
    )
