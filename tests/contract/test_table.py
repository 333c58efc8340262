"""The page's three tables of a driver: by runtime, by function, everything."""

from __future__ import annotations

from pytest_cudabatch.abi import CudaVersion
from pytest_cudabatch.contract import Answer, Contract, ContractAnswer, Question, Source, page

SOURCE = Source("gpu", CudaVersion(13, 0), "observed", "A GPU, driver 580.1")
RUNTIME, DRIVER = "cudaMemcpyBatchAsync", "cuMemcpyBatchAsync_v2"
RELEASES = ("12.8.90", "12.9.79", "13.0.96")
FINE, NINE = Answer(code=0, last_error=0, sync=0), Answer(code=0, fail_index="max", last_error=0, sync=0)


def tables(*answers: tuple[str, str, str, Answer]) -> list[list[str]]:
    known = (
        ContractAnswer(Question(row, entry), release, answer, SOURCE)
        for row, entry, release, answer in answers
    )
    parts = page(Contract(tuple(known))).split("## Driver ")[1:]
    return [[line for line in part.splitlines()[2:] if line.startswith("| `")] for part in parts]


def test_a_function_that_merely_has_no_fail_index_differs_in_nothing() -> None:
    rows = tables(*(("valid", RUNTIME, each, FINE if each[:2] == "13" else NINE) for each in RELEASES))
    assert [len(lines) for lines in rows] == [0, 0, 1]
    assert rows[2][0].endswith(
        "| **0, failIdx SIZE_MAX**: `cudaMemcpyBatchAsync` (12.x)<br>**0**: `cudaMemcpyBatchAsync` (13.x) |"
    )


def test_a_function_that_answers_otherwise_with_another_runtime() -> None:
    bad = Answer(code=1, last_error=0, sync=700)
    rows = tables(*(("valid", RUNTIME, each, bad if each == "12.9.79" else FINE) for each in RELEASES))
    assert [len(lines) for lines in rows] == [1, 0, 1]
    assert rows[0][0].endswith(
        "| **0**: `cudaMemcpyBatchAsync` (12.8.90, 13.x)"
        "<br>**1, last error 0, sync 700**: `cudaMemcpyBatchAsync` (12.9.79) |"
    )


def test_another_function_that_answers_otherwise() -> None:
    driver = [("valid", DRIVER, each, Answer(signal="SIGSEGV")) for each in RELEASES]
    rows = tables(*(("valid", RUNTIME, each, FINE) for each in RELEASES), *driver)
    assert [len(lines) for lines in rows] == [0, 1, 1]
    assert rows[1][0].endswith("| **0**: `cudaMemcpyBatchAsync`<br>**SIGSEGV**: `cuMemcpyBatchAsync_v2` |")
