/* The table of names, versions and functions; see names.h. */
#include "names.h"

#include <stddef.h>

#include "api.h"

#define ALONE(name, since, function) {#name, since, (any_function)(function), NULL}
#define TWINS(name, since, function, twin) {#name, since, (any_function)(function), (any_function)(twin)}

const struct named_function named_functions[] = {
    ALONE(cuInit, 2000, cuInit),
    ALONE(cuDriverGetVersion, 2020, cuDriverGetVersion),
    ALONE(cuGetErrorName, 6000, cuGetErrorName),
    ALONE(cuGetErrorString, 6000, cuGetErrorString),
    ALONE(cuGetExportTable, 3000, cuGetExportTable),
    ALONE(cuGetProcAddress, 11030, cuGetProcAddress),
    ALONE(cuGetProcAddress, 12000, cuGetProcAddress_v2),
    ALONE(cuDeviceGet, 2000, cuDeviceGet),
    ALONE(cuDeviceGetCount, 2000, cuDeviceGetCount),
    ALONE(cuDeviceGetName, 2000, cuDeviceGetName),
    ALONE(cuDeviceGetUuid, 9020, cuDeviceGetUuid),
    ALONE(cuDeviceGetUuid, 11040, cuDeviceGetUuid_v2),
    ALONE(cuDeviceTotalMem, 3020, cuDeviceTotalMem_v2),
    ALONE(cuDeviceGetAttribute, 2000, cuDeviceGetAttribute),
    ALONE(cuDeviceGetPCIBusId, 4010, cuDeviceGetPCIBusId),
    ALONE(cuDevicePrimaryCtxRetain, 7000, cuDevicePrimaryCtxRetain),
    ALONE(cuDevicePrimaryCtxRelease, 11000, cuDevicePrimaryCtxRelease_v2),
    ALONE(cuDevicePrimaryCtxReset, 11000, cuDevicePrimaryCtxReset_v2),
    ALONE(cuDevicePrimaryCtxGetState, 7000, cuDevicePrimaryCtxGetState),
    ALONE(cuCtxSetCurrent, 4000, cuCtxSetCurrent),
    ALONE(cuCtxGetCurrent, 4000, cuCtxGetCurrent),
    ALONE(cuCtxGetDevice, 2000, cuCtxGetDevice),
    ALONE(cuCtxSynchronize, 2000, cuCtxSynchronize),
#if SIM_DRIVER_OWN >= FIRST_VERSION_WITHOUT_FAIL_INDEX
    ALONE(cuCtxGetDevice, 13000, cuCtxGetDevice_v2),
    ALONE(cuCtxSynchronize, 13000, cuCtxSynchronize_v2),
#endif
    ALONE(cuCtxGetStreamPriorityRange, 5050, cuCtxGetStreamPriorityRange),
    TWINS(cuStreamGetCtx, 9020, cuStreamGetCtx, cuStreamGetCtx_ptsz),
#if SIM_DRIVER_OWN >= FIRST_VERSION_WITH_BATCH
    TWINS(cuStreamGetCtx, 12050, cuStreamGetCtx_v2, cuStreamGetCtx_v2_ptsz),
#endif
    ALONE(cuMemAlloc, 3020, cuMemAlloc_v2),
    ALONE(cuMemFree, 3020, cuMemFree_v2),
    ALONE(cuMemAllocHost, 3020, cuMemAllocHost_v2),
    ALONE(cuMemHostAlloc, 2020, cuMemHostAlloc),
    ALONE(cuMemFreeHost, 2000, cuMemFreeHost),
    ALONE(cuMemHostRegister, 6050, cuMemHostRegister_v2),
    ALONE(cuMemHostUnregister, 4000, cuMemHostUnregister),
    ALONE(cuMemHostGetDevicePointer, 3020, cuMemHostGetDevicePointer_v2),
    ALONE(cuMemHostGetFlags, 2030, cuMemHostGetFlags),
    ALONE(cuMemGetInfo, 3020, cuMemGetInfo_v2),
    ALONE(cuMemGetAddressRange, 3020, cuMemGetAddressRange_v2),
    ALONE(cuPointerGetAttribute, 4000, cuPointerGetAttribute),
    ALONE(cuPointerGetAttributes, 7000, cuPointerGetAttributes),
    TWINS(cuMemcpy, 4000, cuMemcpy, cuMemcpy_ptds),
    TWINS(cuMemcpyHtoD, 3020, cuMemcpyHtoD_v2, cuMemcpyHtoD_v2_ptds),
    TWINS(cuMemcpyDtoH, 3020, cuMemcpyDtoH_v2, cuMemcpyDtoH_v2_ptds),
    TWINS(cuMemcpyDtoD, 3020, cuMemcpyDtoD_v2, cuMemcpyDtoD_v2_ptds),
    TWINS(cuMemcpyAsync, 4000, cuMemcpyAsync, cuMemcpyAsync_ptsz),
    TWINS(cuMemcpyHtoDAsync, 3020, cuMemcpyHtoDAsync_v2, cuMemcpyHtoDAsync_v2_ptsz),
    TWINS(cuMemcpyDtoHAsync, 3020, cuMemcpyDtoHAsync_v2, cuMemcpyDtoHAsync_v2_ptsz),
    TWINS(cuMemcpyDtoDAsync, 3020, cuMemcpyDtoDAsync_v2, cuMemcpyDtoDAsync_v2_ptsz),
    TWINS(cuMemcpy2D, 3020, cuMemcpy2D_v2, cuMemcpy2D_v2_ptds),
    TWINS(cuMemcpy2DAsync, 3020, cuMemcpy2DAsync_v2, cuMemcpy2DAsync_v2_ptsz),
    TWINS(cuMemsetD8, 3020, cuMemsetD8_v2, cuMemsetD8_v2_ptds),
    TWINS(cuMemsetD8Async, 3020, cuMemsetD8Async, cuMemsetD8Async_ptsz),
#if SIM_DRIVER_OWN >= FIRST_VERSION_WITH_BATCH
    TWINS(cuMemcpyBatchAsync, FIRST_VERSION_WITH_BATCH, cuMemcpyBatchAsync, cuMemcpyBatchAsync_ptsz),
    TWINS(cuMemcpy3DBatchAsync, FIRST_VERSION_WITH_BATCH, cuMemcpy3DBatchAsync, cuMemcpy3DBatchAsync_ptsz),
#endif
#if SIM_DRIVER_OWN >= FIRST_VERSION_WITHOUT_FAIL_INDEX
    TWINS(cuMemcpyBatchAsync, FIRST_VERSION_WITHOUT_FAIL_INDEX, cuMemcpyBatchAsync_v2, cuMemcpyBatchAsync_v2_ptsz),
    TWINS(cuMemcpy3DBatchAsync, FIRST_VERSION_WITHOUT_FAIL_INDEX, cuMemcpy3DBatchAsync_v2,
          cuMemcpy3DBatchAsync_v2_ptsz),
#endif
    ALONE(cuStreamCreate, 2000, cuStreamCreate),
    ALONE(cuStreamCreateWithPriority, 5050, cuStreamCreateWithPriority),
    ALONE(cuStreamDestroy, 4000, cuStreamDestroy_v2),
    TWINS(cuStreamSynchronize, 2000, cuStreamSynchronize, cuStreamSynchronize_ptsz),
    TWINS(cuStreamQuery, 2000, cuStreamQuery, cuStreamQuery_ptsz),
    TWINS(cuStreamWaitEvent, 3020, cuStreamWaitEvent, cuStreamWaitEvent_ptsz),
    TWINS(cuStreamGetFlags, 5050, cuStreamGetFlags, cuStreamGetFlags_ptsz),
    TWINS(cuStreamGetPriority, 5050, cuStreamGetPriority, cuStreamGetPriority_ptsz),
    TWINS(cuLaunchHostFunc, 10000, cuLaunchHostFunc, cuLaunchHostFunc_ptsz),
    TWINS(cuStreamBeginCapture, 10010, cuStreamBeginCapture_v2, cuStreamBeginCapture_v2_ptsz),
    TWINS(cuStreamEndCapture, 10000, cuStreamEndCapture, cuStreamEndCapture_ptsz),
    TWINS(cuStreamIsCapturing, 10000, cuStreamIsCapturing, cuStreamIsCapturing_ptsz),
    ALONE(cuThreadExchangeStreamCaptureMode, 10010, cuThreadExchangeStreamCaptureMode),
    ALONE(cuGraphGetNodes, 10000, cuGraphGetNodes),
    ALONE(cuGraphDestroy, 10000, cuGraphDestroy),
    ALONE(cuEventCreate, 2000, cuEventCreate),
    ALONE(cuEventDestroy, 4000, cuEventDestroy_v2),
    ALONE(cuEventQuery, 2000, cuEventQuery),
    ALONE(cuEventSynchronize, 2000, cuEventSynchronize),
    ALONE(cuEventElapsedTime, 2000, cuEventElapsedTime),
    ALONE(cuEventElapsedTime, 12080, cuEventElapsedTime_v2),
    TWINS(cuEventRecord, 2000, cuEventRecord, cuEventRecord_ptsz),
    TWINS(cuEventRecordWithFlags, 11010, cuEventRecordWithFlags, cuEventRecordWithFlags_ptsz),
    {NULL, 0, NULL, NULL},
};
