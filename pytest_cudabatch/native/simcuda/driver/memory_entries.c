/* Allocation and pointer queries. Frees wait for all queued work, as real ones do. */
#include "../engine/memory.h"

#include "../engine/devices.h"
#include "../engine/faults.h"
#include "../engine/pools.h"
#include "../engine/schedule.h"
#include "api.h"
#include "state.h"

int cuMemAlloc_v2(cuda_address *address, size_t size)
{
    int code = address == NULL ? CUDA_INVALID_VALUE : unsafe_ready();
    if (code != CUDA_OK)
        return code;
    struct fault fault;
    code = fault_on_call(FAULT_ALLOCATE, NULL, &fault);
    if (code != CUDA_OK)
        return code;
    engine_lock();
    code = memory_allocate_device(device_current(), size, address);
    engine_unlock();
    return code;
}

static int free_region(enum region_kind kind, cuda_address address)
{
    int code = unsafe_ready();
    if (code != CUDA_OK || address == 0)
        return code;
    engine_lock();
    schedule_wait_device(ANY_DEVICE);
    code = memory_free(kind, address);
    engine_unlock();
    return code;
}

int cuMemFree_v2(cuda_address address)
{
    return free_region(REGION_DEVICE, address);
}

int cuMemFreeHost(void *address)
{
    return free_region(REGION_PINNED, (cuda_address)address);
}

int cuMemHostAlloc(void **address, size_t size, unsigned flags)
{
    cuda_address allocated;
    int code = address == NULL || flags > HOST_ALLOC_FLAGS_ALL ? CUDA_INVALID_VALUE : unsafe_ready();
    if (code != CUDA_OK)
        return code;
    struct fault fault;
    code = fault_on_call(FAULT_ALLOCATE, NULL, &fault);
    if (code != CUDA_OK)
        return code;
    engine_lock();
    code = memory_allocate_pinned(size, flags, &allocated);
    engine_unlock();
    if (code == CUDA_OK)
        *address = (void *)allocated;
    return code;
}

int cuMemAllocHost_v2(void **address, size_t size)
{
    return cuMemHostAlloc(address, size, 0);
}

int cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes)
{
    int code = free_bytes == NULL || total_bytes == NULL ? CUDA_INVALID_VALUE : context_ready();
    if (code != CUDA_OK)
        return code;
    engine_lock();
    memory_totals(device_current(), free_bytes, total_bytes);
    engine_unlock();
    return CUDA_OK;
}

/* Copies the region that contains `address` out from under the lock; false where there is none. */
static bool look_up(cuda_address address, struct region *region)
{
    engine_lock();
    const struct region *found = memory_find(address);
    if (found != NULL)
        *region = *found;
    engine_unlock();
    return found != NULL;
}

int cuMemGetAddressRange_v2(cuda_address *base, size_t *size, cuda_address address)
{
    struct region region;
    int code = context_ready();
    if (code != CUDA_OK)
        return code;
    if (!look_up(address, &region) || region.kind != REGION_DEVICE)
        return CUDA_INVALID_VALUE;
    if (base != NULL)
        *base = region.address;
    if (size != NULL)
        *size = region.size;
    return CUDA_OK;
}

static int write_int(void *value, int answer)
{
    *(int *)value = answer;
    return CUDA_OK;
}

static int write_word(void *value, uintptr_t answer)
{
    *(uintptr_t *)value = answer;
    return CUDA_OK;
}

/* Of the region's pool; NULL without one, or after its end. */
static void *pool_handle(const struct region *region)
{
    return region->pool == NULL ? NULL : region->pool->object.handle;
}

/* Answers for an address inside `region`. */
static int write_attribute(const struct region *region, cuda_address address, int attribute, void *value)
{
    bool on_device = region->kind == REGION_DEVICE;
    switch ((enum pointer_attribute)attribute) {
    case POINTER_CONTEXT:
        return write_word(value, (uintptr_t)context_of_device(region->device));
    case POINTER_MEMORY_TYPE:
        return write_int(value, on_device ? MEMORY_TYPE_DEVICE : MEMORY_TYPE_HOST);
    case POINTER_DEVICE_POINTER:
        return write_word(value, address);
    case POINTER_HOST_POINTER:
        return on_device ? CUDA_INVALID_VALUE : write_word(value, address);
    case POINTER_IS_MANAGED:
        return write_int(value, 0);
    case POINTER_DEVICE_ORDINAL:
        return write_int(value, region->device);
    case POINTER_RANGE_START:
        return write_word(value, region->address);
    case POINTER_RANGE_SIZE:
        return write_word(value, region->size);
    case POINTER_IS_MAPPED:
        return write_int(value, 1);
    case POINTER_POOL:
        return write_word(value, (uintptr_t)pool_handle(region));
    }
    return CUDA_NOT_SUPPORTED;
}

int cuPointerGetAttribute(void *value, int attribute, cuda_address address)
{
    struct region region;
    int code = value == NULL ? CUDA_INVALID_VALUE : context_ready();
    if (code != CUDA_OK)
        return code;
    return look_up(address, &region) ? write_attribute(&region, address, attribute, value) : CUDA_INVALID_VALUE;
}

/* What the plural query gives where the singular one fails: "no such thing", not an error. */
static void write_absent(int attribute, void *value)
{
    if (attribute == POINTER_DEVICE_ORDINAL)
        write_int(value, DEVICE_INVALID);
    else if (attribute == POINTER_MEMORY_TYPE || attribute == POINTER_IS_MANAGED || attribute == POINTER_IS_MAPPED)
        write_int(value, 0);
    else
        write_word(value, 0);
}

int cuPointerGetAttributes(unsigned count, const int *attributes, void **values, cuda_address address)
{
    struct region region = {0};
    int code = attributes == NULL || values == NULL ? CUDA_INVALID_VALUE : context_ready();
    if (code != CUDA_OK)
        return code;
    bool known = look_up(address, &region);
    for (unsigned index = 0; index < count; index++)
        if (!known || write_attribute(&region, address, attributes[index], values[index]) != CUDA_OK)
            write_absent(attributes[index], values[index]);
    return CUDA_OK;
}
