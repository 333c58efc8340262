"""Programs on the simulated CUDA libraries, with a batch to copy and rules to request."""

from __future__ import annotations

from pytest_cudabatch import native

from .programs import Ended, Programs

SIMULATED = """
from pytest_cudabatch.abi import MemcpyAttributes
claim()
driver, runtime = load("TEST_DRIVER"), load("TEST_RUNTIME")
asker = load("TEST_ASKER")
asker.ask_dlsym.restype = asker.ask_dlvsym.restype = c_void_p
stream = c_void_p(new_stream(runtime))
device, host = c_void_p(), (ctypes.c_uint8 * 64)(*range(64))
assert runtime.cudaMalloc(byref(device), c_uint64(64)) == 0

def batch(function=runtime.cudaMemcpyBatchAsync, parameters=int(os.environ["TEST_PARAMETERS"])):
    attributes = MemcpyAttributes(src_access_order=1)
    fail = (byref(c_uint64()),) if parameters == 9 else ()
    lists = words(device.value), words(ctypes.addressof(host)), words(64)
    return function(*lists, c_uint64(1), byref(attributes), words(0), c_uint64(1), *fail, stream)

def single():
    return runtime.cudaMemcpyAsync(device, host, c_uint64(64), 1, stream)

def on_device():
    copied = (ctypes.c_uint8 * 64)()
    assert runtime.cudaStreamSynchronize(stream) == 0
    assert runtime.cudaMemcpy(copied, device, c_uint64(64), 2) == 0
    return sum(copied)

def inject(rules=os.environ.get("TEST_RULES", "")):
    evidence_file.inject(rules)
"""


def simulated_libraries(programs: Programs, major: int = 13) -> dict[str, object]:
    return {
        "driver": native.library("simcuda/driver-13.0/libcuda.so.1"),
        "runtime": native.library(
            "simcuda/runtime-12.8/libcudart.so.12" if major == 12 else "simcuda/runtime-13.0/libcudart.so.13"
        ),
        "parameters": 9 if major == 12 else 8,
        "asker": programs.compiler.library("libasker.so", "asker.c", "-fno-optimize-sibling-calls"),
    }


def run_simulated(programs: Programs, script: str, rules: str = "", major: int = 13) -> Ended:
    ended = programs.run(SIMULATED + script, {**simulated_libraries(programs, major), "rules": rules})
    assert (ended.status, ended.errors) == (0, "")
    return ended
