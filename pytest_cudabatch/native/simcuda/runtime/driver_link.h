/*
 * The runtime's way to the driver: libcuda.so.1 by dlopen, its functions by cuGetProcAddress.
 *
 * Whichever libcuda.so.1 the process already has is taken. As a real libcudart does, each function is
 * asked for with flags 0 and 2, in the version whose ABI the runtime was written for.
 */
#ifndef CUDABATCH_DRIVER_LINK_H
#define CUDABATCH_DRIVER_LINK_H

#include "../abi.h"

/* A batch function's parameters up to failIdx or the stream. */
#define BATCH_PARAMETERS                                                                                    \
    const cuda_address *destinations, const cuda_address *sources, const size_t *sizes, size_t count,       \
        const struct copy_attributes *attributes, const size_t *first_copies, size_t attribute_count

/* The same of the 3D batch function, up to failIdx or the flags. */
#define BATCH_3D_PARAMETERS size_t count, const struct copy_3d *operations

/* Which ABIs of the batch functions this runtime asks for: none, 12080, or 12080 and 13000. */
#if SIM_RUNTIME_OWN >= FIRST_VERSION_WITHOUT_FAIL_INDEX
#define BATCH_FUNCTIONS(ENTRY)                                                                \
    ENTRY(batch_9, "cuMemcpyBatchAsync", 12080, (BATCH_PARAMETERS, size_t *, void *))         \
    ENTRY(batch_8, "cuMemcpyBatchAsync", 13000, (BATCH_PARAMETERS, void *))                   \
    ENTRY(copy_with_attributes, "cuMemcpyWithAttributesAsync", 13020,                         \
          (cuda_address, cuda_address, size_t, const struct copy_attributes *, void *))       \
    ENTRY(batch_3d_5, "cuMemcpy3DBatchAsync", 12080, (BATCH_3D_PARAMETERS, size_t *, unsigned long long, void *)) \
    ENTRY(batch_3d_4, "cuMemcpy3DBatchAsync", 13000, (BATCH_3D_PARAMETERS, unsigned long long, void *))
#elif SIM_RUNTIME_OWN >= FIRST_VERSION_WITH_BATCH
#define BATCH_FUNCTIONS(ENTRY)                                                                \
    ENTRY(batch_9, "cuMemcpyBatchAsync", 12080, (BATCH_PARAMETERS, size_t *, void *))         \
    ENTRY(batch_3d_5, "cuMemcpy3DBatchAsync", 12080, (BATCH_3D_PARAMETERS, size_t *, unsigned long long, void *))
#else
#define BATCH_FUNCTIONS(ENTRY)
#endif

