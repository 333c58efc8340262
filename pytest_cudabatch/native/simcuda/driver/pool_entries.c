/* The pool entries, and allocation and free in a stream's order; see ../engine/pools.h. */
#include "../engine/pools.h"

#include <stdatomic.h>

#include "../engine/faults.h"
#include "../engine/streams.h"
#include "../exports/unsupported.h"
#include "api.h"
#include "state.h"

/* CUmemAllocationType. */
enum { ALLOCATION_PINNED = 1, ALLOCATION_MANAGED = 2 };

/* CUmemPool_attribute. */
enum pool_attribute {
    ATTRIBUTE_FIRST_REUSE = 1,
    ATTRIBUTE_LAST_REUSE = 3,
    ATTRIBUTE_RELEASE_THRESHOLD = 4,
    ATTRIBUTE_RESERVED = 5,
    ATTRIBUTE_MOST_RESERVED = 6,
    ATTRIBUTE_USED = 7,
    ATTRIBUTE_MOST_USED = 8,
    ATTRIBUTE_ALLOCATION_TYPE = 9, /* from here on since 13.0 */
    ATTRIBUTE_HANDLE_TYPES = 10,
    ATTRIBUTE_LOCATION_ID = 11,
    ATTRIBUTE_LOCATION_TYPE = 12,
    ATTRIBUTE_LIMIT = 13,
    ATTRIBUTE_DECOMPRESSION = 14,
};

static int refuse_managed(void)
{
    static atomic_bool told;
    return unsupported("a pool of managed memory", &told);
}

static int refuse_capture(void)
{
    static atomic_bool told;
    return unsupported("to allocate or free in a captured stream", &told);
}

static int check_kind(struct memory_location location, int type)
{
    if (type == ALLOCATION_MANAGED)
        return refuse_managed();
    return type == ALLOCATION_PINNED && pool_location_is_valid(location) ? CUDA_OK : CUDA_INVALID_VALUE;
}

int cuMemPoolCreate(void **handle, const struct pool_properties *properties)
{
    int code = handle == NULL || properties == NULL ? CUDA_INVALID_VALUE : driver_ready();
    if (code == CUDA_OK)
        code = check_kind(properties->location, properties->allocation_type);
    if (code == CUDA_OK && properties->handle_types != 0)
        code = CUDA_NOT_SUPPORTED; /* as CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES says */
    if (code != CUDA_OK)
        return code;
    engine_lock();
    code = pool_create(properties->location, properties->limit, handle);
    engine_unlock();
    return code;
}

/* The default pools stay. */
int cuMemPoolDestroy(void *handle)
{
    int code = driver_ready();
    if (code != CUDA_OK)
        return code;
    engine_lock();
    struct pool *pool = pool_find(handle);
    if (pool == NULL || pool_is_default(pool))
        code = CUDA_INVALID_VALUE;
    else
        pool_destroy(pool);
    engine_unlock();
    return code;
}

/* Nothing is kept back that could be given up. */
int cuMemPoolTrimTo(void *handle, size_t kept)
{
    (void)kept;
    int code = driver_ready();
    if (code != CUDA_OK)
        return code;
    engine_lock();
    code = pool_find(handle) == NULL ? CUDA_INVALID_VALUE : CUDA_OK;
    engine_unlock();
    return code;
}

static int read_word(const struct pool *pool, int attribute, uint64_t *value)
{
    switch (attribute) {
    case ATTRIBUTE_RELEASE_THRESHOLD:
        *value = pool->release_threshold;
        return CUDA_OK;
    case ATTRIBUTE_RESERVED:
    case ATTRIBUTE_USED:
        *value = pool_used(pool);
        return CUDA_OK;
    case ATTRIBUTE_MOST_RESERVED:
    case ATTRIBUTE_MOST_USED:
        *value = pool->most_used;
        return CUDA_OK;
    case ATTRIBUTE_LIMIT:
        *value = pool->limit;
        return CUDA_OK;
    }
    return CUDA_INVALID_VALUE;
}

static int read_attribute(const struct pool *pool, int attribute, void *value)
{
    if (attribute > ATTRIBUTE_MOST_USED && driver_version() < FIRST_VERSION_WITHOUT_FAIL_INDEX)
        return CUDA_INVALID_VALUE;
    if (attribute >= ATTRIBUTE_FIRST_REUSE && attribute <= ATTRIBUTE_LAST_REUSE)
        *(int *)value = pool->reuse[attribute - ATTRIBUTE_FIRST_REUSE];
    else if (attribute == ATTRIBUTE_ALLOCATION_TYPE)
        *(int *)value = ALLOCATION_PINNED;
    else if (attribute == ATTRIBUTE_HANDLE_TYPES || attribute == ATTRIBUTE_DECOMPRESSION)
        *(int *)value = 0;
    else if (attribute == ATTRIBUTE_LOCATION_ID)
        *(int *)value = pool->location.id;
    else if (attribute == ATTRIBUTE_LOCATION_TYPE)
        *(int *)value = pool->location.type;
    else
        return read_word(pool, attribute, value);
    return CUDA_OK;
}

