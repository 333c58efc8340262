"""Traces as files: small, quick to read, and nothing of a hostile one is believed."""

from __future__ import annotations

import json
import time
import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from host_runtime import HostRuntime

from pytest_cudabatch.copies import (
    GUARD_BYTES,
    MIXED_SIZES,
    BoundPlan,
    Direction,
    MemoryKind,
    Mixture,
    Trace,
    copy_one_by_one,
    plan_of,
)
from pytest_cudabatch.copies.traces import MAGIC, SCHEMA
from pytest_cudabatch.errors import UsageError


def make_trace(counts: list[int], sizes: tuple[int, ...] = MIXED_SIZES, seed: int = 0) -> Trace:
    """Return a trace whose copies lead from pages of a pinned cache to packed pages on the device."""
    random = np.random.default_rng(seed)
    total = sum(counts)
    drawn = random.choice(np.array(sizes, np.uint64), total)
    pages = random.permutation(total).astype(np.uint64) * np.uint64(16384)
    ends = np.cumsum(drawn, dtype=np.uint64)
    batches = len(counts)
    return Trace(
        processes=("/usr/bin/python3",),
        functions=("cudaMemcpyBatchAsync",),
        skipped=0,
        region_kinds=np.array([MemoryKind.PINNED, MemoryKind.DEVICE], np.uint8),
        region_nbytes=np.array([total * 16384, int(ends[-1])], np.uint64),
        region_places=np.zeros(2, np.uint16),
        batch_processes=np.zeros(batches, np.uint16),
        batch_functions=np.zeros(batches, np.uint8),
        batch_given=np.full(batches, 8, np.uint8),
        batch_streams=np.arange(batches, dtype=np.int32) % 4 - 2,
        batch_counts=np.array(counts, np.uint32),
        batch_attributes=np.ones(batches, np.uint32),
        batch_codes=np.zeros(batches, np.int32),
        sizes=drawn,
        src_regions=np.zeros(total, np.uint32),
        dst_regions=np.ones(total, np.uint32),
        src_offsets=pages,
        dst_offsets=ends - drawn,
        attributes=np.tile(np.array([1, 0, 0, 0, 0, 0], np.int32), (batches, 1)),
        attribute_starts=np.zeros(batches, np.uint64),
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "kept.trace"


@pytest.mark.parametrize("counts", [[1], [5, 0, 300], [2] * 50])
def test_a_trace_is_read_as_it_was_written(path: Path, counts: list[int]) -> None:
    trace = make_trace(counts)
    trace.save(path)
    loaded = Trace.load(path)
    assert loaded == trace
    assert loaded != replace(trace, skipped=1)
    assert loaded != replace(trace, sizes=trace.sizes + np.uint64(1))
    assert [batch.count for batch in loaded] == counts
    last = loaded.batch(len(counts) - 1)
    assert np.array_equal(last.src_offsets, trace.src_offsets[len(trace.sizes) - counts[-1] :])
    with pytest.raises(IndexError, match=f"has {len(counts)} batches"):
        loaded.batch(len(counts))


def test_an_empty_trace(path: Path) -> None:
    trace = make_trace([1])
    arrays = {name: value[:0] for name, value in vars(trace).items() if isinstance(value, np.ndarray)}
    empty = replace(trace, processes=(), functions=(), **arrays)
    empty.save(path)
    assert Trace.load(path) == empty
    assert list(Trace.load(path)) == []


def test_extreme_numbers_come_back(path: Path) -> None:
    trace = make_trace([4])
    extreme = np.array([0, 2**64 - 1, 2**63, 12345], np.uint64)
    trace = replace(trace, src_offsets=extreme, sizes=extreme[::-1].copy())
    trace.save(path)
    assert Trace.load(path) == trace


def test_a_million_descriptors_are_small_and_quick_to_read(path: Path) -> None:
    trace = make_trace([50_000] * 20)
    trace.save(path)
    assert path.stat().st_size < 8_000_000
    started = time.process_time()
    loaded = Trace.load(path)
    assert time.process_time() - started < 1.0
    assert loaded == trace


@pytest.mark.parametrize("sizes", [MIXED_SIZES, (576,)], ids=["mixed", "uniform"])
def test_pages_scattered_on_both_sides_are_small_too(path: Path, sizes: tuple[int, ...]) -> None:
    count = 100_000
    trace = make_trace([count], sizes)
    pages = np.random.default_rng(1).permutation(10 * count)[:count].astype(np.uint64) * np.uint64(16384)
    replace(trace, dst_offsets=pages).save(path)
    assert path.stat().st_size < 8 * count


def damaged(path: Path, content: bytes) -> str:
    path.write_bytes(content)
    with pytest.raises(UsageError) as caught:
        Trace.load(path)
    [message] = caught.value.problems
    assert "\n" not in message
    return message.removeprefix(f"{path} ")


def test_files_that_are_no_traces(path: Path) -> None:
    assert damaged(path, b"") == "is no trace"
    assert damaged(path, b"\x7fELF" + bytes(100)) == "is no trace"
    path.unlink()
    with pytest.raises(UsageError, match=r"^cannot read .*: No such file or directory$"):
        Trace.load(path)


def test_every_shorter_file_is_refused(path: Path) -> None:
    make_trace([3, 2]).save(path)
    whole = path.read_bytes()
    for length in range(len(MAGIC), len(whole), 5):
        assert damaged(path, whole[:length]).startswith("is a damaged trace: ")
    assert "something follows" in damaged(path, whole + b"\0")


def test_no_change_of_a_byte_does_more_than_a_refusal(path: Path) -> None:
    """Where the file is still a trace, it is one that can be walked through."""
    make_trace([3, 2]).save(path)
    whole = path.read_bytes()
    places = range(len(MAGIC), len(whole), 3)
    refused = 0
    for place in places:
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x31]) + whole[place + 1 :])
        try:
            loaded = Trace.load(path)
        except UsageError:
            refused += 1
        else:
            assert sum(batch.count for batch in loaded) == len(loaded.sizes)
    assert refused > len(places) * 0.8


