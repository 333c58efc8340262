/*
 * Every function that the simulated libcuda exports, with the names and suffixes that cuda.h maps to.
 *
 * `_ptsz` and `_ptds` twins take a NULL stream as the thread's own default stream. The driver takes
 * CUdeviceptr as cuda_address, handles as void *, devices as int. Returned ints are cuda_codes.
 */
#ifndef CUDABATCH_DRIVER_API_H
#define CUDABATCH_DRIVER_API_H

#include "../abi.h"

/* A function and its per-thread twin, which have the same parameters. */
#define WITH_TWIN(name, twin, ...)   \
    CUDA_API int name(__VA_ARGS__);  \
    CUDA_API int twin(__VA_ARGS__);

/* driver/initialise.c */
CUDA_API int cuInit(unsigned flags);
CUDA_API int cuDriverGetVersion(int *version);
CUDA_API int cuGetExportTable(const void **table, const void *uuid);

/* driver/error_names.c */
CUDA_API int cuGetErrorName(int code, const char **name);
CUDA_API int cuGetErrorString(int code, const char **text);

/* driver/lookup.c */
CUDA_API int cuGetProcAddress(const char *name, void **function, int version, uint64_t flags);
CUDA_API int cuGetProcAddress_v2(const char *name, void **function, int version, uint64_t flags, int *status);

/* driver/devices.c */
CUDA_API int cuDeviceGet(int *device, int ordinal);
CUDA_API int cuDeviceGetCount(int *count);
CUDA_API int cuDeviceGetName(char *name, int size, int device);
CUDA_API int cuDeviceGetUuid(char uuid[16], int device);
CUDA_API int cuDeviceGetUuid_v2(char uuid[16], int device);
CUDA_API int cuDeviceTotalMem_v2(size_t *bytes, int device);
CUDA_API int cuDeviceGetAttribute(int *value, int attribute, int device);
CUDA_API int cuDeviceGetPCIBusId(char *text, int size, int device);

/* driver/contexts.c */
CUDA_API int cuDevicePrimaryCtxRetain(void **context, int device);
CUDA_API int cuDevicePrimaryCtxRelease_v2(int device);
CUDA_API int cuDevicePrimaryCtxReset_v2(int device);
CUDA_API int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active);
CUDA_API int cuCtxSetCurrent(void *context);
CUDA_API int cuCtxGetCurrent(void **context);
CUDA_API int cuCtxGetDevice(int *device);
CUDA_API int cuCtxSynchronize(void);
CUDA_API int cuCtxGetStreamPriorityRange(int *lowest, int *highest);
WITH_TWIN(cuStreamGetCtx, cuStreamGetCtx_ptsz, void *stream, void **context)
#if SIM_DRIVER_OWN >= FIRST_VERSION_WITH_BATCH
WITH_TWIN(cuStreamGetCtx_v2, cuStreamGetCtx_v2_ptsz, void *stream, void **context, void **green)
#endif
#if SIM_DRIVER_OWN >= FIRST_VERSION_WITHOUT_FAIL_INDEX
CUDA_API int cuCtxGetDevice_v2(int *device, void *context);
CUDA_API int cuCtxSynchronize_v2(void *context);
#endif

/* driver/memory_entries.c */
CUDA_API int cuMemAlloc_v2(cuda_address *address, size_t size);
CUDA_API int cuMemFree_v2(cuda_address address);
CUDA_API int cuMemAllocHost_v2(void **address, size_t size);
CUDA_API int cuMemHostAlloc(void **address, size_t size, unsigned flags);
CUDA_API int cuMemFreeHost(void *address);
CUDA_API int cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes);
CUDA_API int cuMemGetAddressRange_v2(cuda_address *base, size_t *size, cuda_address address);
CUDA_API int cuPointerGetAttribute(void *value, int attribute, cuda_address address);
CUDA_API int cuPointerGetAttributes(unsigned count, const int *attributes, void **values, cuda_address address);