/* A mark of the most that was used can only be set to 0: it begins anew from what is used now. */
static int write_attribute(struct pool *pool, int attribute, const void *value)
{
    if (attribute >= ATTRIBUTE_FIRST_REUSE && attribute <= ATTRIBUTE_LAST_REUSE)
        pool->reuse[attribute - ATTRIBUTE_FIRST_REUSE] = *(const int *)value;
    else if (attribute == ATTRIBUTE_RELEASE_THRESHOLD)
        pool->release_threshold = *(const uint64_t *)value;
    else if ((attribute == ATTRIBUTE_MOST_RESERVED || attribute == ATTRIBUTE_MOST_USED) && *(const uint64_t *)value == 0)
        pool->most_used = pool_used(pool);
    else
        return CUDA_INVALID_VALUE;
    return CUDA_OK;
}

int cuMemPoolGetAttribute(void *handle, int attribute, void *value)
{
    int code = value == NULL ? CUDA_INVALID_VALUE : driver_ready();
    if (code != CUDA_OK)
        return code;
    engine_lock();
    const struct pool *pool = pool_find(handle);
    code = pool == NULL ? CUDA_INVALID_VALUE : read_attribute(pool, attribute, value);
    engine_unlock();
    return code;
}

int cuMemPoolSetAttribute(void *handle, int attribute, void *value)
{
    int code = value == NULL ? CUDA_INVALID_VALUE : driver_ready();
    if (code != CUDA_OK)
        return code;
    engine_lock();
    struct pool *pool = pool_find(handle);
    code = pool == NULL ? CUDA_INVALID_VALUE : write_attribute(pool, attribute, value);
    engine_unlock();
    return code;
}

/* A device cannot lose its own pool. */
static bool may_access(const struct pool *pool, const struct pool_access *access)
{
    bool known = access->flags == ACCESS_NONE || access->flags == ACCESS_READ_WRITE;
    bool own = pool->location.type == LOCATION_DEVICE && pool->location.id == access->location.id;
    return known && access->location.type == LOCATION_DEVICE && pool_location_is_valid(access->location) &&
           !(own && access->flags == ACCESS_NONE);
}

int cuMemPoolSetAccess(void *handle, const struct pool_access *accesses, size_t count)
{
    int code = accesses == NULL && count != 0 ? CUDA_INVALID_VALUE : driver_ready();
    if (code != CUDA_OK)
        return code;
    engine_lock();
    struct pool *pool = pool_find(handle);
    for (size_t index = 0; index < count && code == CUDA_OK; index++)
        if (pool == NULL || !may_access(pool, &accesses[index]))
            code = CUDA_INVALID_VALUE;
    for (size_t index = 0; index < count && code == CUDA_OK; index++)
        pool->access[accesses[index].location.id] = accesses[index].flags;
    engine_unlock();
    return pool == NULL ? CUDA_INVALID_VALUE : code;
}

int cuMemPoolGetAccess(int *flags, void *handle, struct memory_location *location)
{
    int code = flags == NULL || location == NULL ? CUDA_INVALID_VALUE : driver_ready();
    if (code != CUDA_OK)
        return code;
    engine_lock();
    const struct pool *pool = pool_find(handle);
    if (pool == NULL || !pool_location_is_valid(*location))
        code = CUDA_INVALID_VALUE;
    else if (location->type == LOCATION_DEVICE)
        *flags = pool->access[location->id];
    else
        *flags = pool->location.type == LOCATION_DEVICE ? ACCESS_NONE : ACCESS_READ_WRITE;
    engine_unlock();
    return code;
}

static int give(struct pool *(*choose)(struct memory_location), struct memory_location location, void **handle)
{
    engine_lock();
    const struct pool *pool = choose(location);
    engine_unlock();
    if (pool == NULL)
        return CUDA_OUT_OF_MEMORY;
    *handle = pool->object.handle;
    return CUDA_OK;
}

static int give_of_device(struct pool *(*choose)(struct memory_location), int device, void **handle)
{
    int code = handle == NULL ? CUDA_INVALID_VALUE : device_ready(device);
    return code == CUDA_OK ? give(choose, (struct memory_location){LOCATION_DEVICE, device}, handle) : code;
}

