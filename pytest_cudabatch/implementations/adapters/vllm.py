"""vLLM: ``swap_blocks_batch``, by which its offloading of the KV cache moves blocks of any size.

Its callers go through ``vllm._custom_ops``, which only hands the arguments on to the operator. The operator
is what is driven here: its library alone is loaded, by torch.ops.load_library, as vLLM itself does with it;
importing all of vLLM would take its hundred dependencies.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_cudabatch.implementations.adapters.torch_bridge import TORCH_STREAMS, Torch, torch_cuda_major
from pytest_cudabatch.implementations.adapters.versions import check_release
from pytest_cudabatch.implementations.capabilities import Capabilities
from pytest_cudabatch.implementations.protocol import ExpectedPath, PairingRoutes

if TYPE_CHECKING:
    from pytest_cudabatch.copies import BoundPlan, Plan

__all__ = ["IMPLEMENTATION", "Vllm"]

LIBRARY = "_C_stable_libtorch*.so"


@dataclass(frozen=True)
class Vllm:
    """The package ``vllm``."""

    name: str = field(default="vllm", init=False)

    @cached_property
    def capabilities(self) -> Capabilities:
        """Any addresses and sizes, on the streams that torch can name."""
        return Capabilities(special_streams=TORCH_STREAMS, runtime_major=torch_cuda_major())

    def expected_path(self, plan: Plan, pairing: PairingRoutes) -> ExpectedPath:
        """Return "batch" where the driver hands the function out, whatever the runtime is."""
        if plan.count == 0:
            return "none"
        return "batch" if pairing.driver_route else "fallback"

    def open(self) -> BoundVllm:
        """Load the operator's library. Raises ImportError where it or what it needs is missing or too old."""
        check_release("vllm", "0.26.0", "0.26.0")
        torch = Torch()
        path = _library()
        try:
            torch.torch.ops.load_library(str(path))
        except OSError as error:
            raise ImportError(f"vllm: {error}", name="vllm", path=str(path)) from error
        return BoundVllm(torch, torch.torch.ops._C_cache_ops.swap_blocks_batch)


class BoundVllm:
    """The loaded operator."""

    def __init__(self, torch: Torch, operator: Any) -> None:
        self._torch = torch
        self._operator = operator

    def copy(self, plan: BoundPlan, stream: int) -> int:
        """Enqueue the copies of ``plan``; return 0 or the error code that the operator raised."""
        arrays = [self._torch.integers(values) for values in (plan.srcs, plan.dsts, plan.sizes)]
        with self._torch.stream(stream):
            try:
                self._operator(*arrays, False)  # the sources are read in the stream's order
            except RuntimeError as error:
                return self._torch.code_of(error)
        return 0


def _library() -> Path:
    """Return the operator's library in the installed package, which is not imported."""
    spec = find_spec("vllm")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        for path in sorted(Path(place).glob(LIBRARY)):
            return path
    raise ImportError(f"vllm has no {LIBRARY}", name="vllm")


IMPLEMENTATION = Vllm()
