"""Rows, entries and the argument words that they make, without any library."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pytest_cudabatch.abi import BatchAbi, CudaVersion, MemcpyAttributes
from pytest_cudabatch.contract import ROWS, Question, questions_for
from pytest_cudabatch.contract.batch import Attributes, Batch, _Operation
from pytest_cudabatch.contract.bench import Bench
from pytest_cudabatch.contract.entries import ENTRIES, entry_of
from pytest_cudabatch.contract.row_table import BATCH_ROWS
from pytest_cudabatch.contract.words import LITTER

OLD, NEW = BatchAbi.V12080, BatchAbi.V13000
STREAM = 0x5EA


def batch_on(abi: BatchAbi) -> Batch:
    """A batch on addresses that nobody touches here."""
    bench = SimpleNamespace(runtime=SimpleNamespace(abi=abi), pinned=0x10000, device=0x700000)
    batch = Batch(cast(Bench, bench), STREAM)
    batch.set_copies(1)
    return batch


@pytest.mark.parametrize("abi", [OLD, NEW])
def test_every_row_is_put_to_something(abi: BatchAbi) -> None:
    asked = {question.row for question in questions_for(abi)}
    nine_only = {row.name for row in BATCH_ROWS.values() if row.nine_only}
    assert set(ROWS) - asked == set()
    assert {question.entry for question in questions_for(abi) if question.row in nine_only} == {
        entry.name for entry in ENTRIES if entry.has_fail_index(abi)
    }


def test_no_question_is_there_twice() -> None:
    for abi in BatchAbi:
        questions = list(questions_for(abi))
        assert len(questions) == len(set(questions))


def test_a_function_is_asked_of_runtimes_that_have_it() -> None:
    newest = "cudaMemcpyWithAttributesAsync"
    asked = {
        minor: newest in {question.entry for question in questions_for(NEW, CudaVersion(13, minor))}
        for minor in (0, 1, 2, 5)
    }
    assert asked == {0: False, 1: False, 2: True, 5: True}


def test_rows_that_crash_are_asked_alone() -> None:
    assert {name for name in ROWS if Question(name, "cudaMemcpyBatchAsync").alone} == {
        "attributes-null",
        "destroyed-stream",
        "device-address-far-outside",
        "host-address-0x10",
        "pageable-address-not-mapped",
        "wrong-parameter-list",
    }


@pytest.mark.parametrize(
    ("entry", "abi", "parameters"),
    [
        ("cudaMemcpyBatchAsync", OLD, 9),
        ("cudaMemcpyBatchAsync_ptsz", NEW, 8),
        ("cuMemcpyBatchAsync", NEW, 9),
        ("cuMemcpyBatchAsync_v2_ptsz", OLD, 8),
        ("cudaMemcpy3DBatchAsync", OLD, 5),
        ("cudaMemcpy3DBatchAsync", NEW, 4),
        ("cuMemcpy3DBatchAsync", NEW, 5),
        ("cuMemcpy3DBatchAsync_v2", OLD, 4),
        ("cudaMemcpyAsync", NEW, 5),
        ("cudaMemcpyWithAttributesAsync", NEW, 5),
    ],
)
def test_right_list_ends_with_the_stream(entry: str, abi: BatchAbi, parameters: int) -> None:
    words = batch_on(abi).words(entry_of(entry))
    assert (len(words), words[-1]) == (parameters, STREAM)
    assert entry_of(entry).parameters(abi) == parameters


@pytest.mark.parametrize(
    ("entry", "abi", "tail"),
    [
        ("cudaMemcpyBatchAsync", OLD, [1, STREAM, LITTER]),
        ("cudaMemcpyBatchAsync", NEW, [1, "failIdx", STREAM]),
        ("cudaMemcpy3DBatchAsync", OLD, [0, STREAM, LITTER]),
        ("cudaMemcpy3DBatchAsync", NEW, ["failIdx", 0, STREAM]),
    ],
)
def test_wrong_list_is_the_other_abis(entry: str, abi: BatchAbi, tail: list[Any]) -> None:
    batch = batch_on(abi)
    batch.wrong_list = True
    expected = [batch.fail_index.address if word == "failIdx" else word for word in tail]
    assert batch.words(entry_of(entry))[-3:] == expected


def test_attributes_are_laid_out_as_cuda_has_them() -> None:
    values = Attributes(1, (2, 3), (4, 5), 6).values()
    assert bytes((ctypes.c_int * 6)(*values)) == bytes(MemcpyAttributes(1, 2, 3, 4, 5, 6))


def test_3d_operation_is_laid_out_as_cuda_has_it() -> None:
    assert ctypes.sizeof(_Operation) == 112
    offsets = {name: getattr(_Operation, name).offset for name, *_ in _Operation._fields_}
    assert (offsets["source"], offsets["destination_type"], offsets["width"]) == (8, 40, 80)
    assert (offsets["order"], offsets["flags"]) == (104, 108)
