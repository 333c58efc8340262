/*
 * Device and pinned memory: what is allocated or registered, and how the engine reads and writes it.
 *
 * The memory of each device is an address range of its own. The program's side of it is never readable, so a host
 * dereference faults; the engine works on a second range at a fixed distance. Both are reserved at the
 * first allocation and stay for the process. Sizes are bytes.
 *
 * Everything here needs the engine's lock (schedule.h), except memory_view.
 */
#ifndef CUDABATCH_MEMORY_H
#define CUDABATCH_MEMORY_H

#include <stdbool.h>

#include "../abi.h"

enum region_kind { REGION_DEVICE, REGION_PINNED, REGION_REGISTERED };

/* One allocation, with the size that was asked for, or one registered range of the program's own memory. */
struct region {
    cuda_address address;
    size_t size;
    enum region_kind kind;
    int device; /* where it lies, or in whose context it was made */
    unsigned flags; /* of cuMemHostAlloc or cuMemHostRegister */
    bool pooled;    /* allocated from a pool, */
    struct pool *pool; /* from this one, which is not gone yet; or NULL */
    bool leaving;   /* a stream will free it: no call may name it any more, work that is queued still may */
};

/* How a range of addresses lies to the regions. Two regions side by side are two. */
enum standing {
    STANDING_UNKNOWN,  /* touches none of them: pageable host memory, or nothing at all */
    STANDING_INSIDE,   /* lies in one */
    STANDING_ASTRIDE,  /* lies partly in one, in several, or in one that a stream will free */
};

/* Each returns a cuda_code; a size of 0 is CUDA_INVALID_VALUE. */
int memory_allocate_device(int device, size_t size, cuda_address *address);
int memory_allocate_pinned(size_t size, unsigned flags, cuda_address *address);

/*
 * Makes a range of the program's memory known, by the byte (assumed: real ones pin pages). What touches a
 * known range is CUDA_HOST_MEMORY_ALREADY_REGISTERED; memory that is not mapped, CUDA_INVALID_VALUE (assumed).
 *
 * The range stays the program's. Pages that are pinned outlive their unmapping; here work that is under way
 * in them faults on the worker thread, so a program waits for it first, at its end too.
 */
int memory_register(size_t size, unsigned flags, cuda_address address);

/* Frees or forgets the region of this kind that starts at `address`, else CUDA_INVALID_VALUE. */
int memory_free(enum region_kind kind, cuda_address address);
void memory_free_all(int device);

/* For the allocation at `address`, which is there. */
void memory_give_to_pool(cuda_address address, struct pool *pool);
void memory_forget_pool(const struct pool *pool);
uint64_t memory_used_of_pool(const struct pool *pool);

/*
 * Frees in two steps what a pool or cuMemAlloc has allocated at `address`: CUDA_INVALID_VALUE for anything else, or
 * twice; and when a stream comes to it, if the region is still there.
 */
int memory_begin_free(cuda_address address);
void memory_end_free(cuda_address address);

/* Returns the region that contains `address`, or NULL. */
const struct region *memory_find(cuda_address address);

/* Says how `size` bytes (at least 1) from `address` lie; `region` is that of the first byte, or NULL. */
enum standing memory_standing(cuda_address address, size_t size, const struct region **region);

/* Where the engine reads and writes what the program calls `address`. */
void *memory_view(cuda_address address);

void memory_totals(int device, size_t *free_bytes, size_t *total_bytes);

#endif
