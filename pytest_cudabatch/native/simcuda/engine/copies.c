/* Single copies and fills; see copies.h. */
#include "copies.h"

#include "capture.h"

static bool on_device(const struct region *region)
{
    return region != NULL && region->kind == REGION_DEVICE;
}

/* Pinned memory is as good as device memory where a device address is asked for: one address space. */
static bool fits(enum direction direction, const struct region *destination, const struct region *source)
{
    switch (direction) {
    case COPY_HOST_TO_DEVICE:
        return destination != NULL && !on_device(source);
    case COPY_DEVICE_TO_HOST:
        return source != NULL && !on_device(destination);
    case COPY_DEVICE_TO_DEVICE:
        return destination != NULL && source != NULL;
    case COPY_ANY:
        break;
    }
    return true;
}

/* Runs the work and returns when it is done. Needs the lock. */
static int run(struct stream *stream, struct work *work)
{
    int code = capture_permits_wait(stream);
    if (code == CUDA_OK)
        schedule_run(stream, work);
    else
        work_free(work);
    return code;
}

/* Pageable memory makes a call wait that need not, except under capture: there is nothing to wait for. */
static int hand_over(struct stream *stream, struct work *work, enum completion completion, bool pageable)
{
    engine_lock();
    bool later = completion == COMPLETION_LATER && (!pageable || stream->capture != NULL);
    int code = later ? capture_or_submit(stream, work) : run(stream, work);
    engine_unlock();
    return code;
}

static int check_one(cuda_address destination, cuda_address source, size_t size, enum direction direction,
                     bool *destination_pageable, bool *source_pageable)
{
    const struct region *to, *from;
    engine_lock();
    enum standing to_standing = memory_standing(destination, size, &to);
    enum standing from_standing = memory_standing(source, size, &from);
    bool sound = to_standing != STANDING_ASTRIDE && from_standing != STANDING_ASTRIDE && fits(direction, to, from);
    engine_unlock();
    *destination_pageable = to_standing == STANDING_UNKNOWN;
    *source_pageable = from_standing == STANDING_UNKNOWN;
    return sound ? CUDA_OK : CUDA_INVALID_VALUE;
}

int copy_one(struct stream *stream, cuda_address destination, cuda_address source, size_t size,
             enum direction direction, enum completion completion)
{
    bool destination_pageable, source_pageable;
    if (size == 0)
        return CUDA_OK;
    if (destination == 0 || source == 0)
        return CUDA_INVALID_VALUE;
    int code = check_one(destination, source, size, direction, &destination_pageable, &source_pageable);
    if (code != CUDA_OK)
        return code;
    if (source_pageable)
        copy_probe_source(source, size);
    if (destination_pageable)
        copy_probe_destination(destination, size);
    struct work *work = work_create_copies(1);
    if (work == NULL)
        return CUDA_OUT_OF_MEMORY;
    work->batch.copies[0] = (struct copy){memory_view(destination), memory_view(source), size};
    return hand_over(stream, work, completion, source_pageable || destination_pageable);
}

int copy_set(struct stream *stream, cuda_address destination, int value, size_t size, enum completion completion)
{
    const struct region *region;
    if (size == 0)
        return CUDA_OK;
    engine_lock();
    enum standing standing = memory_standing(destination, size, &region);
    engine_unlock();
    if (standing != STANDING_INSIDE)
        return CUDA_INVALID_VALUE;
    struct work *work = work_create(WORK_SET);
    if (work == NULL)
        return CUDA_OUT_OF_MEMORY;
    work->set.to = memory_view(destination);
    work->set.value = value;
    work->set.size = size;
    return hand_over(stream, work, completion, false);
}
