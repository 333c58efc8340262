/*
 * Host memory of the program that is made known to CUDA, and what CUDA knows of host memory.
 * Forgetting a range waits for all queued work, as frees do.
 */
#include "../engine/memory.h"

#include "../engine/devices.h"
#include "../engine/schedule.h"
#include "api.h"
#include "state.h"

/* The device cannot take read-only memory, and there is no I/O memory (header: the codes for that). */
static int check_flags(unsigned flags)
{
    if (flags > HOST_REGISTER_FLAGS_ALL)
        return CUDA_INVALID_VALUE;
    if (flags & HOST_REGISTER_READ_ONLY)
        return CUDA_NOT_SUPPORTED;
    return flags & HOST_REGISTER_IO_MEMORY ? CUDA_NOT_PERMITTED : CUDA_OK;
}

int cuMemHostRegister_v2(void *address, size_t size, unsigned flags)
{
    int code = unsafe_ready();
    if (code == CUDA_OK)
        code = check_flags(flags);
    if (code != CUDA_OK)
        return code;
    engine_lock();
    code = memory_register(size, flags, (cuda_address)address);
    engine_unlock();
    return code;
}

int cuMemHostUnregister(void *address)
{
    int code = address == NULL ? CUDA_INVALID_VALUE : unsafe_ready();
    if (code != CUDA_OK)
        return code;
    engine_lock();
    schedule_wait_device(ANY_DEVICE);
    code = memory_free(REGION_REGISTERED, (cuda_address)address);
    engine_unlock();
    return code == CUDA_OK ? CUDA_OK : CUDA_HOST_MEMORY_NOT_REGISTERED; /* assumed for an address inside one */
}

/* Finds the host region that contains `address`, and its flags. */
static int find_host_region(const void *address, unsigned *flags)
{
    int code = context_ready();
    if (code != CUDA_OK)
        return code;
    engine_lock();
    const struct region *region = memory_find((cuda_address)address);
    if (region == NULL || region->kind == REGION_DEVICE)
        code = CUDA_INVALID_VALUE;
    else
        *flags = region->flags;
    engine_unlock();
    return code;
}

/* One address space: all host memory that is known is mapped, whatever its flags, at its own address. */
int cuMemHostGetDevicePointer_v2(cuda_address *device_pointer, void *address, unsigned flags)
{
    unsigned region_flags;
    int code = device_pointer == NULL || flags != 0 ? CUDA_INVALID_VALUE : find_host_region(address, &region_flags);
    if (code == CUDA_OK)
        *device_pointer = (cuda_address)address;
    return code;
}

/* Assumed: the flags as they were given. */
int cuMemHostGetFlags(unsigned *flags, void *address)
{
    return flags == NULL ? CUDA_INVALID_VALUE : find_host_region(address, flags);
}