int cuDeviceGetDefaultMemPool(void **pool, int device)
{
    return give_of_device(pool_default, device, pool);
}

int cuDeviceGetMemPool(void **pool, int device)
{
    return give_of_device(pool_current, device, pool);
}

/* The pool must be the location's own. */
static int set_current(struct memory_location location, const void *handle)
{
    engine_lock();
    struct pool *pool = pool_find(handle);
    bool own = pool != NULL && pool->location.type == location.type && pool->location.id == location.id;
    if (own)
        pool_set_current(pool);
    engine_unlock();
    return own ? CUDA_OK : CUDA_INVALID_VALUE;
}

int cuDeviceSetMemPool(int device, void *pool)
{
    int code = device_ready(device);
    return code == CUDA_OK ? set_current((struct memory_location){LOCATION_DEVICE, device}, pool) : code;
}

#if SIM_DRIVER_OWN >= FIRST_VERSION_WITHOUT_FAIL_INDEX
static int give_of_location(struct pool *(*choose)(struct memory_location), const struct memory_location *location,
                            int type, void **handle)
{
    int code = handle == NULL || location == NULL ? CUDA_INVALID_VALUE : driver_ready();
    if (code == CUDA_OK)
        code = check_kind(*location, type);
    return code == CUDA_OK ? give(choose, *location, handle) : code;
}

int cuMemGetDefaultMemPool(void **pool, struct memory_location *location, int type)
{
    return give_of_location(pool_default, location, type, pool);
}

int cuMemGetMemPool(void **pool, struct memory_location *location, int type)
{
    return give_of_location(pool_current, location, type, pool);
}

int cuMemSetMemPool(struct memory_location *location, int type, void *pool)
{
    int code = location == NULL ? CUDA_INVALID_VALUE : driver_ready();
    if (code == CUDA_OK)
        code = check_kind(*location, type);
    return code == CUDA_OK ? set_current(*location, pool) : code;
}
#endif

/* Resolves a stream that is not captured. */
static int enter(void *handle, enum null_stream null_stream, struct stream **stream)
{
    int code = stream_context_ready(handle);
    if (code != CUDA_OK)
        return code;
    *stream = stream_of(handle, null_stream);
    if (*stream == NULL)
        return CUDA_OUT_OF_MEMORY;
    engine_lock();
    bool captured = (*stream)->capture != NULL;
    engine_unlock();
    return captured ? refuse_capture() : CUDA_OK;
}

/* Without a pool of its own, `named` false, an allocation takes the current one of the stream's device. */
static int allocate(cuda_address *address, size_t size, bool named, const void *pool_handle, void *handle,
                    enum null_stream null_stream)
{
    struct stream *stream;
    struct fault fault;
    int code = address == NULL ? CUDA_INVALID_VALUE : enter(handle, null_stream, &stream);
    if (code == CUDA_OK)
        code = fault_on_call(FAULT_ALLOCATE, NULL, &fault);
    if (code != CUDA_OK)
        return code;
    engine_lock();
    struct pool *pool = named ? pool_find(pool_handle)
                              : pool_current((struct memory_location){LOCATION_DEVICE, stream->object.device});
    if (pool == NULL)
        code = named ? CUDA_INVALID_VALUE : CUDA_OUT_OF_MEMORY;
    else
        code = pool_allocate(pool, size, address);
    engine_unlock();
    return code;
}

int cuMemAllocAsync(cuda_address *address, size_t size, void *stream)
{
    return allocate(address, size, false, NULL, stream, NULL_IS_LEGACY);
}

int cuMemAllocAsync_ptsz(cuda_address *address, size_t size, void *stream)
{
    return allocate(address, size, false, NULL, stream, NULL_IS_PER_THREAD);
}

int cuMemAllocFromPoolAsync(cuda_address *address, size_t size, void *pool, void *stream)
{
    return allocate(address, size, true, pool, stream, NULL_IS_LEGACY);
}

int cuMemAllocFromPoolAsync_ptsz(cuda_address *address, size_t size, void *pool, void *stream)
{
    return allocate(address, size, true, pool, stream, NULL_IS_PER_THREAD);
}

static int free_later(cuda_address address, void *handle, enum null_stream null_stream)
{
    struct stream *stream;
    int code = enter(handle, null_stream, &stream);
    if (code != CUDA_OK || address == 0)
        return code;
    engine_lock();
    code = pool_free(stream, address);
    engine_unlock();
    return code;
}

int cuMemFreeAsync(cuda_address address, void *stream)
{
    return free_later(address, stream, NULL_IS_LEGACY);
}

int cuMemFreeAsync_ptsz(cuda_address address, void *stream)
{
    return free_later(address, stream, NULL_IS_PER_THREAD);
}
