/* The pages that handles are, and the registry of live ones; see handles.h. */
#define _GNU_SOURCE
#include "handles.h"

#include "devices.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { HANDLE_LIMIT = 16384 };

/* Guarded by the engine's lock. The pages are reserved at the first handle and stay for the process. */
static char *pages;
static size_t page_size;
static struct object *live[HANDLE_LIMIT];
static size_t next_slot;

static bool reserve_pages(void)
{
    if (pages != NULL)
        return true;
    page_size = (size_t)sysconf(_SC_PAGESIZE);
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void *reserved = mmap(NULL, HANDLE_LIMIT * page_size, PROT_NONE, flags, -1, 0);
    if (reserved == MAP_FAILED)
        return false;
    pages = reserved;
    return true;
}

/* Round robin, so that a retired handle stays invalid for as long as possible. */
static bool free_slot(size_t *slot)
{
    for (size_t tried = 0; tried < HANDLE_LIMIT; tried++) {
        *slot = next_slot;
        next_slot = (next_slot + 1) % HANDLE_LIMIT;
        if (live[*slot] == NULL)
            return true;
    }
    return false;
}

bool handle_create(struct object *object, enum object_kind kind)
{
    size_t slot;
    if (!reserve_pages() || !free_slot(&slot))
        return false;
    char *page = pages + slot * page_size;
    if (mprotect(page, page_size, PROT_READ | PROT_WRITE) != 0)
        return false;
    *(struct object **)page = object;
    if (mprotect(page, page_size, PROT_READ) != 0)
        return false;
    object->self = object;
    object->kind = kind;
    object->device = device_current();
    object->handle = page;
    live[slot] = object;
    return true;
}

/* A real driver follows whatever it finds behind a false handle until it faults; go to the fault at once. */
static _Noreturn void fault(const void *handle)
{
    uintptr_t never_mapped = (uintptr_t)0xdead << 48 | ((uintptr_t)handle & 0xffffffffffff);
    *(volatile char *)never_mapped;
    abort();
}

struct object *handle_object(const void *handle, enum object_kind kind)
{
    struct object *object = *(struct object *const *)handle;
    if (object->self != object || object->kind != kind)
        fault(handle);
    return object;
}

static bool slot_of(const void *handle, size_t *slot)
{
    uintptr_t offset = (uintptr_t)handle - (uintptr_t)pages;
    if (pages == NULL || offset % page_size != 0 || offset / page_size >= HANDLE_LIMIT)
        return false;
    *slot = offset / page_size;
    return true;
}

struct object *handle_find(const void *handle, enum object_kind kind)
{
    size_t slot;
    if (!slot_of(handle, &slot) || live[slot] == NULL || live[slot]->kind != kind)
        return NULL;
    return live[slot];
}

void handle_retire(struct object *object)
{
    size_t slot;
    if (!slot_of(object->handle, &slot))
        return;
    live[slot] = NULL;
    mprotect(object->handle, page_size, PROT_NONE);
    object->handle = NULL;
}

struct object *handle_any(enum object_kind kind, int device)
{
    for (size_t slot = 0; slot < HANDLE_LIMIT; slot++)
        if (live[slot] != NULL && live[slot]->kind == kind && live[slot]->device == device)
            return live[slot];
    return NULL;
}
