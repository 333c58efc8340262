/* The table of allocations and the two address ranges of device memory; see memory.h. */
#define _GNU_SOURCE
#include "memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "devices.h"

/* 8 GiB of address space for each device; pages are used only when written. Allocations lie as cudaMalloc's do, 512-aligned. */
static const size_t DEVICE_BYTES = (size_t)8 << 30;
static const size_t DEVICE_ALIGNMENT = 512;

/* From this size on a pinned allocation has room for a huge page (x86-64: 2 MiB). */
static const size_t HUGE_PAGE_BYTES = (size_t)2 << 20;

/* Guarded by the engine's lock: regions of all kinds, sorted by address. */
static struct region *regions;
static size_t region_count, region_capacity;

/*
 * Start of the program's side, one device behind the other; the engine's side follows the last. Written once, under the lock, at the first
 * allocation, and read by memory_view without it.
 */
static cuda_address device_base;

/*
 * Asks for huge pages where there is room for one: the faults of small ones cost more than the copies of a
 * cell. It is a wish: a kernel that has none, or that refuses, changes nothing else.
 */
static void prefer_huge_pages(void *address, size_t size)
{
    if (size >= HUGE_PAGE_BYTES)
        madvise(address, size, MADV_HUGEPAGE);
}

/* Bytes of all devices. */
static size_t span_of_all(void)
{
    return (size_t)device_count() * DEVICE_BYTES;
}

static int reserve_device_range(void)
{
    size_t span = span_of_all();
    if (device_base != 0)
        return CUDA_OK;
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    char *both = mmap(NULL, 2 * span, PROT_NONE, flags, -1, 0);
    if (both == MAP_FAILED)
        return CUDA_OUT_OF_MEMORY;
    if (mprotect(both + span, span, PROT_READ | PROT_WRITE) != 0) {
        munmap(both, 2 * span);
        return CUDA_OUT_OF_MEMORY;
    }
    prefer_huge_pages(both + span, span);
    device_base = (cuda_address)both;
    return CUDA_OK;
}

/* Index of the first region that starts above `address`. */
static size_t first_above(cuda_address address)
{
    size_t low = 0, high = region_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (regions[middle].address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int add_region(struct region region)
{
    if (region_count == region_capacity) {
        size_t capacity = region_capacity == 0 ? 64 : 2 * region_capacity;
        struct region *grown = realloc(regions, capacity * sizeof *regions);
        if (grown == NULL)
            return CUDA_OUT_OF_MEMORY;
        regions = grown;
        region_capacity = capacity;
    }
    size_t index = first_above(region.address);
    memmove(&regions[index + 1], &regions[index], (region_count - index) * sizeof *regions);
    regions[index] = region;
    region_count++;
    return CUDA_OK;
}

/* First fit: returns a free address of the device with `size` bytes behind it, or 0. */
static cuda_address find_gap(int device, size_t size)
{
    cuda_address start = device_base + (size_t)device * DEVICE_BYTES, end = start + DEVICE_BYTES;
    cuda_address candidate = start;
    for (size_t index = first_above(start - 1); index < region_count; index++) {
        const struct region *region = &regions[index];
        if (region->address >= end || region->address - candidate >= size)
            break;
        cuda_address behind = region->address + region->size;
        candidate = (behind + DEVICE_ALIGNMENT - 1) / DEVICE_ALIGNMENT * DEVICE_ALIGNMENT;
    }
    return candidate < end && end - candidate >= size ? candidate : 0;
}

int memory_allocate_device(int device, size_t size, cuda_address *address)
{
    if (size == 0)
        return CUDA_INVALID_VALUE;
    int code = reserve_device_range();
    if (code != CUDA_OK)
        return code;
    cuda_address found = find_gap(device, size);
    if (found == 0)
        return CUDA_OUT_OF_MEMORY;
    code = add_region((struct region){.address = found, .size = size, .kind = REGION_DEVICE, .device = device});
    if (code == CUDA_OK)
        *address = found;
    return code;
}

int memory_allocate_pinned(size_t size, unsigned flags, cuda_address *address)
{
    if (size == 0)
        return CUDA_INVALID_VALUE;
    void *mapped = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED)
        return CUDA_OUT_OF_MEMORY;
    prefer_huge_pages(mapped, size);
    struct region region = {.address = (cuda_address)mapped,
                            .size = size,
                            .kind = REGION_PINNED,
                            .device = device_current(),
                            .flags = flags};
    int code = add_region(region);
    if (code == CUDA_OK)
        *address = region.address;
    else
        munmap(mapped, size);
    return code;
}

/* Unmapped pages make msync fail, and nothing else does that: with MS_ASYNC it writes nothing. */
static bool is_mapped(cuda_address address, size_t size)
{
    cuda_address page = (cuda_address)sysconf(_SC_PAGESIZE);
    cuda_address first = address / page * page;
    return msync((void *)first, address - first + size, MS_ASYNC) == 0;
}

int memory_register(size_t size, unsigned flags, cuda_address address)
{
    const struct region *unused;
    if (size == 0 || address == 0 || size > UINTPTR_MAX - address)
        return CUDA_INVALID_VALUE;
    if (memory_standing(address, size, &unused) != STANDING_UNKNOWN)
        return CUDA_HOST_MEMORY_ALREADY_REGISTERED;
    if (memory_view(address) != (void *)address || !is_mapped(address, size))
        return CUDA_INVALID_VALUE;
    return add_region((struct region){.address = address,
                                      .size = size,
                                      .kind = REGION_REGISTERED,
                                      .device = device_current(),
                                      .flags = flags});
}

/* Gives whole pages of a freed device range back to the host; the ends may belong to neighbours. */
static void discard(const struct region *region)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t view = (uintptr_t)memory_view(region->address);
    uintptr_t first = (view + page - 1) / page * page, end = (view + region->size) / page * page;
    if (first < end)
        madvise((void *)first, end - first, MADV_DONTNEED);
}

