"""F3, F6: two runtimes in a process, and the function taken is the one that its version was asked of.

An implementation that links one major version of libcudart, shared or static, meets another one that was
loaded before it. Nothing of CUDA is in the process but what a case loads. The cases need no driver: without
one every copy answers 35, but who was asked for the version, whose function was called and with which
parameters is in the evidence all the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import pytest

from pytest_cudabatch import Direction, Mixture

if TYPE_CHECKING:
    from pytest_cudabatch import BatchCopy, Blame, EvidenceReader, LoadOrder

NO_DRIVER = 35
"""cudaErrorInsufficientDriver: what every libcudart answers where there is no driver at all."""

Linkage = Literal["shared", "static"]
Visibility = Literal["global", "local"]

ALSO_LOADED: dict[str, tuple[int, Visibility] | None] = {
    "nothing": None,
    "12-global": (12, "global"),
    "12-local": (12, "local"),
    "13-global": (13, "global"),
    "13-local": (13, "local"),
}


def check(order: LoadOrder, batch_copy: BatchCopy, evidence: EvidenceReader, finding: Blame) -> None:
    """Copy eight pages: right bytes by the announced path, and each call with the callee's parameters.

    Without a driver nothing is copied; the batch call must have been tried then, not a single copy alone.
    """
    pages = batch_copy.capabilities.plan(Direction.H2D, Mixture.UNIFORM, 8, seed=0)
    plan, stream = order.plan(pages), order.stream()
    if order.pairing.platform != "no-driver":
        batch_copy.check(plan, stream)
    else:
        code = batch_copy(plan, stream, announce=("none", "fallback"))
        with finding("silent-fallback"):
            tried = evidence().batch_count > 0
            assert tried or code != NO_DRIVER, "single copies answered; the batch call was never tried"
    seen = evidence()
    assert None not in {call.given for call in seen.batch_calls()}
    assert seen.mismatches == ()


@pytest.mark.cuda_cell(kind="F3", pairings="major")
@pytest.mark.parametrize("also", ALSO_LOADED)
@pytest.mark.parametrize("linkage", ["shared", "static"])
def test_load_order(
    cuda_load_order: LoadOrder,
    cuda_evidence: EvidenceReader,
    cuda_finding: Blame,
    linkage: Linkage,
    also: str,
) -> None:
    """The load-order matrix: what it links, and what was loaded before it.

    A version from the linked runtime with a function from another one is a split (sgl-kernel); a static
    runtime, in which dlsym finds nothing, must not lead to single copies without a word.
    """
    if loaded := ALSO_LOADED[also]:
        cuda_load_order.load(*loaded)
    check(cuda_load_order, cuda_load_order.open(linkage), cuda_evidence, cuda_finding)


@pytest.mark.cuda_cell(kind="F6", pairings="major")
@pytest.mark.parametrize("torch", [12, 13])
@pytest.mark.parametrize("linkage", ["shared", "static"])
def test_beside_torchs_runtime(
    cuda_load_order: LoadOrder,
    cuda_evidence: EvidenceReader,
    cuda_finding: Blame,
    linkage: Linkage,
    torch: int,
) -> None:
    """A library that needs torch's runtime is opened RTLD_GLOBAL, long before an extension is imported."""
    cuda_load_order.load(torch, "torch")
    check(cuda_load_order, cuda_load_order.open(linkage), cuda_evidence, cuda_finding)


@pytest.mark.cuda_cell(kind="F3", pairings="major")
@pytest.mark.parametrize("visibility", ["global", "local"])
def test_the_other_major_was_loaded_first(
    cuda_load_order: LoadOrder, cuda_evidence: EvidenceReader, cuda_finding: Blame, visibility: Visibility
) -> None:
    """As it is built, in a process with the pairing's runtime and, before that, one of the other major."""
    cuda_load_order.load(cuda_load_order.other_major, visibility)
    check(cuda_load_order, cuda_load_order.open(), cuda_evidence, cuda_finding)
