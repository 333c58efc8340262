/*
 * Every function that the simulated libcudart exports. `_ptsz` and `_ptds` twins take a NULL stream as the
 * thread's own default stream. Returned ints are cuda_codes, also kept as the thread's last error.
 */
#ifndef CUDABATCH_RUNTIME_API_H
#define CUDABATCH_RUNTIME_API_H

#include "../abi.h"

/* cudaPointerAttributes; 13.0 added the reserved words. */
struct pointer_attributes {
    int type;
    int device;
    void *device_pointer;
    void *host_pointer;
#if SIM_RUNTIME_OWN >= FIRST_VERSION_WITHOUT_FAIL_INDEX
    long reserved[8];
#endif
};

#define WITH_TWIN(name, twin, ...)   \
    CUDA_API int name(__VA_ARGS__);  \
    CUDA_API int twin(__VA_ARGS__);

/* runtime/errors.c */
CUDA_API int cudaGetLastError(void);
CUDA_API int cudaPeekAtLastError(void);
CUDA_API const char *cudaGetErrorName(int code);
CUDA_API const char *cudaGetErrorString(int code);

/* runtime/versions.c */
CUDA_API int cudaRuntimeGetVersion(int *version);
CUDA_API int cudaDriverGetVersion(int *version);
WITH_TWIN(cudaGetDriverEntryPoint, cudaGetDriverEntryPoint_ptsz, const char *name, void **function,
          unsigned long long flags, int *status)
WITH_TWIN(cudaGetDriverEntryPointByVersion, cudaGetDriverEntryPointByVersion_ptsz, const char *name, void **function,
          unsigned version, unsigned long long flags, int *status)

/* runtime/devices.c */
CUDA_API int cudaGetDeviceCount(int *count);
CUDA_API int cudaGetDevice(int *device);
CUDA_API int cudaSetDevice(int device);
CUDA_API int cudaDeviceGetAttribute(int *value, int attribute, int device);
CUDA_API int cudaDeviceSynchronize(void);
CUDA_API int cudaDeviceReset(void);

/* runtime/memory.c */
CUDA_API int cudaMalloc(void **address, size_t size);
CUDA_API int cudaFree(void *address);
CUDA_API int cudaMallocHost(void **address, size_t size);
CUDA_API int cudaHostAlloc(void **address, size_t size, unsigned flags);
CUDA_API int cudaFreeHost(void *address);
CUDA_API int cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes);
CUDA_API int cudaPointerGetAttributes(struct pointer_attributes *attributes, const void *address);

/* runtime/registration.c */
CUDA_API int cudaHostRegister(void *address, size_t size, unsigned flags);
CUDA_API int cudaHostUnregister(void *address);
CUDA_API int cudaHostGetDevicePointer(void **device_pointer, void *address, unsigned flags);
CUDA_API int cudaHostGetFlags(unsigned *flags, void *address);

/* runtime/copies.c */
WITH_TWIN(cudaMemcpy, cudaMemcpy_ptds, void *destination, const void *source, size_t size, int kind)
WITH_TWIN(cudaMemcpyAsync, cudaMemcpyAsync_ptsz, void *destination, const void *source, size_t size, int kind,
          void *stream)
WITH_TWIN(cudaMemcpy2D, cudaMemcpy2D_ptds, void *destination, size_t destination_pitch, const void *source,
          size_t source_pitch, size_t width, size_t height, int kind)
WITH_TWIN(cudaMemcpy2DAsync, cudaMemcpy2DAsync_ptsz, void *destination, size_t destination_pitch, const void *source,
          size_t source_pitch, size_t width, size_t height, int kind, void *stream)
WITH_TWIN(cudaMemset, cudaMemset_ptds, void *destination, int value, size_t size)
WITH_TWIN(cudaMemsetAsync, cudaMemsetAsync_ptsz, void *destination, int value, size_t size, void *stream)

/* runtime/batch.c: the parameters depend on the runtime's major version */
#if SIM_RUNTIME_OWN >= FIRST_VERSION_WITH_BATCH && SIM_RUNTIME_OWN < FIRST_VERSION_WITHOUT_FAIL_INDEX
WITH_TWIN(cudaMemcpyBatchAsync, cudaMemcpyBatchAsync_ptsz, const cuda_address *destinations,
          const cuda_address *sources, const size_t *sizes, size_t count, const struct copy_attributes *attributes,
          const size_t *first_copies, size_t attribute_count, size_t *fail_index, void *stream)
#elif SIM_RUNTIME_OWN >= FIRST_VERSION_WITH_BATCH
WITH_TWIN(cudaMemcpyBatchAsync, cudaMemcpyBatchAsync_ptsz, const cuda_address *destinations,
          const cuda_address *sources, const size_t *sizes, size_t count, const struct copy_attributes *attributes,
          const size_t *first_copies, size_t attribute_count, void *stream)