static void release(const struct region *region)
{
    switch (region->kind) {
    case REGION_DEVICE:
        discard(region);
        break;
    case REGION_PINNED:
        munmap((void *)region->address, region->size);
        break;
    case REGION_REGISTERED: /* the memory is the program's */
        break;
    }
}

/* The region that starts at `address`, or NULL. */
static struct region *find_start(cuda_address address)
{
    size_t above = first_above(address);
    return above > 0 && regions[above - 1].address == address ? &regions[above - 1] : NULL;
}

static void remove_region(struct region *region)
{
    release(region);
    size_t index = (size_t)(region - regions);
    region_count--;
    memmove(&regions[index], &regions[index + 1], (region_count - index) * sizeof *regions);
}

int memory_free(enum region_kind kind, cuda_address address)
{
    struct region *found = find_start(address);
    if (found == NULL || found->kind != kind || found->leaving)
        return CUDA_INVALID_VALUE;
    remove_region(found);
    return CUDA_OK;
}

int memory_begin_free(cuda_address address)
{
    struct region *found = find_start(address);
    if (found == NULL || found->leaving || !(found->pooled || found->kind == REGION_DEVICE))
        return CUDA_INVALID_VALUE;
    found->leaving = true;
    return CUDA_OK;
}

void memory_end_free(cuda_address address)
{
    struct region *found = find_start(address);
    if (found != NULL && found->leaving)
        remove_region(found);
}

void memory_give_to_pool(cuda_address address, struct pool *pool)
{
    struct region *region = find_start(address);
    region->pooled = true;
    region->pool = pool;
}

void memory_forget_pool(const struct pool *pool)
{
    for (size_t index = 0; index < region_count; index++)
        if (regions[index].pool == pool)
            regions[index].pool = NULL;
}

uint64_t memory_used_of_pool(const struct pool *pool)
{
    uint64_t used = 0;
    for (size_t index = 0; index < region_count; index++)
        if (regions[index].pool == pool)
            used += regions[index].size;
    return used;
}

void memory_free_all(int device)
{
    size_t kept = 0;
    for (size_t index = 0; index < region_count; index++) {
        if (regions[index].device == device)
            release(&regions[index]);
        else
            regions[kept++] = regions[index];
    }
    region_count = kept;
}

const struct region *memory_find(cuda_address address)
{
    size_t above = first_above(address);
    if (above == 0)
        return NULL;
    const struct region *region = &regions[above - 1];
    return address - region->address < region->size ? region : NULL;
}

enum standing memory_standing(cuda_address address, size_t size, const struct region **region)
{
    size_t above = first_above(address);
    const struct region *below = above == 0 ? NULL : &regions[above - 1];
    *region = NULL;
    if (below != NULL && address - below->address < below->size) {
        *region = below;
        bool inside = size <= below->size - (address - below->address) && !below->leaving;
        return inside ? STANDING_INSIDE : STANDING_ASTRIDE;
    }
    if (above < region_count && regions[above].address - address < size)
        return STANDING_ASTRIDE;
    return STANDING_UNKNOWN;
}

void *memory_view(cuda_address address)
{
    if (device_base != 0 && address - device_base < span_of_all())
        return (void *)(address + span_of_all());
    return (void *)address;
}

void memory_totals(int device, size_t *free_bytes, size_t *total_bytes)
{
    size_t used = 0;
    for (size_t index = 0; index < region_count; index++)
        if (regions[index].kind == REGION_DEVICE && regions[index].device == device)
            used += regions[index].size;
    *free_bytes = DEVICE_BYTES - used;
    *total_bytes = DEVICE_BYTES;
}
