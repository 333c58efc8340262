/* Implements streams.h: a fixed open-addressed table whose entries are claimed and changed atomically. */
#include "streams.h"

#include <stdatomic.h>
#include <stddef.h>

enum { HANDLES = 4096, PROBES = 64 };

/* Inherited by a forked child. A destroyed handle keeps its place until another handle needs it. */
static struct {
    _Atomic uint64_t handle;
    _Atomic uint32_t state; /* enum stream_state */
} streams[HANDLES];

static size_t place(uint64_t handle, unsigned probe)
{
    return ((handle * UINT64_C(0x9e3779b97f4a7c15) >> 32) + probe) % HANDLES;
}

static bool take_place(size_t i, uint64_t handle)
{
    uint64_t there = atomic_load(&streams[i].handle);
    if (there == handle)
        return true;
    if (there != 0 && atomic_load(&streams[i].state) == STREAM_LIVE)
        return false;
    return atomic_compare_exchange_strong(&streams[i].handle, &there, handle) || there == handle;
}

/* Index of the handle, or HANDLES. A free place ends the search: places never become free again. */
static size_t find(uint64_t handle)
{
    for (unsigned probe = 0; probe < PROBES; probe++) {
        size_t i = place(handle, probe);
        uint64_t there = atomic_load(&streams[i].handle);
        if (there == handle)
            return i;
        if (there == 0)
            break;
    }
    return HANDLES;
}

void stream_created(uint64_t handle)
{
    if (handle == 0)
        return;
    size_t i = find(handle);
    for (unsigned probe = 0; i == HANDLES && probe < PROBES; probe++)
        if (take_place(place(handle, probe), handle))
            i = place(handle, probe);
    if (i != HANDLES)
        atomic_store(&streams[i].state, STREAM_LIVE);
}

bool stream_destroyed(uint64_t handle)
{
    size_t i = handle != 0 ? find(handle) : HANDLES;
    uint32_t live = STREAM_LIVE;
    return i != HANDLES && atomic_compare_exchange_strong(&streams[i].state, &live, STREAM_DESTROYED);
}

enum stream_state stream_state(uint64_t handle)
{
    size_t i = handle != 0 ? find(handle) : HANDLES;
    return i != HANDLES ? (enum stream_state)atomic_load(&streams[i].state) : STREAM_UNKNOWN;
}
