"""cuda.bindings.driver, as its wheel is, on the simulated driver."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from .processes import clean_environment, driver_path

PROGRAM = """
import ctypes
from cuda.bindings import driver as cu

def check(answer):
    assert answer[0] == cu.CUresult.CUDA_SUCCESS, answer
    return answer[1] if len(answer) == 2 else answer[1:]

check(cu.cuInit(0))
assert check(cu.cuDriverGetVersion()) == {version}
check(cu.cuCtxSetCurrent(check(cu.cuDevicePrimaryCtxRetain(check(cu.cuDeviceGet(0))))))
stream = check(cu.cuStreamCreate(cu.CUstream_flags.CU_STREAM_NON_BLOCKING))
size, copies = 256, 8
device = check(cu.cuMemAlloc(size * copies))
host = check(cu.cuMemAllocHost(size * copies))
content = bytes(range(256)) * copies
ctypes.memmove(host, content, len(content))
attributes = cu.CUmemcpyAttributes()
attributes.srcAccessOrder = cu.CUmemcpySrcAccessOrder.CU_MEMCPY_SRC_ACCESS_ORDER_STREAM
offsets = [size * index for index in range(copies)]
check(cu.cuMemcpyBatchAsync(
    [cu.CUdeviceptr(int(device) + offset) for offset in reversed(offsets)],
    [cu.CUdeviceptr(int(host) + offset) for offset in offsets],
    [size] * copies, copies, [attributes], [0], 1, stream))
event = check(cu.cuEventCreate(0))
check(cu.cuEventRecord(event, stream))
check(cu.cuStreamSynchronize(stream))
assert check(cu.cuEventQuery(event)) == ()
back = bytearray(size * copies)
check(cu.cuMemcpyDtoH(back, device, size * copies))
assert bytes(back) == content
check(cu.cuMemFree(device))
print("exact")
"""


def bindings_are_for_13() -> bool:
    version = pytest.importorskip("cuda.bindings", reason="cuda-bindings is not installed").__version__
    return int(version.partition(".")[0]) >= 13


@pytest.mark.parametrize(("setting", "version"), [({}, 13000), ({"CUDABATCH_SIM_DRIVER": "13050"}, 13050)])
def test_bindings_copy_a_batch(setting: dict[str, str], version: int) -> None:
    if not bindings_are_for_13():
        pytest.skip("cuda-bindings 12 takes the parameters of the 9-parameter function")
    inherited = os.environ.get("LD_LIBRARY_PATH")
    path = os.pathsep.join(filter(None, [str(driver_path("13.0").parent), inherited]))
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(version=version)],
        env=clean_environment({"LD_LIBRARY_PATH": path, **setting}),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "exact\n", "")
