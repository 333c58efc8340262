"""The page's tables of a driver: what changes with the runtime, every call, look-ups."""

from __future__ import annotations

from pytest_cudabatch.abi import CudaVersion
from pytest_cudabatch.contract import Answer, Contract, ContractAnswer, Question, Source, page

SOURCE = Source("gpu", CudaVersion(13, 0), "observed", "A GPU, driver 580.1")
RUNTIME, DRIVER, OLD_DRIVER = "cudaMemcpyBatchAsync", "cuMemcpyBatchAsync_v2", "cuMemcpyBatchAsync"
RELEASES = ("12.8.90", "12.9.79", "13.0.96")
FINE, NINE = Answer(code=0, last_error=0, sync=0), Answer(code=0, fail_index="max", last_error=0, sync=0)
CRASH = Answer(signal="SIGSEGV")


def tables(*answers: tuple[str, str, str, Answer], source: Source = SOURCE) -> list[list[list[str]]]:
    """Return each table's lines with their cells, heads included, without the words on the call."""
    known = (
        ContractAnswer(Question(row, entry), release, answer, source)
        for row, entry, release, answer in answers
    )
    parts = page(Contract(tuple(known))).split("## Driver ")[1:]
    return [
        [line.strip("| ").split(" | ") for line in part.splitlines() if line.startswith(("| row", "| `"))]
        for part in parts
    ]


def batches(*answers: tuple[str, str, str, Answer]) -> tuple[list[list[str]], list[list[str]]]:
    by_runtime, calls, others, lookups = tables(*answers)
    assert others == lookups == []
    return by_runtime, [[line[0], *line[2:]] for line in calls]


def test_a_function_that_merely_has_no_fail_index_differs_in_nothing() -> None:
    answers = (("valid", RUNTIME, each, FINE if each[:2] == "13" else NINE) for each in RELEASES)
    assert batches(*answers) == (
        [],
        [
            ["row", "batch, with failIdx", "batch, without failIdx"],
            ["`valid`", "0, failIdx SIZE_MAX", "0"],
        ],
    )


def test_a_function_that_answers_otherwise_with_another_runtime() -> None:
    bad = Answer(code=1, last_error=0, sync=700)
    by_runtime, calls = batches(
        *(("valid", RUNTIME, each, bad if each == "12.9.79" else FINE) for each in RELEASES)
    )
    assert by_runtime == [
        ["row", "function", *RELEASES],
        ["`valid`", f"`{RUNTIME}`", "0", "1, last error 0, sync 700", "0"],
    ]
    told = f"**0**: `{RUNTIME}` (12.8.90)<br>**1, last error 0, sync 700**: `{RUNTIME}` (12.9.79)"
    assert calls[1] == ["`valid`", told, "0"]


def test_another_function_of_the_same_parameter_list_that_answers_otherwise() -> None:
    driver = [("valid", entry, each, CRASH) for entry in (OLD_DRIVER, DRIVER) for each in RELEASES]
    by_runtime, calls = batches(*(("valid", RUNTIME, each, FINE) for each in RELEASES), *driver)
    assert by_runtime == []
    assert calls[1] == [
        "`valid`",
        f"**0**: `{RUNTIME}`<br>**SIGSEGV**: `{OLD_DRIVER}`",
        f"**0**: `{RUNTIME}`<br>**SIGSEGV**: `{DRIVER}`",
    ]


def test_whole_majors_are_told_as_one() -> None:
    driver = (("valid", DRIVER, each, CRASH if each == "12.8.90" else FINE) for each in RELEASES)
    _, calls = batches(*driver)
    assert calls[1] == ["`valid`", f"**SIGSEGV**: `{DRIVER}` (12.8.90)<br>**0**: `{DRIVER}` (12.9.79, 13.x)"]


def test_look_ups_have_a_column_for_each_function() -> None:
    found = Answer(code=0, found="cuMemcpyBatchAsync")
    _, _, _, lookups = tables(("lookup-12080", "cuGetProcAddress_v2", "13.0.96", found))
    assert lookups == [
        ["row", "call", "`cuGetProcAddress_v2`"],
        ["`lookup-12080`", "Looked up for 12.8", "0, gives cuMemcpyBatchAsync"],
    ]


def test_other_calls_name_their_function_and_have_one_column() -> None:
    _, _, others, _ = tables(
        ("register-twice", "cudaHostRegister", "13.0.96", Answer(code=712, last_error=712))
    )
    assert others == [
        ["row", "call", "answer"],
        ["`register-twice`", "cudaHostRegister: a range that is registered", "712"],
    ]


def test_what_is_no_observation_says_so() -> None:
    assumed = Source("assumed", CudaVersion(13, 0), "assumed", "nobody has asked")
    _, calls, _, _ = tables(("valid", RUNTIME, "13.0.96", FINE), source=assumed)
    assert calls[1][2] == "0 (assumed)"
