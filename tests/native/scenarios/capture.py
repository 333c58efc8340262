"""Stream capture: what becomes a node, what is refused, and what ends the capture."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from batch import batch_function
from contexts import in_new_thread
from simulated import HOST_FUNCTION, Batch, Process, Words, scenario

GLOBAL, THREAD_LOCAL, RELAXED = 0, 1, 2
NO_FUNCTION = HOST_FUNCTION(lambda _: None)


def node_count(process: Process, graph: int) -> int:
    count = Words([0])
    assert process.runtime.cudaGraphGetNodes(graph, 0, count.address) == 0
    return count[0]


def end(process: Process, stream: int) -> list[Any]:
    """End a capture: code, and the number of nodes or None."""
    graph = Words([99])
    code = process.runtime.cudaStreamEndCapture(stream, graph.address)
    found = node_count(process, graph[0]) if code == 0 else None
    if code == 0:
        assert process.runtime.cudaGraphDestroy(graph[0]) == 0
    return [code, found]


def status(process: Process, stream: int) -> list[int]:
    found = Words([99])
    return [process.runtime.cudaStreamIsCapturing(stream, found.address), found[0] & 0xFFFFFFFF]


@scenario
def batch_under_capture(process: Process, nine: bool, entry: str, mode: int) -> dict[str, Any]:
    batch = Batch.build(process)
    runtime = process.runtime
    function = batch_function(process, entry)
    begun = [runtime.cudaStreamBeginCapture(batch.stream, mode), *status(process, batch.stream)]
    answer = batch.submit(function, nine=nine)
    errors = [runtime.cudaGetLastError(), runtime.cudaGetLastError()]
    ended = end(process, batch.stream)
    again = batch.submit(function, nine=nine)
    return {
        "begun": begun,
        "answer": answer,
        "last errors": errors,
        "ended": ended,
        "again": again,
        "arrived": batch.bytes_arrived(),
    }


@scenario
def captured_work(process: Process) -> dict[str, Any]:
    """Copies of both kinds of memory, a fill and a host function become nodes, and do not run."""
    batch = Batch.build(process)
    runtime, device, stream = process.runtime, batch.device, batch.stream
    pageable = ctypes.create_string_buffer(b"p" * 64, 64)
    function = ctypes.cast(NO_FUNCTION, ctypes.c_void_p).value or 0
    assert runtime.cudaMemset(device, 7, 64) == 0
    assert runtime.cudaStreamBeginCapture(stream, GLOBAL) == 0
    codes = [
        runtime.cudaMemcpyAsync(device, batch.pinned, 64, 1, stream),
        runtime.cudaMemcpyAsync(device, ctypes.addressof(pageable), 64, 1, stream),
        runtime.cudaMemsetAsync(device, 1, 64, stream),
        runtime.cudaLaunchHostFunc(stream, function, 0),
    ]
    codes.append(runtime.cudaMemcpyAsync(device, batch.pinned, batch.SPAN + 1, 1, stream))  # no node
    graph = runtime_graph(process, stream)
    nodes, count = Words([99] * 6), Words([6])
    codes.append(runtime.cudaGraphGetNodes(graph, nodes.address, count.address))
    few = Words([2])
    codes.append(runtime.cudaGraphGetNodes(graph, nodes.address, few.address))
    return {
        "codes": codes,
        "nodes": [
            node_count(process, graph),
            count[0],
            len({nodes[i] for i in range(4)}),
            nodes[4],
            nodes[5],
        ],
        "few": few[0],
        "did not run": batch.read(device, 64) == b"\x07" * 64,
        "destroyed": [runtime.cudaGraphDestroy(graph), runtime.cudaGraphDestroy(graph)],
        "dead": runtime.cudaGraphGetNodes(graph, 0, count.address),
    }


def runtime_graph(process: Process, stream: int) -> int:
    graph = Words([0])
    assert process.runtime.cudaStreamEndCapture(stream, graph.address) == 0
    return graph[0]


@scenario
def beginnings_and_ends(process: Process) -> dict[str, Any]:
    runtime = process.runtime
    stream = runtime.out("cudaStreamCreateWithFlags", 1)
    codes = {
        "idle": status(process, stream),
        "end without begin": end(process, stream)[0],
        "no such mode": [runtime.cudaStreamBeginCapture(stream, mode) for mode in (3, -1)],
        "legacy": [runtime.cudaStreamBeginCapture(handle, RELAXED) for handle in (0, 1)],
        "begin": runtime.cudaStreamBeginCapture(stream, THREAD_LOCAL),
        "begin twice": runtime.cudaStreamBeginCapture(stream, RELAXED),
        "end elsewhere": in_new_thread(lambda: end(process, stream)),
        "end": end(process, stream),
        "relaxed": runtime.cudaStreamBeginCapture(stream, RELAXED),
        "relaxed, end elsewhere": in_new_thread(lambda: end(process, stream)),
        "per thread": [runtime.cudaStreamBeginCapture(2, GLOBAL), *end(process, 2)],
        "per-thread entry": [runtime.cudaStreamBeginCapture_ptsz(0, GLOBAL), *end(process, 2)],
    }
    assert runtime.cudaStreamBeginCapture(stream, GLOBAL) == 0
    codes["destroyed while it captures"] = [
        runtime.cudaStreamDestroy(stream),
        runtime.cudaMalloc(Words([0]).address, 64),
    ]
    return codes


@scenario
def unsafe_calls(process: Process, mode: int) -> dict[str, Any]:
    """Each call under a capture of its own: its code, and how the capture ends."""
    batch = Batch.build(process)
    runtime, stream, word = process.runtime, batch.stream, Words([0])
    other = runtime.out("cudaStreamCreateWithFlags", 1)
    event = runtime.out("cudaEventCreate")
    calls: dict[str, Callable[[], int]] = {
        "allocate": lambda: runtime.cudaMalloc(word.address, 64),
        "allocate elsewhere": lambda: in_new_thread(lambda: runtime.cudaMalloc(word.address, 64)),
        "allocate, pinned": lambda: runtime.cudaHostAlloc(word.address, 64, 0),
        "copy": lambda: runtime.cudaMemcpy(batch.device, batch.pinned, 64, 1),
        "synchronise the device": runtime.cudaDeviceSynchronize,
        "synchronise it": lambda: runtime.cudaStreamSynchronize(stream),
        "query it": lambda: runtime.cudaStreamQuery(stream),
        "synchronise another": lambda: runtime.cudaStreamSynchronize(other),
        "copy on another": lambda: runtime.cudaMemcpyAsync(batch.device, batch.pinned, 64, 1, other),
        "record": lambda: runtime.cudaEventRecord(event, stream),
    }
    found = {}
    for name, made in calls.items():
        assert runtime.cudaStreamBeginCapture(stream, mode) == 0
        code = made()
        state = status(process, stream)[1]
        found[name] = [code, state, end(process, stream)[0]]
    found["after all"] = [runtime.cudaEventSynchronize(event), runtime.cudaDeviceSynchronize()]
    return found


@scenario
def guarded_by_relaxed_mode(process: Process) -> list[Any]:
    """A thread that exchanges its mode may allocate under its own capture, as allocators do."""
    runtime = process.runtime
    stream, word, mode = runtime.out("cudaStreamCreateWithFlags", 1), Words([0]), Words([RELAXED])
    codes = [runtime.cudaStreamBeginCapture(stream, GLOBAL)]
    codes.append(runtime.cudaThreadExchangeStreamCaptureMode(mode.address))
    was = mode[0] & 0xFFFFFFFF
    codes.append(runtime.cudaMalloc(word.address, 64))
    codes.append(runtime.cudaThreadExchangeStreamCaptureMode(mode.address))
    return [codes, was, mode[0] & 0xFFFFFFFF, end(process, stream)]


@scenario
def legacy_beside_capture(process: Process, flags: int) -> dict[str, Any]:
    """The legacy stream would have to wait for a blocking stream that captures."""
    batch = Batch.build(process)
    runtime, stream = process.runtime, process.runtime.out("cudaStreamCreateWithFlags", flags)
    assert runtime.cudaStreamBeginCapture(stream, RELAXED) == 0
    return {
        "status": status(process, 1),
        "fill": runtime.cudaMemsetAsync(batch.device, 0, 64, 1),
        "end": end(process, stream)[0],
        "fill again": runtime.cudaMemsetAsync(batch.device, 0, 64, 1),
    }


@scenario
def reset_under_capture(process: Process) -> list[Any]:
    """The context takes its captures and graphs along; the process goes on."""
    runtime = process.runtime
    stream = runtime.out("cudaStreamCreateWithFlags", 1)
    assert runtime.cudaStreamBeginCapture(stream, RELAXED) == 0
    graph = runtime_graph(process, stream)
    assert runtime.cudaStreamBeginCapture(stream, GLOBAL) == 0
    assert runtime.cudaMemsetAsync(runtime.out("cudaMalloc", 0), 0, 0, stream) == 0
    count = Words([0])
    return [runtime.cudaDeviceReset(), runtime.cudaGraphGetNodes(graph, 0, count.address)]


def instantiated(process: Process, graph: int) -> int:
    return process.runtime.out("cudaGraphInstantiate", graph, 0)


@scenario
def replayed(process: Process) -> dict[str, Any]:
    """A captured copy, fill and host function run at each launch, on what memory holds then."""
    batch = Batch.build(process)
    runtime, stream = process.runtime, batch.stream
    source, target = runtime.out("cudaMallocHost", 4), runtime.out("cudaMallocHost", 8)
    counted: list[int] = []
    count = HOST_FUNCTION(lambda _: counted.append(len(counted)))
    address = ctypes.cast(count, ctypes.c_void_p).value or 0
    ctypes.memset(source, 1, 4)
    ctypes.memset(target, 0, 8)
    assert runtime.cudaStreamBeginCapture(stream, GLOBAL) == 0
    codes = [
        runtime.cudaMemcpyAsync(target, source, 4, 4, stream),
        runtime.cudaMemsetAsync(target + 4, 7, 4, stream),
        runtime.cudaLaunchHostFunc(stream, address, 0),
    ]
    graph = runtime_graph(process, stream)
    executable = instantiated(process, graph)
    codes.append(runtime.cudaGraphDestroy(graph))  # the executable graph has nodes of its own
    before = ctypes.string_at(target, 8).hex()
    seen = []
    for value in (2, 3):
        ctypes.memset(source, value, 4)
        codes += [runtime.cudaGraphLaunch(executable, stream), runtime.cudaStreamSynchronize(stream)]
        seen.append(ctypes.string_at(target, 8).hex())
    codes.append(runtime.cudaGraphExecDestroy(executable))
    dead = [runtime.cudaGraphLaunch(executable, stream), runtime.cudaGraphExecDestroy(executable)]
    dead.append(runtime.cudaGraphInstantiate(Words([0]).address, graph, 0))
    return {"codes": codes, "before": before, "seen": seen, "host functions": len(counted), "dead": dead}


@scenario
def launched_into_a_capture(process: Process) -> list[int]:
    """A graph that is launched on a captured stream becomes part of what is captured."""
    batch = Batch.build(process)
    runtime, stream = process.runtime, batch.stream
    assert runtime.cudaStreamBeginCapture(stream, GLOBAL) == 0
    assert runtime.cudaMemsetAsync(batch.device, 1, 4, stream) == 0
    executable = instantiated(process, runtime_graph(process, stream))
    assert runtime.cudaStreamBeginCapture(stream, GLOBAL) == 0
    codes = [runtime.cudaGraphLaunch(executable, stream) for _ in range(3)]
    return [*codes, *end(process, stream)]


@scenario
def capture_info(process: Process) -> dict[str, Any]:
    runtime, stream = process.runtime, process.runtime.out("cudaStreamCreateWithFlags", 1)

    def ask() -> list[int]:
        found, identity = Words([99]), Words([99])
        code = runtime.cudaStreamGetCaptureInfo(stream, found.address, identity.address)
        return [code, found[0] & 0xFFFFFFFF, identity[0]]

    idle = ask()
    captures = []
    for _ in range(2):
        assert runtime.cudaStreamBeginCapture(stream, RELAXED) == 0
        captures.append(ask())
        end(process, stream)
    return {"idle": idle, "captures": captures}


@scenario
def waits_from_outside(process: Process) -> list[Any]:
    """A captured stream cannot wait for an event of a stream that is not."""
    runtime = process.runtime
    stream, event = runtime.out("cudaStreamCreateWithFlags", 1), runtime.out("cudaEventCreate")
    assert runtime.cudaEventRecord(event, 1) == 0
    assert runtime.cudaStreamBeginCapture(stream, GLOBAL) == 0
    return [runtime.cudaStreamWaitEvent(stream, event, 0), end(process, stream)[0]]


@scenario
def batch_in_a_graph(process: Process, nine: bool) -> dict[str, Any]:
    """A driver that takes batches under capture, if there is one: the graph copies what sources hold then."""
    batch = Batch.build(process)
    runtime, stream = process.runtime, batch.stream
    target = runtime.out("cudaMallocHost", 64)
    ctypes.memset(target, 0, 64)
    batch.destinations = [target]
    batch.attributes[0].order = 2  # during the call, which is none of the graph's
    assert runtime.cudaStreamBeginCapture(stream, GLOBAL) == 0
    code, _ = batch.submit(runtime.cudaMemcpyBatchAsync, nine=nine)
    graph = runtime_graph(process, stream)
    nodes = node_count(process, graph)
    ctypes.memset(batch.sources[0], 9, 64)
    codes = [
        runtime.cudaGraphLaunch(instantiated(process, graph), stream),
        runtime.cudaStreamSynchronize(stream),
    ]
    return {"code": code, "nodes": nodes, "codes": codes, "arrived": ctypes.string_at(target, 1)[0]}
