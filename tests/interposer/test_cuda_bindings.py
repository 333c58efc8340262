"""cuda.bindings.driver, as its wheel is: its look-ups and its calls are those of the code under test."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pytest_cudabatch import native
from pytest_cudabatch.interposer import CopyPath, Owner

from .programs import Programs

COPY = """
claim()
from cuda.bindings import driver as cu

def check(answer):
    assert answer[0] == cu.CUresult.CUDA_SUCCESS, answer
    return answer[1] if len(answer) == 2 else answer[1:]

check(cu.cuInit(0))
check(cu.cuCtxSetCurrent(check(cu.cuDevicePrimaryCtxRetain(check(cu.cuDeviceGet(0))))))
stream = check(cu.cuStreamCreate(cu.CUstream_flags.CU_STREAM_NON_BLOCKING))
device, host = check(cu.cuMemAlloc(64)), check(cu.cuMemAllocHost(64))
attributes = cu.CUmemcpyAttributes()
attributes.srcAccessOrder = cu.CUmemcpySrcAccessOrder.CU_MEMCPY_SRC_ACCESS_ORDER_STREAM
check(cu.cuMemcpyBatchAsync([device], [cu.CUdeviceptr(int(host))], [64], 1, [attributes], [0], 1, stream))
check(cu.cuStreamSynchronize(stream))
say(version=check(cu.cuDriverGetVersion()), stream=int(stream))
"""


def test_call_and_version_query_by_the_bindings_are_recorded(
    programs: Programs, monkeypatch: pytest.MonkeyPatch
) -> None:
    bindings = pytest.importorskip("cuda.bindings", reason="cuda-bindings is not installed")
    if int(bindings.__version__.partition(".")[0]) < 13:
        pytest.skip("cuda-bindings 12 takes the parameters of the 9-parameter function")
    driver = native.library("simcuda/driver-13.0/libcuda.so.1")
    path = os.pathsep.join(filter(None, [str(driver.parent), os.environ.get("LD_LIBRARY_PATH")]))
    monkeypatch.setenv("LD_LIBRARY_PATH", path)
    ended = programs.run(COPY, {})
    assert (ended.status, ended.errors) == (0, "")
    said, evidence = ended.said[0], ended.evidence
    [call] = evidence.batch_calls()
    assert (call.function, call.owner, call.given, call.taken) == (
        "cuMemcpyBatchAsync_v2",
        Owner.DRIVER,
        8,
        8,
    )
    assert (call.stream, call.count, call.returned) == (said["stream"], 1, 0)
    asked = [row for row in evidence.lookups if row.name == "cuMemcpyBatchAsync"]
    assert [(row.version, row.flags, row.found) for row in asked] == [(13000, 0, call.callee)]
    package = Path(bindings.__file__).parent
    assert all(Path(place.file).is_relative_to(package) for place in (call.caller, asked[0].caller))
    [query] = evidence.version_queries
    assert (query.function, query.version, query.under_test) == ("cuDriverGetVersion", said["version"], True)
    assert evidence.path is CopyPath.BATCH
