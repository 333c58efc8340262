"""The contract cases: run where something is known, fail with their finding, ask nothing that crashes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_cudabatch.contract import load_contract

FINDINGS = {
    "cudabatch/test_contract.py::test_attributes_that_are_taken": "attributes",
    "cudabatch/test_contract.py::test_attributes_that_are_refused": "attributes",
    "cudabatch/test_contract.py::test_copies_of_no_bytes_and_batches_of_no_copies": "zero-size",
    "cudabatch/test_contract.py::test_addresses_that_are_refused": "bad-address",
}
KNOWN = {
    f"cu{answer.runtime}-d{answer.source.driver}"
    for answer in load_contract().answers
    if answer.source.basis != "assumed"
}


def run(pytester: pytest.Pytester, *arguments: str) -> list[dict[str, Any]]:
    pytester.runpytest_subprocess(
        "--cuda-matrix", "--cuda-platform=simulated", "--cuda-report=report.json", *arguments
    )
    cells: list[dict[str, Any]] = json.loads((pytester.path / "report.json").read_text())["cells"]
    return cells


def judged(cells: list[dict[str, Any]], verdict: str) -> dict[tuple[str, str], str | None]:
    return {
        (cell["case"], cell["pairing"]): (cell["finding"] or {}).get("code")
        for cell in cells
        if cell["verdict"] == verdict
    }


def test_they_pass_on_every_pairing_that_something_is_known_of(pytester: pytest.Pytester) -> None:
    cells = run(pytester, "--cuda-suite-only", "cudabatch/test_contract.py")
    assert judged(cells, "passed") == {(case, pairing): None for case in FINDINGS for pairing in KNOWN}
    assert {cell["verdict"] for cell in cells if cell["pairing"] not in KNOWN} == {"skipped"}


def test_an_answer_that_is_not_the_contracts_is_a_finding(pytester: pytest.Pytester) -> None:
    select = "--cuda-select=runtime>=12.9,<13.2 on driver==13.0"
    cells = run(
        pytester, "--cuda-suite-only", select, "--cuda-inject=batch=801", "cudabatch/test_contract.py"
    )
    expected = {
        (case, pairing): code
        for case, code in FINDINGS.items()
        for pairing in ("cu12.9-d13.0", "cu13.0-d13.0")
    }
    assert judged(cells, "failed") == expected


OWN_TEST = """
    import pytest
    from pytest_cudabatch import ContractCheck

    def test_it(cuda_contract: ContractCheck) -> None:
        known = cuda_contract.known("size-zero-only")
        assert cuda_contract.answer("size-zero-only", "cudaMemcpyAsync") == known["cudaMemcpyAsync"]
        with pytest.raises(ValueError, match="'destroyed-stream' may end the process"):
            cuda_contract.answer("destroyed-stream", "cudaMemcpyBatchAsync")
        with pytest.raises(ValueError, match="no answer to 'no-such-row' on this pairing"):
            cuda_contract.known("no-such-row")
"""


def test_a_project_may_ask_too(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_own=OWN_TEST)
    cells = run(pytester, "--cuda-no-suite", "--cuda-select=runtime==12.9 on driver>=13,<13.3")
    assert {cell["pairing"]: cell["verdict"] for cell in cells} == {
        "cu12.9-d13.0": "passed",
        "cu12.9-d13.2": "skipped",
    }
