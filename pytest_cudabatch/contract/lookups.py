"""Rows about looking the driver's batch function up by name and version."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

__all__ = ["BATCH_FUNCTIONS", "LOOKUP_ROWS", "LookupRow"]

BATCH_FUNCTIONS = (
    "cuMemcpyBatchAsync",
    "cuMemcpyBatchAsync_ptsz",
    "cuMemcpyBatchAsync_v2",
    "cuMemcpyBatchAsync_v2_ptsz",
)
"""What a look-up may hand out."""

_BATCH = "cuMemcpyBatchAsync"
_VERSIONED = ("cuGetProcAddress_v2", "cudaGetDriverEntryPointByVersion")
_ALL = (*_VERSIONED, "cudaGetDriverEntryPoint")


@dataclass(frozen=True)
class LookupRow:
    """A look-up of ``function`` for ``version`` (0: ten above the driver's own), with ``flags``."""

    name: str
    about: str
    entries: Collection[str]
    function: str
    version: int
    flags: int = 0

    alone = False


LOOKUP_ROWS: dict[str, LookupRow] = {
    row.name: row
    for row in (
        LookupRow("lookup-12080", "Looked up for 12.8", _VERSIONED, _BATCH, 12080),
        LookupRow("lookup-12080-per-thread", "For 12.8, flag 2", _VERSIONED, _BATCH, 12080, 2),
        LookupRow("lookup-13000", "Looked up for 13.0", _VERSIONED, _BATCH, 13000),
        LookupRow("lookup-13000-per-thread", "For 13.0, flag 2", _VERSIONED, _BATCH, 13000, 2),
        LookupRow("lookup-own-version", "Looked up for the runtime's own version", _ALL[2:], _BATCH, 0),
        LookupRow("lookup-too-old", "For 12.7, which did not have it", _VERSIONED, _BATCH, 12070),
        LookupRow("lookup-too-new", "For the minor version after the driver's", _VERSIONED, _BATCH, 0),
        LookupRow("lookup-unknown", "A name that no driver has", _ALL, "cuMemcpyNoSuchAsync", 12080),
    )
}
"""By name, in the order of the tables."""
