"""What is copied: named plans, each of one kind of cache traffic."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_cudabatch.copies import Direction, Plan, make_packing_plan

__all__ = ["PRESETS", "Preset"]

_LARGE = 51_828
"""Descriptors of one swap of a large cache, as vLLM issue 49276 reports it."""

_KV_SIZES = (128, 256, 512, 576, 1024, 1152, 4096, 8192, 16384)
_KV_GAPS = (0, 64, 256, 4096)


@dataclass(frozen=True)
class Preset:
    """A plan's recipe: ``sizes`` and source ``gaps`` in bytes are drawn from, the destination is packed.

    ``repeats`` is how many timed copies make one measurement of a round.
    """

    name: str
    direction: Direction
    count: int
    sizes: tuple[int, ...]
    gaps: tuple[int, ...]
    repeats: int

    @property
    def is_large(self) -> bool:
        """Whether ``--count`` changes it."""
        return self.count == _LARGE

    def plan(self, count: int | None, seed: int) -> Plan:
        """Make the plan; a large one with ``count`` descriptors, where that is given."""
        descriptors = count if count is not None and self.is_large else self.count
        return make_packing_plan(self.direction, descriptors, seed, sizes=self.sizes, gaps=self.gaps)


def _uniform(name: str, count: int, size: int, repeats: int) -> Preset:
    return Preset(name, Direction.H2D, count, (size,), (0, 4096), repeats)


PRESETS = {
    preset.name: preset
    for preset in (
        Preset("kv-mixed", Direction.H2D, _LARGE, _KV_SIZES, _KV_GAPS, repeats=3),
        Preset("kv-mixed-d2h", Direction.D2H, _LARGE, _KV_SIZES, _KV_GAPS, repeats=3),
        _uniform("uniform-4096", _LARGE, 4096, repeats=3),
        _uniform("call-1", 1, 4096, repeats=50),
        _uniform("call-64", 64, 4096, repeats=50),
        _uniform("call-1024", 1024, 4096, repeats=20),
        # the largest comes last: where something runs out of time or memory, the rest is known
        _uniform("uniform-32768", _LARGE, 32768, repeats=3),
    )
}
"""By name, in the order in which they run."""
