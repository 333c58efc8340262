"""sglang-kernel: pages of a KV cache between layer-first pools on the device and page-first ones on the host.

What sglang's hierarchical cache uses with its "direct" backend: ``transfer_kv_all_layer_direct_lf_pf`` writes
all layers of a page back in one call, ``transfer_kv_per_layer_direct_pf_lf`` loads one layer a call. The
package's own import is used, since it picks the library for the device and may load another libcudart.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pytest_cudabatch.implementations.adapters.torch_bridge import TORCH_STREAMS, Torch, torch_cuda_major
from pytest_cudabatch.implementations.adapters.versions import check_release
from pytest_cudabatch.implementations.capabilities import Capabilities
from pytest_cudabatch.implementations.protocol import ExpectedPath, PairingRoutes

if TYPE_CHECKING:
    from pytest_cudabatch.copies import BoundPlan, PagePlan, Plan

__all__ = ["IMPLEMENTATION", "SglKernel"]


@dataclass(frozen=True)
class SglKernel:
    """The package ``sglang-kernel``, whose modules are called ``sgl_kernel``."""

    name: str = field(default="sgl-kernel", init=False)

    @cached_property
    def capabilities(self) -> Capabilities:
        """Pages of one size, both ways between device and host."""
        return Capabilities(
            directions=("h2d", "d2h"),
            pages_only=True,
            empty_copies=False,
            special_streams=TORCH_STREAMS,
            runtime_major=torch_cuda_major(),
        )

    def expected_path(self, plan: Plan, pairing: PairingRoutes) -> ExpectedPath:
        """Return "batch" where the runtime exports the function and the driver has it, else "fallback"."""
        del plan
        return "batch" if pairing.runtime_route else "fallback"

    def open(self) -> BoundSglKernel:
        """Import the package. Raises ImportError where it, or what it needs, is missing or too old."""
        check_release("sglang-kernel", "0.4.4", "0.4.10")
        torch = Torch()
        import sgl_kernel.kvcacheio as operators  # noqa: PLC0415 - in the cell only

        return BoundSglKernel(torch, operators)


class BoundSglKernel:
    """The imported operators."""

    def __init__(self, torch: Torch, operators: Any) -> None:
        self._torch = torch
        self._operators = operators

    def copy(self, plan: BoundPlan, stream: int) -> int:
        """Enqueue the copies of ``plan``, a PagePlan; return 0 or the error code that an operator raised."""
        from pytest_cudabatch.copies import Direction, PagePlan  # noqa: PLC0415 - numpy

        pages = plan.plan
        if not isinstance(pages, PagePlan):
            raise TypeError(f"sgl-kernel copies pages of KV pools, not {pages}")
        copy = self._load if pages.direction is Direction.H2D else self._back_up
        with self._torch.stream(stream):
            try:
                copy(plan, pages)
            except RuntimeError as error:
                return self._torch.code_of(error)
        return 0

    def _back_up(self, plan: BoundPlan, pages: PagePlan) -> None:
        """Copy all layers of the pages from the device to the host, in one call."""
        device, host = self._pools(plan, pages)
        on_device, on_host = self._tokens(pages)
        layers = [layer for part in device for layer in part]
        tokens = pages.geometry.page_tokens
        self._operators.transfer_kv_all_layer_direct_lf_pf(layers, host, on_device, on_host, tokens)

    def _load(self, plan: BoundPlan, pages: PagePlan) -> None:
        """Copy the pages from the host to the device, a call for each layer."""
        device, host = self._pools(plan, pages)
        on_device, on_host = self._tokens(pages)
        for layer in range(pages.geometry.layers):
            self._operators.transfer_kv_per_layer_direct_pf_lf(
                host, [part[layer] for part in device], on_host, on_device, layer, pages.geometry.page_tokens
            )

    def _tokens(self, pages: PagePlan) -> tuple[Any, Any]:
        geometry = pages.geometry
        return (
            self._torch.torch.from_numpy(geometry.tokens_of(geometry.device_pages)),
            self._torch.torch.from_numpy(geometry.tokens_of(geometry.host_pages)),
        )

    def _pools(self, plan: BoundPlan, pages: PagePlan) -> tuple[list[list[Any]], list[Any]]:
        """Return the plan's memory as pools: on the device by part and layer, on the host by part."""
        from pytest_cudabatch.copies import Place  # noqa: PLC0415 - numpy

        geometry = pages.geometry
        device, host = (self._torch.bytes(plan.buffer(place)) for place in (Place.DEVICE, Place.HOST))

        def device_pool(part: int, layer: int) -> Any:
            start = geometry.device_pool_offset(part, layer)
            pool = device[start : start + geometry.device_pool_bytes]
            return pool.view(-1, geometry.token_bytes)

        def host_pool(part: int) -> Any:
            start = geometry.host_pool_offset(part)
            pool = host[start : start + geometry.host_pool_bytes]
            return pool.view(geometry.pool_pages, geometry.layers, geometry.page_tokens, geometry.token_bytes)

        parts, layers = range(geometry.parts), range(geometry.layers)
        on_device = [[device_pool(part, layer) for layer in layers] for part in parts]
        return on_device, [host_pool(part) for part in parts]


IMPLEMENTATION = SglKernel()
