/*
 * cudaDeviceProp: what frameworks read of a device before they use it. The values are the driver's.
 *
 * Source of the layout: driver_types.h of 12.9 (1,032 bytes) and 13.0 (1,008 bytes, without what 13.0
 * dropped). Everything that is not listed is 0: a device that can do nothing more than copy.
 */
#include <stdbool.h>
#include <string.h>

#include "api.h"
#include "forward.h"

#if SIM_RUNTIME_OWN >= FIRST_VERSION_WITHOUT_FAIL_INDEX
enum { PROPERTIES_SIZE = 1008 };
#define AT(offset_12, offset_13) (offset_13)
#else
enum { PROPERTIES_SIZE = 1032 };
#define AT(offset_12, offset_13) (offset_12)
#endif

enum { NAME_SIZE = 256, UUID_OFFSET = 256, TOTAL_MEMORY_OFFSET = 288 };

/* Offset of an int member in each layout, and the CUdevice_attribute that it repeats. */
static const struct {
    size_t offset;
    int attribute;
} members[] = {
    {308, 10},           /* warpSize */
    {320, 1},            /* maxThreadsPerBlock */
    {360, 75},           /* major */
    {364, 76},           /* minor */
    {AT(388, 384), 16},  /* multiProcessorCount */
    {AT(400, 392), 19},  /* canMapHostMemory */
    {AT(576, 560), 31},  /* concurrentKernels */
    {AT(600, 584), 40},  /* asyncEngineCount */
    {AT(604, 588), 41},  /* unifiedAddressing */
    {AT(624, 604), 39},  /* maxThreadsPerMultiProcessor */
    {AT(728, 704), 99},  /* hostRegisterSupported */
};

static int fill(const struct driver *driver, char *properties, int device)
{
    size_t total = 0;
    int code = driver->legacy.device_get_name(properties, NAME_SIZE, device);
    if (code == CUDA_OK)
        code = driver->legacy.device_get_uuid(properties + UUID_OFFSET, device);
    if (code == CUDA_OK)
        code = driver->legacy.device_total_memory(&total, device);
    memcpy(properties + TOTAL_MEMORY_OFFSET, &total, sizeof total);
    for (size_t index = 0; code == CUDA_OK && index < sizeof members / sizeof *members; index++) {
        int value = 0;
        code = driver->legacy.device_get_attribute(&value, members[index].attribute, device);
        memcpy(properties + members[index].offset, &value, sizeof value);
    }
    return code;
}

static int properties_of(char *properties, int device)
{
    const struct driver *driver;
    int code = properties == NULL ? CUDA_INVALID_VALUE : runtime_ready(&driver);
    if (code == CUDA_OK) {
        memset(properties, 0, PROPERTIES_SIZE);
        code = fill(driver, properties, device);
    }
    return record(code);
}

/* In 12.x the plain name has an older, shorter layout, which is not simulated. */
#if SIM_RUNTIME_OWN >= FIRST_VERSION_WITHOUT_FAIL_INDEX
int cudaGetDeviceProperties(char *properties, int device)
#else
int cudaGetDeviceProperties_v2(char *properties, int device)
#endif
{
    return properties_of(properties, device);
}

int cudaDeviceGetPCIBusId(char *text, int size, int device)
{
    FORWARD(legacy, device_get_pci_bus_id, text, size, device);
}

int cudaDeviceGetStreamPriorityRange(int *lowest, int *highest)
{
    FORWARD(legacy, context_get_priority_range, lowest, highest);
}

/* No two devices here reach each other. */
int cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
    const struct driver *driver;
    int code = can == NULL || device == peer ? CUDA_INVALID_VALUE : runtime_ready(&driver);
    if (code == CUDA_OK)
        *can = false;
    return record(code);
}
