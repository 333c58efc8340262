/*
 * Implements arguments.h. The arrays are the caller's, and may be anything: each page is tried before it is read.
 *
 * Facts: cuda.h of CUDA 12.8 to 13.5, and matrix/contract.toml for what a driver refuses.
 */
#include "arguments.h"

#include <stdbool.h>
#include <stddef.h>

#include "streams.h"
#include "system_calls.h"

enum {
    DESTINATIONS, /* indices of parameters */
    SOURCES,
    SIZES,
    COUNT,
    ATTRIBUTES,
    FIRST_COPIES,
    ATTRIBUTE_COUNT,
    FLAT_BATCH_8 = 8, /* numbers of parameters; a batch of 3D copies has fewer */
    PAGE = 4096,      /* no page is smaller */
    WORD = 8,
    ORDER_LAST = 3, /* STREAM 1, DURING_API_CALL 2, ANY 3 */
    FLAGS_ALL = 1,
    LOCATION_LAST = 4, /* HOST_NUMA_CURRENT; newer drivers know more, which are left to them: unknown is wrong */
    STREAM_PER_THREAD = 2
};

struct attributes {
    int32_t order;
    int32_t source_type, source_id;
    int32_t destination_type, destination_id;
    uint32_t flags;
};
_Static_assert(sizeof(struct attributes) == 24, "CUmemcpyAttributes in every version");

/* The kernel reads the signal set before it looks at an impossible `how`: EFAULT where it cannot. */
static bool word_is_readable(uint64_t address)
{
    return system_call(SYS_rt_sigprocmask, -1, (long)address, 0, WORD, 0, 0) != -EFAULT;
}

static bool is_readable(uint64_t address, uint64_t size)
{
    uint64_t end = address + size;
    if (address == 0 || end < address)
        return false;
    for (uint64_t at = address & ~(uint64_t)(WORD - 1); at < end; at = (at & ~(uint64_t)(PAGE - 1)) + PAGE)
        if (!word_is_readable(at))
            return false;
    return true;
}

static bool is_array(uint64_t address, uint64_t count, uint64_t size)
{
    return count <= UINT64_MAX / size && is_readable(address, count * size);
}

static uint64_t allocation_count(struct evidence_slot *slot)
{
    uint64_t count = atomic_load_explicit(&slot->allocations.count, memory_order_acquire);
    return count < EVIDENCE_ALLOCATIONS ? count : EVIDENCE_ALLOCATIONS;
}

static bool lies_inside(const struct evidence_slot *slot, uint64_t allocations, uint64_t start, uint64_t size)
{
    for (uint64_t i = 0; i < allocations; i++) {
        const struct evidence_allocation *allocation = &slot->allocations.rows[i];
        if (start >= allocation->start && size <= allocation->size &&
            start - allocation->start <= allocation->size - size)
            return true;
    }
    return false;
}

static bool ranges_are_right(struct evidence_slot *slot, const struct call_frame *frame, uint64_t count)
{
    uint64_t allocations = allocation_count(slot);
    for (unsigned parameter = DESTINATIONS; parameter <= SIZES; parameter++)
        if (!is_array(call_argument(frame, parameter), count, sizeof(uint64_t)))
            return false;
    const uint64_t *destinations = (const uint64_t *)call_argument(frame, DESTINATIONS);
    const uint64_t *sources = (const uint64_t *)call_argument(frame, SOURCES);
    const uint64_t *sizes = (const uint64_t *)call_argument(frame, SIZES);
    for (uint64_t i = 0; i < count; i++)
        if (sizes[i] == 0 || !lies_inside(slot, allocations, destinations[i], sizes[i]) ||
            !lies_inside(slot, allocations, sources[i], sizes[i]))
            return false;
    return true;
}

static bool attributes_are_right(const struct call_frame *frame, uint64_t count)
{
    uint64_t number = call_argument(frame, ATTRIBUTE_COUNT);
    if (number == 0 || number > count ||
        !is_array(call_argument(frame, ATTRIBUTES), number, sizeof(struct attributes)) ||
        !is_array(call_argument(frame, FIRST_COPIES), number, sizeof(uint64_t)))
        return false;
    const struct attributes *attributes = (const struct attributes *)call_argument(frame, ATTRIBUTES);
    const uint64_t *first_copies = (const uint64_t *)call_argument(frame, FIRST_COPIES);
    for (uint64_t i = 0; i < number; i++) {
        const struct attributes *each = &attributes[i];
        bool rises = i == 0 ? first_copies[0] == 0 : first_copies[i] > first_copies[i - 1];
        if (!rises || first_copies[i] >= count || each->order < 1 || each->order > ORDER_LAST ||
            each->flags > FLAGS_ALL || each->source_type < 0 || each->source_type > LOCATION_LAST ||
            each->destination_type < 0 || each->destination_type > LOCATION_LAST)
            return false;
    }
    return true;
}

uint8_t arguments_judge(struct evidence_slot *slot, const struct call_frame *frame,
                        const struct watched_function *function, const struct evidence_call *call)
{
    if (function->kind != BATCH_COPY || call->given < FLAT_BATCH_8 || allocation_count(slot) == 0)
        return 0;
    uint64_t count = call_argument(frame, COUNT);
    bool stream_is_live = call->stream == STREAM_PER_THREAD || stream_state(call->stream) == STREAM_LIVE;
    bool right = count != 0 && stream_is_live && ranges_are_right(slot, frame, count) &&
                 attributes_are_right(frame, count);
    return right ? CALL_ARGUMENTS_RIGHT : CALL_ARGUMENTS_WRONG;
}