/* driver/pool_entries.c */
CUDA_API int cuMemPoolCreate(void **pool, const struct pool_properties *properties);
CUDA_API int cuMemPoolDestroy(void *pool);
CUDA_API int cuMemPoolTrimTo(void *pool, size_t kept);
CUDA_API int cuMemPoolGetAttribute(void *pool, int attribute, void *value);
CUDA_API int cuMemPoolSetAttribute(void *pool, int attribute, void *value);
CUDA_API int cuMemPoolSetAccess(void *pool, const struct pool_access *accesses, size_t count);
CUDA_API int cuMemPoolGetAccess(int *flags, void *pool, struct memory_location *location);
CUDA_API int cuDeviceGetDefaultMemPool(void **pool, int device);
CUDA_API int cuDeviceGetMemPool(void **pool, int device);
CUDA_API int cuDeviceSetMemPool(int device, void *pool);
#if SIM_DRIVER_OWN >= FIRST_VERSION_WITHOUT_FAIL_INDEX
CUDA_API int cuMemGetDefaultMemPool(void **pool, struct memory_location *location, int type);
CUDA_API int cuMemGetMemPool(void **pool, struct memory_location *location, int type);
CUDA_API int cuMemSetMemPool(struct memory_location *location, int type, void *pool);
#endif
WITH_TWIN(cuMemAllocAsync, cuMemAllocAsync_ptsz, cuda_address *address, size_t size, void *stream)
WITH_TWIN(cuMemAllocFromPoolAsync, cuMemAllocFromPoolAsync_ptsz, cuda_address *address, size_t size, void *pool,
          void *stream)
WITH_TWIN(cuMemFreeAsync, cuMemFreeAsync_ptsz, cuda_address address, void *stream)

/* driver/registration_entries.c */
CUDA_API int cuMemHostRegister_v2(void *address, size_t size, unsigned flags);
CUDA_API int cuMemHostUnregister(void *address);
CUDA_API int cuMemHostGetDevicePointer_v2(cuda_address *device_pointer, void *address, unsigned flags);
CUDA_API int cuMemHostGetFlags(unsigned *flags, void *address);

/* driver/copy_entries.c */
WITH_TWIN(cuMemcpy, cuMemcpy_ptds, cuda_address destination, cuda_address source, size_t size)
WITH_TWIN(cuMemcpyHtoD_v2, cuMemcpyHtoD_v2_ptds, cuda_address destination, const void *source, size_t size)
WITH_TWIN(cuMemcpyDtoH_v2, cuMemcpyDtoH_v2_ptds, void *destination, cuda_address source, size_t size)
WITH_TWIN(cuMemcpyDtoD_v2, cuMemcpyDtoD_v2_ptds, cuda_address destination, cuda_address source, size_t size)
WITH_TWIN(cuMemcpyAsync, cuMemcpyAsync_ptsz, cuda_address destination, cuda_address source, size_t size, void *stream)
WITH_TWIN(cuMemcpyHtoDAsync_v2, cuMemcpyHtoDAsync_v2_ptsz, cuda_address destination, const void *source, size_t size,
          void *stream)
WITH_TWIN(cuMemcpyDtoHAsync_v2, cuMemcpyDtoHAsync_v2_ptsz, void *destination, cuda_address source, size_t size,
          void *stream)
WITH_TWIN(cuMemcpyDtoDAsync_v2, cuMemcpyDtoDAsync_v2_ptsz, cuda_address destination, cuda_address source, size_t size,
          void *stream)

/* driver/fill_entries.c */
WITH_TWIN(cuMemsetD8_v2, cuMemsetD8_v2_ptds, cuda_address destination, unsigned char value, size_t count)
WITH_TWIN(cuMemsetD8Async, cuMemsetD8Async_ptsz, cuda_address destination, unsigned char value, size_t count,
          void *stream)
WITH_TWIN(cuMemsetD16_v2, cuMemsetD16_v2_ptds, cuda_address destination, unsigned short value, size_t count)
WITH_TWIN(cuMemsetD16Async, cuMemsetD16Async_ptsz, cuda_address destination, unsigned short value, size_t count,
          void *stream)
WITH_TWIN(cuMemsetD32_v2, cuMemsetD32_v2_ptds, cuda_address destination, unsigned value, size_t count)
WITH_TWIN(cuMemsetD32Async, cuMemsetD32Async_ptsz, cuda_address destination, unsigned value, size_t count,
          void *stream)

/* driver/copy_2d_entries.c */
WITH_TWIN(cuMemcpy2D_v2, cuMemcpy2D_v2_ptds, const struct copy_2d *copy)
WITH_TWIN(cuMemcpy2DAsync_v2, cuMemcpy2DAsync_v2_ptsz, const struct copy_2d *copy, void *stream)

/* driver/batch_entries.c: one name, two ABIs */
#if SIM_DRIVER_OWN >= FIRST_VERSION_WITH_BATCH
WITH_TWIN(cuMemcpyBatchAsync, cuMemcpyBatchAsync_ptsz, const cuda_address *destinations, const cuda_address *sources,
          const size_t *sizes, size_t count, const struct copy_attributes *attributes, const size_t *first_copies,
          size_t attribute_count, size_t *fail_index, void *stream)
