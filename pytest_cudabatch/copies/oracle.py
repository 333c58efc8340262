"""The oracle: the same copies, one after the other, in the plainest way that CUDA has."""

from __future__ import annotations

from pytest_cudabatch.copies.bound import BoundPlan

__all__ = ["copy_one_by_one"]


def copy_one_by_one(bound: BoundPlan) -> None:
    """Run the plan's copies with cudaMemcpy and wait for each. Raises CudaError where one fails.

    cudaMemcpy is not among the calls that count as an implementation's own per-copy path. A loop over
    descriptors on purpose: this is what a batch is compared with.
    """
    for dst, src, size in zip(bound.dsts.tolist(), bound.srcs.tolist(), bound.sizes.tolist(), strict=True):
        bound.memory.memcpy(dst, src, size)
    bound.memory.device_synchronize()  # a device-to-device cudaMemcpy may return before it is done
