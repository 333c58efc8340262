"""What follows from evidence: the path, the ABI, the mismatches; and its way through JSON."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from pytest_cudabatch.abi import BatchAbi
from pytest_cudabatch.errors import EvidenceError
from pytest_cudabatch.interposer import (
    Binding,
    Call,
    CopyPath,
    Evidence,
    Location,
    Lookup,
    MappedObject,
    Owner,
    Site,
)
from pytest_cudabatch.interposer.observations import owner_of, parameters_taken

CALLER = Location("/opt/libcaller.so", 0x1234, None)
RUNTIME = Location("/opt/libcudart.so.12.9.79", 0x5000, "cudaMemcpyBatchAsync")

CALL = Call(
    sequence=1,
    function="cudaMemcpyBatchAsync",
    caller=CALLER,
    callee=RUNTIME,
    given=9,
    taken=9,
    stream=0x7F00,
    count=3,
    returned=0,
    owner=Owner.RUNTIME,
    under_test=True,
    thread=1,
)
SITE = Site(
    function="cudaMemcpyBatchAsync",
    caller=CALLER.file,
    callee=RUNTIME.file,
    given=9,
    under_test=True,
    calls=1,
    returned=1,
    errors=0,
)
SINGLE = replace(SITE, function="cudaMemcpyAsync", given=None)
NOTHING = Evidence(recorded=True, lost=0, objects=(), bindings=(), lookups=(), calls=(), sites=())


@pytest.mark.parametrize(
    ("sites", "path"),
    [
        ((), CopyPath.NONE),
        ((SITE,), CopyPath.BATCH),
        ((replace(SITE, errors=1),), CopyPath.NONE),
        ((replace(SITE, returned=0),), CopyPath.NONE),
        ((replace(SITE, calls=3, returned=3, errors=2),), CopyPath.BATCH),
        ((replace(SITE, given=None),), CopyPath.BATCH),
        ((SINGLE,), CopyPath.FALLBACK),
        ((SITE, SINGLE), CopyPath.FALLBACK),
        ((replace(SITE, errors=1), SINGLE), CopyPath.FALLBACK),
        ((SITE, replace(SINGLE, under_test=False)), CopyPath.BATCH),
        ((replace(SITE, under_test=False),), CopyPath.NONE),
    ],
)
def test_path(sites: tuple[Site, ...], path: CopyPath) -> None:
    assert replace(NOTHING, sites=sites).path is path


@pytest.mark.parametrize("gap", [{"recorded": False}, {"lost": 1}])
def test_incomplete_evidence_knows_no_path(gap: dict[str, Any]) -> None:
    assert replace(NOTHING, sites=(SITE,), **gap).path is CopyPath.UNKNOWN


@pytest.mark.parametrize(
    ("given", "abi"),
    [
        ((9,), BatchAbi.V12080),
        ((8,), BatchAbi.V13000),
        ((8, None), BatchAbi.V13000),
        ((8, 9), None),
        ((None,), None),
        ((), None),
    ],
)
def test_abi_called(given: tuple[int | None, ...], abi: BatchAbi | None) -> None:
    assert replace(NOTHING, sites=tuple(replace(SITE, given=count) for count in given)).abi_called is abi


def test_counts_are_those_of_the_code_under_test() -> None:
    sites = (replace(SITE, calls=5), replace(SITE, calls=7, under_test=False), replace(SINGLE, calls=11))
    evidence = replace(NOTHING, sites=sites)
    assert (evidence.batch_count, evidence.per_copy_count) == (5, 11)


def test_mismatches_need_both_sides() -> None:
    wrong = replace(CALL, sequence=2, given=8, returned=None)
    calls = (
        CALL,
        wrong,
        replace(CALL, sequence=3, given=None),
        replace(CALL, sequence=4, given=8, taken=None),
        replace(CALL, sequence=5, given=8, under_test=False),
    )
    evidence = replace(NOTHING, calls=calls)
    assert evidence.mismatches == (wrong,)
    assert evidence.batch_calls() == calls[:4]


def test_last_call_is_the_implementations_and_in_flight_names_all() -> None:
    outer = replace(CALL, sequence=2, returned=None)
    inner = replace(CALL, sequence=3, function="cuMemcpyBatchAsync", returned=None, under_test=False)
    evidence = replace(NOTHING, calls=(CALL, outer, inner))
    assert evidence.in_flight == (outer, inner)
    assert evidence.last_call == outer
    assert replace(NOTHING, calls=(CALL,)).last_call is None


@pytest.mark.parametrize(
    ("function", "file", "soname", "taken"),
    [
        ("cudaMemcpyBatchAsync", "/x/libcudart.so.12.9.79", "libcudart.so.12", 9),
        ("cudaMemcpyBatchAsync_ptsz", "/x/libcudart.so.13.0.96", "libcudart.so.13", 8),
        ("cudaMemcpyBatchAsync", "/x/libcudart.so.12", "", 9),
        ("cudaMemcpyBatchAsync", "/x/libshim.so", "libshim.so", None),
        ("cuMemcpyBatchAsync", "/x/libcuda.so.580.159.04", "libcuda.so.1", 9),
        ("cuMemcpyBatchAsync_ptsz", "/x/libcuda.so.1", "libcuda.so.1", 9),
        ("cuMemcpyBatchAsync_v2", "/x/libcuda.so.1", "libcuda.so.1", 8),
        ("cuMemcpyBatchAsync_v2_ptsz", "/x/libshim.so", "", 8),
        ("cudaMemcpyAsync", "/x/libcudart.so.12", "libcudart.so.12", None),
    ],
)
def test_parameters_taken(function: str, file: str, soname: str, taken: int | None) -> None:
    assert parameters_taken(function, MappedObject(file, soname, 0)) == taken


@pytest.mark.parametrize(
    ("file", "soname", "owner"),
    [
        ("/x/libcudart.so.12.9.79", "libcudart.so.12", Owner.RUNTIME),
        ("/x/renamed", "libcudart.so.13", Owner.RUNTIME),
        ("/x/libcuda.so.580.159.04", "libcuda.so.1", Owner.DRIVER),
        ("/x/libcuda.so.1", "", Owner.DRIVER),
        ("/x/libcudadebugger.so.1", "libcudadebugger.so.1", Owner.SHIM),
        ("/x/libvgpu.so", "libvgpu.so", Owner.SHIM),
    ],
)
def test_owner(file: str, soname: str, owner: Owner) -> None:
    assert owner_of(MappedObject(file, soname, 0)) is owner


def test_evidence_crosses_processes_as_json() -> None:
    evidence = Evidence(
        recorded=True,
        lost=2,
        objects=(MappedObject(RUNTIME.file, "libcudart.so.12", 0x7F0000000000),),
        bindings=(Binding("cudaMemcpyBatchAsync", CALLER.file, RUNTIME, "plt"),),
        lookups=(
            Lookup("cuGetProcAddress_v2", "cuMemcpyBatchAsync", 12080, 2, 0, CALLER, RUNTIME),
            Lookup("cuGetProcAddress_v2", "cuMemcpyBatchAsync", 13000, 0, 1, CALLER, None),
        ),
        calls=(CALL, replace(CALL, sequence=2, given=None, stream=None, returned=None)),
        sites=(SITE, SINGLE),
    )
    read = Evidence.from_json(json.loads(json.dumps(evidence.to_json())))
    assert read == evidence
    assert [type(call.owner) for call in read.calls] == [Owner, Owner]


@pytest.mark.parametrize(
    "value",
    [
        {},
        {**NOTHING.to_json(), "calls": [{"sequence": 1}]},
        {**NOTHING.to_json(), "sites": 3},
        {
            **NOTHING.to_json(),
            "calls": [{**replace(NOTHING, calls=(CALL,)).to_json()["calls"][0], "owner": "x"}],
        },
    ],
)
def test_other_json_is_refused(value: dict[str, Any]) -> None:
    with pytest.raises(EvidenceError, match=r"^not evidence as to_json writes it: "):
        Evidence.from_json(value)
