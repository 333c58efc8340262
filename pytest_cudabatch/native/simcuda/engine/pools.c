/* Memory pools; see pools.h. */
#include "pools.h"

#include <stdlib.h>

#include "memory.h"

/* A device's pools by its number, the host's behind them. Guarded by the engine's lock. */
enum { HOST_SLOT = MOST_DEVICES, SLOTS };
static struct pool *defaults[SLOTS], *currents[SLOTS];

/* The driver rounds a pool's limit up to pages of its own (assumed: 2 MiB). */
static const uint64_t LIMIT_UNIT = (uint64_t)2 << 20;

static size_t slot_of(struct memory_location location)
{
    return location.type == LOCATION_DEVICE ? (size_t)location.id : HOST_SLOT;
}

bool pool_location_is_valid(struct memory_location location)
{
    switch (location.type) {
    case LOCATION_DEVICE:
        return location.id >= 0 && location.id < device_count();
    case LOCATION_HOST:
        return true;
    case LOCATION_HOST_NUMA:
        return location.id == 0; /* one node is simulated */
    }
    return false;
}

int pool_create(struct memory_location location, uint64_t limit, void **handle)
{
    struct pool *pool = calloc(1, sizeof *pool);
    if (pool == NULL || !handle_create(&pool->object, OBJECT_POOL)) {
        free(pool);
        return CUDA_OUT_OF_MEMORY;
    }
    pool->location = location;
    pool->limit = (limit + LIMIT_UNIT - 1) / LIMIT_UNIT * LIMIT_UNIT;
    for (size_t index = 0; index < POOL_REUSE_ATTRIBUTES; index++)
        pool->reuse[index] = 1;
    if (location.type == LOCATION_DEVICE) {
        pool->object.device = location.id;
        pool->access[location.id] = ACCESS_READ_WRITE;
    }
    *handle = pool->object.handle;
    return CUDA_OK;
}

void pool_destroy(struct pool *pool)
{
    struct pool **current = &currents[slot_of(pool->location)];
    if (*current == pool)
        *current = NULL;
    memory_forget_pool(pool);
    handle_retire(&pool->object);
    free(pool);
}

struct pool *pool_find(const void *handle)
{
    return (struct pool *)handle_find(handle, OBJECT_POOL);
}

struct pool *pool_default(struct memory_location location)
{
    struct pool **found = &defaults[slot_of(location)];
    void *handle;
    if (*found == NULL && pool_create(location, 0, &handle) == CUDA_OK)
        *found = pool_find(handle);
    return *found;
}

bool pool_is_default(const struct pool *pool)
{
    return defaults[slot_of(pool->location)] == pool;
}

struct pool *pool_current(struct memory_location location)
{
    struct pool *current = currents[slot_of(location)];
    return current == NULL ? pool_default(location) : current;
}

void pool_set_current(struct pool *pool)
{
    currents[slot_of(pool->location)] = pool;
}

uint64_t pool_used(const struct pool *pool)
{
    return memory_used_of_pool(pool);
}

int pool_allocate(struct pool *pool, size_t size, cuda_address *address)
{
    uint64_t used = pool_used(pool);
    if (pool->limit != 0 && (size > pool->limit || used > pool->limit - size))
        return CUDA_OUT_OF_MEMORY;
    bool on_device = pool->location.type == LOCATION_DEVICE;
    int code = on_device ? memory_allocate_device(pool->location.id, size, address)
                         : memory_allocate_pinned(size, 0, address);
    if (code != CUDA_OK)
        return code;
    memory_give_to_pool(*address, pool);
    if (used + size > pool->most_used)
        pool->most_used = used + size;
    return CUDA_OK;
}

int pool_free(struct stream *stream, cuda_address address)
{
    struct work *work = work_create(WORK_FREE);
    if (work == NULL)
        return CUDA_OUT_OF_MEMORY;
    work->freed = address;
    int code = memory_begin_free(address);
    if (code == CUDA_OK)
        return schedule_submit(stream, work);
    work_free(work);
    return code;
}
