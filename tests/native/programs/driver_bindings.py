"""What a user of cuda.bindings.driver writes: memory, streams, events and a batch copy. Prints ``exact``.

It knows nothing of simulated CUDA; the driver is whatever libcuda.so.1 the environment has. The batch
function of cuda-bindings 12 returns failIdx too.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Any

import cuda.bindings
from cuda.bindings import driver as cu

SIZE, COPIES = 256, 8
CONTENT = b"".join(bytes([index + 1]) * SIZE for index in range(COPIES))


def check(answer: Any) -> Any:
    assert answer[0] == cu.CUresult.CUDA_SUCCESS, answer
    return answer[1] if len(answer) == 2 else answer[1:]


def batch(destinations: list[int], sources: list[int], stream: Any) -> None:
    attributes = cu.CUmemcpyAttributes()
    attributes.srcAccessOrder = cu.CUmemcpySrcAccessOrder.CU_MEMCPY_SRC_ACCESS_ORDER_STREAM
    answer = cu.cuMemcpyBatchAsync(
        [cu.CUdeviceptr(address) for address in destinations],
        [cu.CUdeviceptr(address) for address in sources],
        [SIZE] * COPIES,
        COPIES,
        [attributes],
        [0],
        1,
        stream,
    )
    has_fail_index = int(cuda.bindings.__version__.partition(".")[0]) < 13
    assert check(answer) == (2**64 - 1 if has_fail_index else ())


def pool_round_trip(stream: Any) -> None:
    pool = check(cu.cuDeviceGetDefaultMemPool(0))
    device = check(cu.cuMemAllocAsync(4 * SIZE, stream))
    used = cu.CUmemPool_attribute.CU_MEMPOOL_ATTR_USED_MEM_CURRENT
    assert int(check(cu.cuMemPoolGetAttribute(pool, used))) == 4 * SIZE
    check(cu.cuMemsetD32Async(device, 0x01020304, SIZE, stream))
    check(cu.cuMemFreeAsync(device, stream))
    check(cu.cuStreamSynchronize(stream))
    assert int(check(cu.cuMemPoolGetAttribute(pool, used))) == 0


def main() -> None:
    check(cu.cuInit(0))
    assert check(cu.cuDriverGetVersion()) == int(sys.argv[1])
    check(cu.cuCtxSetCurrent(check(cu.cuDevicePrimaryCtxRetain(check(cu.cuDeviceGet(0))))))
    stream = check(cu.cuStreamCreate(cu.CUstream_flags.CU_STREAM_NON_BLOCKING))
    device, host = check(cu.cuMemAlloc(SIZE * COPIES)), check(cu.cuMemAllocHost(SIZE * COPIES))
    ctypes.memmove(host, CONTENT, len(CONTENT))
    there, here = ([int(start) + SIZE * index for index in range(COPIES)] for start in (device, host))
    batch(there[::-1], here, stream)
    event = check(cu.cuEventCreate(0))
    check(cu.cuEventRecord(event, stream))
    check(cu.cuStreamSynchronize(stream))
    assert check(cu.cuEventQuery(event)) == ()
    back = bytearray(SIZE * COPIES)
    check(cu.cuMemcpyDtoH(back, device, SIZE * COPIES))
    expected = b"".join(CONTENT[at : at + SIZE] for at in reversed(range(0, len(CONTENT), SIZE)))
    assert bytes(back) == expected
    pool_round_trip(stream)
    check(cu.cuMemFree(device))
    check(cu.cuMemFreeHost(host))
    sys.stdout.write("exact\n")


if __name__ == "__main__":
    main()