#endif

#if SIM_RUNTIME_OWN >= FIRST_VERSION_WITHOUT_FAIL_INDEX
WITH_TWIN(cudaMemcpyWithAttributesAsync, cudaMemcpyWithAttributesAsync_ptsz, void *destination, const void *source,
          size_t size, const struct copy_attributes *attributes, void *stream)
#endif

/* runtime/batch_3d.c: the same */
#if SIM_RUNTIME_OWN >= FIRST_VERSION_WITH_BATCH && SIM_RUNTIME_OWN < FIRST_VERSION_WITHOUT_FAIL_INDEX
WITH_TWIN(cudaMemcpy3DBatchAsync, cudaMemcpy3DBatchAsync_ptsz, size_t count, const struct copy_3d *operations,
          size_t *fail_index, unsigned long long flags, void *stream)
#elif SIM_RUNTIME_OWN >= FIRST_VERSION_WITH_BATCH
WITH_TWIN(cudaMemcpy3DBatchAsync, cudaMemcpy3DBatchAsync_ptsz, size_t count, const struct copy_3d *operations,
          unsigned long long flags, void *stream)
#endif

/* runtime/streams.c */
CUDA_API int cudaStreamCreate(void **stream);
CUDA_API int cudaStreamCreateWithFlags(void **stream, unsigned flags);
CUDA_API int cudaStreamCreateWithPriority(void **stream, unsigned flags, int priority);
CUDA_API int cudaStreamDestroy(void *stream);
WITH_TWIN(cudaStreamSynchronize, cudaStreamSynchronize_ptsz, void *stream)
WITH_TWIN(cudaStreamQuery, cudaStreamQuery_ptsz, void *stream)
WITH_TWIN(cudaStreamWaitEvent, cudaStreamWaitEvent_ptsz, void *stream, void *event, unsigned flags)
WITH_TWIN(cudaLaunchHostFunc, cudaLaunchHostFunc_ptsz, void *stream, void (*function)(void *), void *argument)

/* runtime/graphs.c */
WITH_TWIN(cudaStreamBeginCapture, cudaStreamBeginCapture_ptsz, void *stream, int mode)
WITH_TWIN(cudaStreamEndCapture, cudaStreamEndCapture_ptsz, void *stream, void **graph)
WITH_TWIN(cudaStreamIsCapturing, cudaStreamIsCapturing_ptsz, void *stream, int *status)
/* Also the head of the form that 13.0 has under this name: what follows there is not looked at. */
WITH_TWIN(cudaStreamGetCaptureInfo, cudaStreamGetCaptureInfo_ptsz, void *stream, int *status, uint64_t *id)
CUDA_API int cudaThreadExchangeStreamCaptureMode(int *mode);
CUDA_API int cudaGraphInstantiate(void **executable, void *graph, unsigned long long flags);
CUDA_API int cudaGraphInstantiateWithFlags(void **executable, void *graph, unsigned long long flags);
CUDA_API int cudaGraphExecDestroy(void *executable);
WITH_TWIN(cudaGraphLaunch, cudaGraphLaunch_ptsz, void *executable, void *stream)
CUDA_API int cudaGraphGetNodes(void *graph, void **nodes, size_t *count);
CUDA_API int cudaGraphDestroy(void *graph);

/* runtime/events.c */
CUDA_API int cudaEventCreate(void **event);
CUDA_API int cudaEventCreateWithFlags(void **event, unsigned flags);
CUDA_API int cudaEventDestroy(void *event);
CUDA_API int cudaEventQuery(void *event);
CUDA_API int cudaEventSynchronize(void *event);
CUDA_API int cudaEventElapsedTime(float *milliseconds, void *start, void *end);
WITH_TWIN(cudaEventRecord, cudaEventRecord_ptsz, void *event, void *stream)

/* runtime/properties.c: a cudaDeviceProp is written as bytes */
#if SIM_RUNTIME_OWN >= FIRST_VERSION_WITHOUT_FAIL_INDEX
CUDA_API int cudaGetDeviceProperties(char *properties, int device);
#else
CUDA_API int cudaGetDeviceProperties_v2(char *properties, int device);
#endif
CUDA_API int cudaDeviceGetPCIBusId(char *text, int size, int device);
CUDA_API int cudaDeviceGetStreamPriorityRange(int *lowest, int *highest);
CUDA_API int cudaDeviceCanAccessPeer(int *can, int device, int peer);

/* runtime/stream_queries.c */
WITH_TWIN(cudaStreamGetPriority, cudaStreamGetPriority_ptsz, void *stream, int *priority)
WITH_TWIN(cudaStreamGetFlags, cudaStreamGetFlags_ptsz, void *stream, unsigned *flags)
WITH_TWIN(cudaEventRecordWithFlags, cudaEventRecordWithFlags_ptsz, void *event, void *stream, unsigned flags)

#endif
