"""F1, F3 without a copy: the loaded runtime is the pairing's, and the function found is its own.

These cases need no driver: they run on real runtimes with ``--cuda-platform=no-driver``, too.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_cudabatch import EvidenceReader, Pairing, Runtime

BATCH_FUNCTION = "cudaMemcpyBatchAsync"


@pytest.mark.cuda_cell(kind="F1", tier="smoke")
def test_the_runtime_is_the_pairings(cuda_pairing: Pairing, cuda_runtime: Runtime) -> None:
    """Version, ABI and driver are those that the pairing says; a test of another pair proves nothing."""
    assert cuda_runtime.version == cuda_pairing.runtime.version
    assert cuda_runtime.abi is cuda_pairing.runtime.abi
    assert cuda_runtime.driver_version == cuda_pairing.driver.version


@pytest.mark.cuda_cell(kind="F3")
def test_the_function_is_the_runtimes_own(
    cuda_pairing: Pairing, cuda_runtime: Runtime, cuda_evidence: EvidenceReader
) -> None:
    """A look-up by name finds the function in this runtime, or nowhere: no other library answers for it."""
    found = cuda_runtime.exports_batch
    bindings = [binding for binding in cuda_evidence().bindings if binding.function == BATCH_FUNCTION]
    owners = {Path(binding.callee.file).resolve() for binding in bindings}
    assert found is cuda_pairing.runtime.exports_batch
    assert owners == ({cuda_runtime.path.resolve()} if found else set())
