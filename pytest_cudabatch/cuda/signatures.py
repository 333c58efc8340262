"""The runtime functions that this room calls, with their parameter types.

Facts: cuda_runtime_api.h of CUDA 12.6 to 13.5, the same in all of them. Addresses and streams are
``void *``, so that ctypes passes Python integers as 64 bits. cudaMemcpyBatchAsync is absent on purpose:
its parameters hang on the runtime, and calling it is the implementations' business.
"""

from __future__ import annotations

import ctypes

__all__ = ["PARAMETERS"]

_int = ctypes.c_int
_size = ctypes.c_size_t
_address = ctypes.c_void_p
_stream = ctypes.c_void_p
_out_int = ctypes.POINTER(ctypes.c_int)
_out_address = ctypes.POINTER(ctypes.c_void_p)

PARAMETERS: dict[str, tuple[type, ...]] = {
    "cudaRuntimeGetVersion": (_out_int,),
    "cudaDriverGetVersion": (_out_int,),
    "cudaGetDeviceCount": (_out_int,),
    "cudaSetDevice": (_int,),
    "cudaDeviceSynchronize": (),
    "cudaMalloc": (_out_address, _size),
    "cudaMallocManaged": (_out_address, _size, ctypes.c_uint),
    "cudaFree": (_address,),
    "cudaMallocHost": (_out_address, _size),
    "cudaFreeHost": (_address,),
    "cudaMemcpy": (_address, _address, _size, _int),
    "cudaMemcpy2DAsync": (_address, _size, _address, _size, _size, _size, _int, _stream),
    "cudaMemset": (_address, _int, _size),
    "cudaHostRegister": (_address, _size, ctypes.c_uint),
    "cudaHostUnregister": (_address,),
    "cudaStreamBeginCapture": (_stream, _int),
    "cudaStreamEndCapture": (_stream, _out_address),
    "cudaGraphInstantiateWithFlags": (_out_address, _address, ctypes.c_ulonglong),
    "cudaGraphLaunch": (_address, _stream),
    "cudaGraphExecDestroy": (_address,),
    "cudaGraphDestroy": (_address,),
    "cudaLaunchHostFunc": (_stream, _address, _address),
    "cudaStreamCreateWithFlags": (_out_address, ctypes.c_uint),
    "cudaStreamDestroy": (_stream,),
    "cudaStreamSynchronize": (_stream,),
    "cudaStreamQuery": (_stream,),
    "cudaGetLastError": (),
    "cudaPeekAtLastError": (),
}
"""Parameter types by C name. Every one of these functions returns a cudaError_t."""