/* Member, name, version, parameters. All return a CUresult. */
#define DRIVER_FUNCTIONS(ENTRY)                                                                           \
    ENTRY(init, "cuInit", 2000, (unsigned))                                                               \
    ENTRY(driver_get_version, "cuDriverGetVersion", 2020, (int *))                                        \
    ENTRY(device_get_count, "cuDeviceGetCount", 2000, (int *))                                            \
    ENTRY(device_get_attribute, "cuDeviceGetAttribute", 2000, (int *, int, int))                          \
    ENTRY(device_get_name, "cuDeviceGetName", 2000, (char *, int, int))                                   \
    ENTRY(device_get_uuid, "cuDeviceGetUuid", 11040, (char *, int))                                       \
    ENTRY(device_total_memory, "cuDeviceTotalMem", 3020, (size_t *, int))                                 \
    ENTRY(device_get_pci_bus_id, "cuDeviceGetPCIBusId", 4010, (char *, int, int))                         \
    ENTRY(context_retain, "cuDevicePrimaryCtxRetain", 7000, (void **, int))                               \
    ENTRY(context_release, "cuDevicePrimaryCtxRelease", 11000, (int))                                     \
    ENTRY(context_reset, "cuDevicePrimaryCtxReset", 11000, (int))                                         \
    ENTRY(context_set_current, "cuCtxSetCurrent", 4000, (void *))                                         \
    ENTRY(context_get_current, "cuCtxGetCurrent", 4000, (void **))                                        \
    ENTRY(context_get_device, "cuCtxGetDevice", 2000, (int *))                                            \
    ENTRY(context_synchronize, "cuCtxSynchronize", 2000, (void))                                          \
    ENTRY(context_get_priority_range, "cuCtxGetStreamPriorityRange", 5050, (int *, int *))                \
    ENTRY(allocate, "cuMemAlloc", 3020, (cuda_address *, size_t))                                         \
    ENTRY(free, "cuMemFree", 3020, (cuda_address))                                                        \
    ENTRY(host_allocate, "cuMemHostAlloc", 2020, (void **, size_t, unsigned))                             \
    ENTRY(host_free, "cuMemFreeHost", 2000, (void *))                                                     \
    ENTRY(host_register, "cuMemHostRegister", 6050, (void *, size_t, unsigned))                           \
    ENTRY(host_unregister, "cuMemHostUnregister", 4000, (void *))                                         \
    ENTRY(host_get_device_pointer, "cuMemHostGetDevicePointer", 3020, (cuda_address *, void *, unsigned)) \
    ENTRY(host_get_flags, "cuMemHostGetFlags", 2030, (unsigned *, void *))                                \
    ENTRY(get_info, "cuMemGetInfo", 3020, (size_t *, size_t *))                                           \
    ENTRY(pointer_get_attributes, "cuPointerGetAttributes", 7000, (unsigned, const int *, void **, cuda_address)) \
    ENTRY(copy, "cuMemcpy", 4000, (cuda_address, cuda_address, size_t))                                   \
    ENTRY(copy_htod, "cuMemcpyHtoD", 3020, (cuda_address, const void *, size_t))                          \
    ENTRY(copy_dtoh, "cuMemcpyDtoH", 3020, (void *, cuda_address, size_t))                                \
    ENTRY(copy_dtod, "cuMemcpyDtoD", 3020, (cuda_address, cuda_address, size_t))                          \
    ENTRY(copy_async, "cuMemcpyAsync", 4000, (cuda_address, cuda_address, size_t, void *))                \
    ENTRY(copy_htod_async, "cuMemcpyHtoDAsync", 3020, (cuda_address, const void *, size_t, void *))       \
    ENTRY(copy_dtoh_async, "cuMemcpyDtoHAsync", 3020, (void *, cuda_address, size_t, void *))             \
    ENTRY(copy_dtod_async, "cuMemcpyDtoDAsync", 3020, (cuda_address, cuda_address, size_t, void *))       \
    ENTRY(copy_2d, "cuMemcpy2D", 3020, (const struct copy_2d *))                                          \
    ENTRY(copy_2d_async, "cuMemcpy2DAsync", 3020, (const struct copy_2d *, void *))                       \
    ENTRY(set, "cuMemsetD8", 3020, (cuda_address, unsigned char, size_t))                                 \
    ENTRY(set_async, "cuMemsetD8Async", 3020, (cuda_address, unsigned char, size_t, void *))              \
    ENTRY(stream_create, "cuStreamCreateWithPriority", 5050, (void **, unsigned, int))                    \
    ENTRY(stream_destroy, "cuStreamDestroy", 4000, (void *))                                              \
    ENTRY(stream_synchronize, "cuStreamSynchronize", 2000, (void *))                                      \
    ENTRY(stream_query, "cuStreamQuery", 2000, (void *))                                                  \
    ENTRY(stream_wait_event, "cuStreamWaitEvent", 3020, (void *, void *, unsigned))                       \
    ENTRY(stream_get_priority, "cuStreamGetPriority", 5050, (void *, int *))                              \
    ENTRY(stream_get_flags, "cuStreamGetFlags", 5050, (void *, unsigned *))                               \
    ENTRY(launch_host_function, "cuLaunchHostFunc", 10000, (void *, void (*)(void *), void *))            \
    ENTRY(begin_capture, "cuStreamBeginCapture", 10010, (void *, int))                                    \
    ENTRY(end_capture, "cuStreamEndCapture", 10000, (void *, void **))                                    \
    ENTRY(is_capturing, "cuStreamIsCapturing", 10000, (void *, int *))                                    \
    ENTRY(capture_info, "cuStreamGetCaptureInfo", 10010, (void *, int *, uint64_t *))                     \
    ENTRY(exchange_capture_mode, "cuThreadExchangeStreamCaptureMode", 10010, (int *))                     \
    ENTRY(graph_instantiate, "cuGraphInstantiateWithFlags", 11040, (void **, void *, unsigned long long))  \
    ENTRY(graph_launch, "cuGraphLaunch", 10000, (void *, void *))                                         \
    ENTRY(graph_exec_destroy, "cuGraphExecDestroy", 10000, (void *))                                      \
    ENTRY(graph_get_nodes, "cuGraphGetNodes", 10000, (void *, void **, size_t *))                         \
    ENTRY(graph_destroy, "cuGraphDestroy", 10000, (void *))                                               \
    ENTRY(event_create, "cuEventCreate", 2000, (void **, unsigned))                                       \
    ENTRY(event_destroy, "cuEventDestroy", 4000, (void *))                                                \
    ENTRY(event_query, "cuEventQuery", 2000, (void *))                                                    \
    ENTRY(event_synchronize, "cuEventSynchronize", 2000, (void *))                                        \
    ENTRY(event_elapsed_time, "cuEventElapsedTime", 2000, (float *, void *, void *))                      \
    ENTRY(event_record, "cuEventRecord", 2000, (void *, void *))                                          \
    ENTRY(event_record_with_flags, "cuEventRecordWithFlags", 11010, (void *, void *, unsigned))           \
    BATCH_FUNCTIONS(ENTRY)

#define MEMBER(member, name, version, parameters) int (*member) parameters;
struct driver_functions {
    DRIVER_FUNCTIONS(MEMBER)
};
#undef MEMBER

/* A member is NULL where the driver does not have the function. */
struct driver {
    int version;                        /* 0: there is no usable libcuda.so.1 */
    struct driver_functions legacy;     /* looked up with flags 0 */
    struct driver_functions per_thread; /* with flags 2: NULL streams are the thread's own */
    int (*get_proc_address)(const char *, void **, int, uint64_t, int *);
};

/* Opens and asks the driver at the first call, for the whole process. Never NULL. */
const struct driver *driver_link(void);

/*
 * What each runtime call begins with: driver there and new enough, initialised, and the primary context
 * current in this thread. Sets `driver` in any case; returns a cuda_code.
 */
int runtime_ready(const struct driver **driver);

/* The version this runtime reports; 0 where the environment asks for one that it cannot be. */
int runtime_version(void);

/* Makes the device's primary context current in this thread, also for its later calls. */
int runtime_use_device(const struct driver *driver, int device);

/* After cudaDeviceReset: the next call that uses the device retains its primary context anew. */
void runtime_forget_context(int device);

#endif