def with_header(whole: bytes, **changes: object) -> bytes:
    start = len(MAGIC) + 4
    end = start + int.from_bytes(whole[len(MAGIC) : start], "little")
    text = json.dumps({**json.loads(whole[start:end]), **changes}).encode()
    return MAGIC + len(text).to_bytes(4, "little") + text + whole[end:]


def test_headers_that_do_not_fit_their_file(path: Path) -> None:
    make_trace([3, 2]).save(path)
    whole = path.read_bytes()
    header = json.loads(with_header(whole)[len(MAGIC) + 4 :].split(b"}")[0] + b"}")
    columns = header["columns"]

    def column(name: str, **changes: object) -> bytes:
        fields = ("name", "dtype", "coding", "count", "scale", "stored")
        rows = [
            [changes.get(field, value) for field, value in zip(fields, row, strict=True)]
            if row[0] == name
            else row
            for row in columns
        ]
        return with_header(whole, columns=rows)

    assert damaged(path, with_header(whole, schema="another")) == (
        f"is a damaged trace: its schema is 'another', not {SCHEMA!r}"
    )
    assert "impossible numbers" in damaged(path, column("sizes", count=-1))
    assert "impossible numbers" in damaged(path, column("sizes", count=True))
    assert "impossible numbers" in damaged(path, column("sizes", scale=0))
    assert "there is no column 'sizes' of '<i8'" in damaged(path, column("sizes", dtype="<i8"))
    assert "cannot be coded as 'distances'" in damaged(path, column("sizes", coding="distances"))
    assert "cannot be coded as 7" in damaged(path, column("src_offsets", coding=7))
    assert "not those of a trace" in damaged(path, with_header(whole, columns=columns[1:]))
    assert "differ in length" in damaged(path, column("sizes", count=4))
    assert "another length" in damaged(path, column("region_nbytes", count=1))
    assert "more than the" in damaged(path, column("sizes", count=2**40))
    assert "no texts" in damaged(path, with_header(whole, processes=[1]))
    assert "a function that it does not have" in damaged(path, with_header(whole, functions=[]))
    assert "is a damaged trace" in damaged(path, with_header(whole, columns=None))
    assert "is a damaged trace" in damaged(path, with_header(whole, skipped="many"))


