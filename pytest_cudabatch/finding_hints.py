"""What to do about each finding."""

from __future__ import annotations

from pytest_cudabatch.finding_codes import Code

__all__ = ["HINTS"]

HINTS = {
    Code.WRONG_ABI: (
        "choose the parameter list by the library that owns the function, not by the version of the driver "
        "or the build: ask cuGetProcAddress for cuMemcpyBatchAsync at 12080 and call it with 9 parameters, "
        "or take function and cudaRuntimeGetVersion from one and the same libcudart "
        "(cudabatch_dispatch.h does both)"
    ),
    Code.SPLIT_OWNER: (
        "take the version and the function from one and the same library: dlopen(RTLD_NOLOAD) of a libcudart "
        "and dlsym with that handle for both, or cuGetProcAddress with an explicit version; dlsym with "
        "RTLD_DEFAULT finds whichever runtime came first (cudabatch_dispatch.h does both)"
    ),
    Code.LOOKUP_UNCHECKED: (
        "check the look-up's code and that the pointer is not NULL, and copy one by one where either fails"
    ),
    Code.NO_DRIVER_GUARD: (
        "copy one by one where the driver is older than 12.8 or does not tell its version; the batch call "
        "then returns 36 or 35"
    ),
    Code.SILENT_FALLBACK: (
        "find out why the function was not used (the look-up, its result, the call's return code), or let "
        "expected_path announce the fallback on this pairing"
    ),
    Code.UNCHECKED_RETURN: "check every single copy's return code, and return the first that is not 0",
    Code.MASKED_ERROR: (
        "fall back only where the batch call is not available (36, 801); an invalid value (1) is the "
        "caller's mistake and must reach it"
    ),
    Code.ERROR_LEFT_BEHIND: (
        "read cudaGetLastError after an error that was handled; else the next launch check finds it"
    ),
    Code.LEGACY_STREAM: "the batch call rejects streams 0 and 0x1: copy one by one on them",
    Code.CAPTURE_LOST: (
        "while its stream is captured the batch call answers 900 and the graph lacks the copies: copy one by "
        "one then, or return the error (cudaStreamIsCapturing tells); and call nothing that breaks a capture"
    ),
    Code.WRONG_CONTEXT: (
        "the stream's device counts, not the one that is current in the calling thread: take streams, events "
        "and staging memory of that device (cudaStreamGetDevice, cuStreamGetCtx), and check every return code"
    ),
    Code.SOURCE_FREED_EARLY: (
        "keep whatever queued copies read (sources, bounce buffers, lists of a host function) until the "
        "stream has passed them: record an event behind the copies and reuse the memory when it is reached"
    ),
    Code.MISSING_ORDER: (
        "copy on the caller's stream, or let the copying stream wait for an event that is recorded there "
        "before the copies, and the caller's for one behind them; srcAccessOrder must be STREAM for sources "
        "that queued work writes"
    ),
    Code.EARLY_RETURN: (
        "the caller's stream must wait for the copies: copy on it, or let it wait (cudaStreamWaitEvent) for "
        "an event behind the copies on the stream that makes them"
    ),
    Code.BAD_ADDRESS: "check the descriptor's addresses and sizes against the allocations",
    Code.STRADDLES_REGISTRATION: (
        "no copy may reach from one registered range into the next: merge neighbours within one range only, "
        "or copy them one by one where CUDA refuses the merged copy (1)"
    ),
    Code.ZERO_SIZE: "leave entries of no bytes out; the batch call rejects the whole batch for one of them",
    Code.ATTRIBUTES: (
        "attrs and attrsIdxs have numAttrs entries; the first index is 0, they rise, the last is below count"
    ),
    Code.OVERREAD: "dsts, srcs and sizes have count entries, attrs and attrsIdxs numAttrs: read no further",
    Code.GUARD_OVERRUN: "bytes were written that belong to no descriptor: check offsets and sizes",
    Code.WRONG_BYTES: "compare the order of sources and destinations, and that the source lives long enough",
    Code.CRASH: "rerun the cell under a debugger, or look at the output's stack",
    Code.DRIVER_FAULT: (
        "report it to the driver's vendor; until it is mended, send fewer descriptors a call, or batches of "
        "one size (docs/copies.md has measurements)"
    ),
    Code.HANG: "the stacks of all threads are in the output; --cuda-timeout sets the deadline",
    Code.SILENT_EXIT: "look for an exit() or _exit() in the code under test or in a library that it loads",
    Code.IMPORT_ERROR: "load it by hand in the same environment",
    Code.MISSING_SYMBOL: "a runtime or driver older than the one that it was built for lacks the symbol",
    Code.LEAKED_STATE: (
        "initialise CUDA in tests and fixtures only: no test module, conftest or plugin may touch it when it "
        "is imported"
    ),
    Code.NO_GPU: "give the process a device: CUDA_VISIBLE_DEVICES, the container's GPU flag, the driver",
    Code.DRIVER_TOO_OLD: "a 13.x runtime needs a driver that reports 13.0 or newer (release 580)",
    Code.UNSEEN_BINDING: (
        "obtain the function in a way that can be watched: a call, its plain address, dlsym or "
        "cuGetProcAddress; an address that the code computes cannot be taken over"
    ),
    Code.NO_EVIDENCE: (
        "the dynamic loader must honour LD_AUDIT: glibc, and no static, musl or setuid interpreter"
    ),
}
"""What to do about each finding; one sentence for all cells that share a cause."""
