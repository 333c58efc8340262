"""What a batch costs on simulated CUDA, beside a plain memcpy loop over the same plan.

Makes one batch of ``--count`` copies from the host to the device (sizes from 128 bytes to 16 KiB) and waits
for it, and lets a loop in C copy the same ranges between two host buffers, interleaved in one process. Prints
medians of wall and processor time in milliseconds, and the ratio of processor time, which a busy machine
leaves as it is. Needs a C compiler. Exit status 1 where the ratio is above ``--limit``.
"""

from __future__ import annotations

import argparse
import ctypes
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from pytest_cudabatch.abi import CudaVersion
from pytest_cudabatch.copies import BoundPlan, Direction, make_packing_plan
from pytest_cudabatch.cuda import Runtime, SimulatedVersions
from pytest_cudabatch.native import library

SIZES = (128, 256, 512, 576, 1024, 1152, 4096, 8192, 16384)
GAPS = (0, 64, 256, 4096)
LOOP = """
#include <stddef.h>
#include <string.h>

void loop(char *to, const char *from, const size_t *to_offsets, const size_t *from_offsets,
          const size_t *sizes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        memcpy(to + to_offsets[i], from + from_offsets[i], sizes[i]);
}
"""


def compiled_loop(directory: Path) -> ctypes.CDLL:
    """Compile the loop as this package is compiled, optimised."""
    source, built = directory / "loop.c", directory / "loop.so"
    source.write_text(LOOP)
    command = ["cc", "-O3", "-shared", "-fPIC", str(source), "-o", str(built)]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(built))


def batch_of(runtime: Runtime, bound: BoundPlan, stream: int) -> Callable[[], None]:
    """Return what makes the batch and waits for it, by the eight parameters of a 13.x runtime."""
    function = ctypes.CDLL(str(runtime.path)).cudaMemcpyBatchAsync
    attributes, first = (ctypes.c_int * 6)(1), ctypes.c_size_t(0)
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in (bound.dsts, bound.srcs, bound.sizes)]
    tail = (ctypes.byref(attributes), ctypes.byref(first), ctypes.c_size_t(1), ctypes.c_void_p(stream))

    def copy() -> None:
        code = function(*pointers, ctypes.c_size_t(bound.count), *tail)
        if code != 0:
            raise SystemExit(f"the batch returned {code}")
        runtime.stream_synchronize(stream)

    return copy


def loop_of(runtime: Runtime, bound: BoundPlan, directory: Path) -> Callable[[], None]:
    """Return what copies the plan's ranges between two host buffers."""
    plan = bound.plan
    source = runtime.malloc_host(max(plan.src_extents))
    target = runtime.malloc_host(max(plan.dst_extents))
    arrays = (plan.dst_offsets, plan.src_offsets, plan.sizes)
    pointers = [ctypes.c_void_p(np.ascontiguousarray(array).ctypes.data) for array in arrays]
    function = compiled_loop(directory).loop
    buffers = (ctypes.c_void_p(target.address), ctypes.c_void_p(source.address))
    return lambda: function(*buffers, *pointers, ctypes.c_size_t(plan.count))


def milliseconds(work: Callable[[], None]) -> tuple[float, float]:
    """Return how long ``work`` takes, and how much processor time all threads spend on it."""
    start, spent = time.perf_counter(), time.process_time()
    work()
    return (time.perf_counter() - start) * 1e3, (time.process_time() - spent) * 1e3


def main() -> int:
    """Print the figures; see the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=51828, help="copies of the batch (default: 51828)")
    parser.add_argument("--rounds", type=int, default=15, help="interleaved rounds (default: 15)")
    parser.add_argument("--limit", type=float, default=3.0, help="largest ratio (default: 3)")
    arguments = parser.parse_args()
    SimulatedVersions(CudaVersion(13, 0), CudaVersion(13, 0)).apply()
    runtime = Runtime.open(
        library("simcuda/runtime-13.0/libcudart.so.13"), driver=library("simcuda/driver-13.0/libcuda.so.1")
    )
    plan = make_packing_plan(Direction.H2D, arguments.count, 1, sizes=SIZES, gaps=GAPS)
    with tempfile.TemporaryDirectory() as directory, BoundPlan(plan, runtime) as bound:
        bound.fill()
        contenders = {
            "batch": batch_of(runtime, bound, runtime.stream_create()),
            "loop": loop_of(runtime, bound, Path(directory)),
        }
        for work in contenders.values():
            work()  # pages are touched for the first time
        seen: dict[str, list[tuple[float, float]]] = {name: [] for name in contenders}
        for _ in range(arguments.rounds):
            for name, work in contenders.items():
                seen[name].append(milliseconds(work))
        if bound.verify():
            raise SystemExit("the batch's bytes are wrong")
    medians = {name: [statistics.median(each) for each in zip(*seen[name], strict=True)] for name in seen}
    ratio = medians["batch"][1] / medians["loop"][1]
    print(f"{arguments.count} copies, {plan.payload / 1e6:.0f} MB; median wall and processor time in ms:")
    for name, (wall, processor) in medians.items():
        print(f"  {name}: {wall:.1f}, {processor:.1f}")
    print(f"ratio of processor time: {ratio:.2f}")
    return 0 if ratio <= arguments.limit else 1


if __name__ == "__main__":
    sys.exit(main())
