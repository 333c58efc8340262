/* The simulated devices, all alike. Needs cuInit, no context. */
#include <stdio.h>
#include <string.h>

#include "../engine/devices.h"
#include "../engine/memory.h"
#include "../engine/schedule.h"
#include "api.h"
#include "state.h"

static const char NAME[] = "pytest-cudabatch simulated device";
static const char PCI_BUS_ID[] = "0000:00:00.0";
enum { PCI_BUS_DIGIT = 6 }; /* index of the digit that is the device's number */

/* Number of CUdevice_attribute and value; every attribute that is not listed is 0. */
static const struct {
    int attribute, value;
} attributes[] = {
    {1, 1024},  /* MAX_THREADS_PER_BLOCK */
    {10, 32},   /* WARP_SIZE */
    {16, 1},    /* MULTIPROCESSOR_COUNT */
    {19, 1},    /* CAN_MAP_HOST_MEMORY */
    {31, 1},    /* CONCURRENT_KERNELS */
    {40, 1},    /* ASYNC_ENGINE_COUNT */
    {41, 1},    /* UNIFIED_ADDRESSING */
    {75, 9},    /* COMPUTE_CAPABILITY_MAJOR */
    {78, 1},    /* STREAM_PRIORITIES_SUPPORTED */
    {91, 1},    /* CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM */
    {99, 1},    /* HOST_REGISTER_SUPPORTED */
    {115, 1},   /* MEMORY_POOLS_SUPPORTED */
    {142, 1},   /* HOST_NUMA_MEMORY_POOLS_SUPPORTED, since 12.9 */
    {144, 1},   /* HOST_MEMORY_POOLS_SUPPORTED, since 13.0 */
};

static int check(const void *answer, int device)
{
    int code = driver_ready();
    if (code == CUDA_OK && answer == NULL)
        code = CUDA_INVALID_VALUE;
    return code == CUDA_OK ? device_ready(device) : code;
}

int cuDeviceGet(int *device, int ordinal)
{
    int code = check(device, ordinal);
    if (code == CUDA_OK)
        *device = ordinal;
    return code;
}

int cuDeviceGetCount(int *count)
{
    int code = check(count, 0);
    if (code == CUDA_OK)
        *count = device_count();
    return code;
}

int cuDeviceGetName(char *name, int size, int device)
{
    int code = size > 0 ? check(name, device) : CUDA_INVALID_VALUE;
    if (code == CUDA_OK)
        snprintf(name, (size_t)size, "%s", NAME);
    return code;
}

int cuDeviceGetUuid(char uuid[16], int device)
{
    int code = check(uuid, device);
    if (code == CUDA_OK)
        memcpy(uuid, "cudabatch-sim-0\0", 16);
    if (code == CUDA_OK)
        uuid[14] = (char)('0' + device);
    return code;
}

int cuDeviceGetUuid_v2(char uuid[16], int device)
{
    return cuDeviceGetUuid(uuid, device);
}

int cuDeviceTotalMem_v2(size_t *bytes, int device)
{
    size_t free_bytes;
    int code = check(bytes, device);
    if (code != CUDA_OK)
        return code;
    engine_lock();
    memory_totals(device, &free_bytes, bytes);
    engine_unlock();
    return CUDA_OK;
}

int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    int code = attribute > 0 ? check(value, device) : CUDA_INVALID_VALUE;
    if (code != CUDA_OK)
        return code;
    *value = 0;
    for (size_t index = 0; index < sizeof attributes / sizeof *attributes; index++)
        if (attributes[index].attribute == attribute)
            *value = attributes[index].value;
    return CUDA_OK;
}

int cuDeviceGetPCIBusId(char *text, int size, int device)
{
    int code = check(text, device);
    if (code != CUDA_OK)
        return code;
    if (size < (int)sizeof PCI_BUS_ID)
        return CUDA_INVALID_VALUE;
    memcpy(text, PCI_BUS_ID, sizeof PCI_BUS_ID);
    text[PCI_BUS_DIGIT] = (char)('0' + device);
    return CUDA_OK;
}