#endif
#if SIM_DRIVER_OWN >= FIRST_VERSION_WITHOUT_FAIL_INDEX
WITH_TWIN(cuMemcpyBatchAsync_v2, cuMemcpyBatchAsync_v2_ptsz, const cuda_address *destinations,
          const cuda_address *sources, const size_t *sizes, size_t count, const struct copy_attributes *attributes,
          const size_t *first_copies, size_t attribute_count, void *stream)
#endif

#if SIM_DRIVER_OWN >= FIRST_VERSION_WITHOUT_FAIL_INDEX
WITH_TWIN(cuMemcpyWithAttributesAsync, cuMemcpyWithAttributesAsync_ptsz, cuda_address destination, cuda_address source,
          size_t size, const struct copy_attributes *attributes, void *stream)
#endif

/* driver/batch_3d_entries.c: the same */
#if SIM_DRIVER_OWN >= FIRST_VERSION_WITH_BATCH
WITH_TWIN(cuMemcpy3DBatchAsync, cuMemcpy3DBatchAsync_ptsz, size_t count, const struct copy_3d *operations,
          size_t *fail_index, unsigned long long flags, void *stream)
#endif
#if SIM_DRIVER_OWN >= FIRST_VERSION_WITHOUT_FAIL_INDEX
WITH_TWIN(cuMemcpy3DBatchAsync_v2, cuMemcpy3DBatchAsync_v2_ptsz, size_t count, const struct copy_3d *operations,
          unsigned long long flags, void *stream)
#endif

/* driver/stream_entries.c */
CUDA_API int cuStreamCreate(void **stream, unsigned flags);
CUDA_API int cuStreamCreateWithPriority(void **stream, unsigned flags, int priority);
CUDA_API int cuStreamDestroy_v2(void *stream);
WITH_TWIN(cuStreamSynchronize, cuStreamSynchronize_ptsz, void *stream)
WITH_TWIN(cuStreamQuery, cuStreamQuery_ptsz, void *stream)
WITH_TWIN(cuStreamWaitEvent, cuStreamWaitEvent_ptsz, void *stream, void *event, unsigned flags)
WITH_TWIN(cuStreamGetFlags, cuStreamGetFlags_ptsz, void *stream, unsigned *flags)
WITH_TWIN(cuStreamGetPriority, cuStreamGetPriority_ptsz, void *stream, int *priority)
WITH_TWIN(cuLaunchHostFunc, cuLaunchHostFunc_ptsz, void *stream, void (*function)(void *), void *argument)

/* driver/capture_entries.c */
WITH_TWIN(cuStreamBeginCapture_v2, cuStreamBeginCapture_v2_ptsz, void *stream, int mode)
WITH_TWIN(cuStreamEndCapture, cuStreamEndCapture_ptsz, void *stream, void **graph)
WITH_TWIN(cuStreamIsCapturing, cuStreamIsCapturing_ptsz, void *stream, int *status)
WITH_TWIN(cuStreamGetCaptureInfo, cuStreamGetCaptureInfo_ptsz, void *stream, int *status, uint64_t *id)
WITH_TWIN(cuStreamGetCaptureInfo_v2, cuStreamGetCaptureInfo_v2_ptsz, void *stream, int *status, uint64_t *id,
          void **graph, const void **nodes, size_t *count)
WITH_TWIN(cuStreamGetCaptureInfo_v3, cuStreamGetCaptureInfo_v3_ptsz, void *stream, int *status, uint64_t *id,
          void **graph, const void **nodes, const void **edges, size_t *count)
CUDA_API int cuThreadExchangeStreamCaptureMode(int *mode);

/* driver/graph_entries.c */
CUDA_API int cuGraphInstantiateWithFlags(void **executable, void *graph, unsigned long long flags);
CUDA_API int cuGraphInstantiate_v2(void **executable, void *graph, void **node, char *text, size_t size);
CUDA_API int cuGraphExecDestroy(void *executable);
WITH_TWIN(cuGraphLaunch, cuGraphLaunch_ptsz, void *executable, void *stream)
CUDA_API int cuGraphGetNodes(void *graph, void **nodes, size_t *count);
CUDA_API int cuGraphDestroy(void *graph);

/* driver/event_entries.c */
CUDA_API int cuEventCreate(void **event, unsigned flags);
CUDA_API int cuEventDestroy_v2(void *event);
CUDA_API int cuEventQuery(void *event);
CUDA_API int cuEventSynchronize(void *event);
CUDA_API int cuEventElapsedTime(float *milliseconds, void *start, void *end);
CUDA_API int cuEventElapsedTime_v2(float *milliseconds, void *start, void *end);
WITH_TWIN(cuEventRecord, cuEventRecord_ptsz, void *event, void *stream)
WITH_TWIN(cuEventRecordWithFlags, cuEventRecordWithFlags_ptsz, void *event, void *stream, unsigned flags)

#endif
