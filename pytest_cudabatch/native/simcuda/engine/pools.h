/*
 * Memory pools, and memory that streams allocate and free in their order. Needs the engine's lock.
 *
 * An allocation is made by the call, and a free ends its memory when the stream comes to it: whoever is ordered
 * between the two finds it. A pool keeps nothing back, so what is reserved is what is used. Managed memory,
 * sharing between processes, and frees or allocations as nodes of a graph are not simulated.
 */
#ifndef CUDABATCH_POOLS_H
#define CUDABATCH_POOLS_H

#include "devices.h"
#include "schedule.h"

enum { POOL_REUSE_ATTRIBUTES = 3 };

struct pool {
    struct object object; /* first, see handles.h */
    struct memory_location location;
    int reuse[POOL_REUSE_ATTRIBUTES]; /* stored, and without effect */
    uint64_t release_threshold;       /* the same */
    uint64_t limit;                   /* of all its allocations; 0: none */
    uint64_t most_used;
    int access[MOST_DEVICES]; /* CUmemAccess_flags; stored, and not enforced */
};

/* CUmemAccess_flags. */
enum { ACCESS_NONE = 0, ACCESS_READ = 1, ACCESS_READ_WRITE = 3 };

/* Gives a new pool a handle; CUDA_OUT_OF_MEMORY where there is none. */
int pool_create(struct memory_location location, uint64_t limit, void **handle);

/* The handle is none from now on; what was allocated stays until it is freed. */
void pool_destroy(struct pool *pool);

/* Returns the pool of a handle, NULL for anything else. */
struct pool *pool_find(const void *handle);

/* Does the location, a device or the host, have pools? */
bool pool_location_is_valid(struct memory_location location);

/* The location's pool that was there from the start, made when it is first asked for; NULL without memory. */
struct pool *pool_default(struct memory_location location);
bool pool_is_default(const struct pool *pool);

/* What allocations that name no pool take: the default one, unless another was set. */
struct pool *pool_current(struct memory_location location);
void pool_set_current(struct pool *pool);

/* Bytes that the pool's living allocations have. */
uint64_t pool_used(const struct pool *pool);

/* Returns a cuda_code; a size of 0 is CUDA_INVALID_VALUE (assumed). */
int pool_allocate(struct pool *pool, size_t size, cuda_address *address);

/*
 * Queues the end of an allocation: of a pool's, or of device memory. CUDA_INVALID_VALUE for anything else, and for
 * one that is freed already.
 */
int pool_free(struct stream *stream, cuda_address address);

#endif