def test_columns_that_do_not_fit_each_other(path: Path) -> None:
    trace = make_trace([3, 2])
    cases = {
        "other descriptors": replace(trace, batch_counts=np.array([3, 3], np.uint32)),
        "other attributes": replace(trace, batch_attributes=np.array([1, 0], np.uint32)),
        "a region": replace(trace, src_regions=np.full(5, 2, np.uint32)),
        "a process": replace(trace, batch_processes=np.array([0, 1], np.uint16)),
        "a stream": replace(trace, batch_streams=np.array([0, -5], np.int32)),
        "of batches differ": replace(trace, batch_codes=np.zeros(3, np.int32)),
        "of regions or": replace(trace, region_places=np.zeros(3, np.uint16)),
    }
    for problem, wrong in cases.items():
        wrong.save(path)
        assert problem in damaged(path, path.read_bytes())


def test_a_bomb_takes_no_memory(path: Path) -> None:
    """A column that unpacks to more than its header says, and a header that says more than is allowed."""
    make_trace([200_000], sizes=(512,)).save(path)
    whole = path.read_bytes()
    tracemalloc.start()
    try:
        with pytest.raises(UsageError, match="more than the 1000000 allowed"):
            Trace.load(path, limit=1_000_000)
        assert tracemalloc.get_traced_memory()[1] < 4_000_000
    finally:
        tracemalloc.stop()
    assert len(whole) < 1_000_000


def test_a_batch_as_a_plan_moves_the_same_bytes() -> None:
    trace = make_trace([40, 60])
    plan = plan_of(trace, 1)
    batch = trace.batch(1)
    assert (plan.direction, plan.mixture, plan.count) == (Direction.H2D, Mixture.MIXED, 60)
    assert np.array_equal(plan.sizes, batch.sizes)
    for offsets, old in ((plan.src_offsets, batch.src_offsets), (plan.dst_offsets, batch.dst_offsets)):
        assert np.array_equal(offsets % 4096, old % np.uint64(4096))
        assert np.array_equal(np.argsort(offsets), np.argsort(old))  # in the same order in memory
        assert offsets.min() >= GUARD_BYTES
    gaps = np.diff(np.sort(plan.dst_offsets)) - plan.sizes[np.argsort(plan.dst_offsets)][:-1]
    assert not gaps.any()  # packed, as in the trace
    assert plan.nbytes < trace.region_nbytes.sum()
    with BoundPlan(plan, HostRuntime()) as bound:  # type: ignore[arg-type]
        bound.fill()
        copy_one_by_one(bound)
        assert bound.verify() == []


def test_regions_and_kinds_make_the_directions_of_a_plan() -> None:
    trace = make_trace([6], sizes=(512,))
    kinds = [
        MemoryKind.DEVICE,
        MemoryKind.MANAGED,
        MemoryKind.PINNED,
        MemoryKind.REGISTERED,
        MemoryKind.PAGEABLE,
        MemoryKind.NULL,
        MemoryKind.BEYOND,
    ]
    trace = replace(
        trace,
        region_kinds=np.array(kinds, np.uint8),
        region_nbytes=np.full(7, 1 << 20, np.uint64),
        region_places=np.zeros(7, np.uint16),
    )

    def direction(source: MemoryKind, destination: MemoryKind) -> Direction:
        moved = replace(
            trace, src_regions=np.full(6, source, np.uint32), dst_regions=np.full(6, destination, np.uint32)
        )
        return plan_of(moved, 0).direction

    assert direction(MemoryKind.PAGEABLE, MemoryKind.DEVICE) is Direction.H2D
    assert direction(MemoryKind.MANAGED, MemoryKind.REGISTERED) is Direction.D2H
    assert direction(MemoryKind.DEVICE, MemoryKind.MANAGED) is Direction.D2D
    assert direction(MemoryKind.PINNED, MemoryKind.PAGEABLE) is Direction.MIXED
    with pytest.raises(ValueError, match="batch 0 has addresses that can hold no memory, such as NULL"):
        direction(MemoryKind.NULL, MemoryKind.DEVICE)
    with pytest.raises(ValueError, match="can hold no memory"):
        direction(MemoryKind.DEVICE, MemoryKind.BEYOND)
    huge = replace(trace, sizes=np.full(6, 2**60, np.uint64))
    with pytest.raises(ValueError, match="batch 0 has a copy that is larger than any memory"):
        plan_of(huge, 0)
