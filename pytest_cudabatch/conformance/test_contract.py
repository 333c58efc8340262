"""F17, F18: the libraries themselves answer as the contract says, whatever implementation is under test.

Several rows share a cell, since none of them ends the process; docs/contract.md says what each of them is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_cudabatch import ContractCheck

pytestmark = pytest.mark.cuda_pairings("runtime>=12.8 on driver==13.0")
"""Where answers of real drivers are recorded; a runtime without any there is skipped."""


@pytest.mark.cuda_cell(kind="F17", finding="attributes")
def test_attributes_that_are_taken(cuda_contract: ContractCheck) -> None:
    """Every access order, the flag, hints, and one index for many copies, which is all that may be read."""
    rows = (
        *("valid", "two-attributes", "order-any", "order-during-api-call", "flag-prefer-overlap"),
        *("hints-host-to-device", "one-index-before-a-hole"),
    )
    assert cuda_contract.differences(*rows) == []


@pytest.mark.cuda_cell(kind="F17", finding="attributes")
def test_attributes_that_are_refused(cuda_contract: ContractCheck) -> None:
    """Attributes that there are not, and indices that do not rise from 0 to below the count."""
    rows = (
        *("no-attributes", "order-zero", "order-four", "flags-two", "hint-device-99"),
        *("first-index-one", "indices-not-increasing", "indices-equal", "index-beyond-count"),
        "more-attributes-than-copies",
    )
    assert cuda_contract.differences(*rows) == []


@pytest.mark.cuda_cell(kind="F18", finding="zero-size")
def test_copies_of_no_bytes_and_batches_of_no_copies(cuda_contract: ContractCheck) -> None:
    """Refused, with the index of the empty copy; the copies before it are made all the same (cuDF)."""
    assert cuda_contract.differences("count-zero", "size-zero-only", "size-zero-second-of-two") == []


@pytest.mark.cuda_cell(kind="F18", finding="bad-address")
def test_addresses_that_are_refused(cuda_contract: ContractCheck) -> None:
    """NULL, and a range that leaves its allocation; what else is no address ends the process."""
    assert cuda_contract.differences("null-destination-second-of-three", "past-the-allocation") == []
