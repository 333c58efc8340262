/* Single copies and fills; see copies.h. */
#include "copies.h"

#include <string.h>

#include "adversary.h"
#include "capture.h"
#include "faults.h"

/* What memory one end of a copy is. */
enum side { SIDE_PAGEABLE, SIDE_HOST, SIDE_DEVICE };

struct ends {
    enum side to, from;
};

static enum side side_of(const struct region *region)
{
    if (region == NULL)
        return SIDE_PAGEABLE;
    return region->kind == REGION_DEVICE ? SIDE_DEVICE : SIDE_HOST;
}

/* Pinned memory is as good as device memory where a device address is asked for: one address space. */
static bool fits(enum direction direction, struct ends ends)
{
    switch (direction) {
    case COPY_HOST_TO_DEVICE:
        return ends.to != SIDE_PAGEABLE && ends.from != SIDE_DEVICE;
    case COPY_DEVICE_TO_HOST:
        return ends.from != SIDE_PAGEABLE && ends.to != SIDE_DEVICE;
    case COPY_DEVICE_TO_DEVICE:
        return ends.to != SIDE_PAGEABLE && ends.from != SIDE_PAGEABLE;
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

static int hand_over(struct stream *stream, struct work *work, enum completion completion)
{
    engine_lock();
    int code = completion == COMPLETION_LATER ? capture_or_submit(stream, work) : run(stream, work);
    engine_unlock();
    return code;
}

static bool is_captured(const struct stream *stream)
{
    engine_lock();
    bool captured = stream->capture != NULL;
    engine_unlock();
    return captured;
}

/* May the adversarial schedule let a call return before its work is done, although it need not? */
static bool may_return_early(const struct stream *stream)
{
    return adversary_is_on() && !is_captured(stream);
}

/*
 * Pageable memory makes a call wait that need not, except under capture: there is nothing to wait for. The
 * adversarial schedule does not wait for copies within the device, which cuda_runtime_api.h (API
 * synchronization behavior) leaves open.
 */
static enum completion completion_of(const struct stream *stream, struct ends ends, enum completion asked)
{
    bool pageable = ends.to == SIDE_PAGEABLE || ends.from == SIDE_PAGEABLE;
    if (asked == COMPLETION_LATER && pageable)
        return is_captured(stream) ? COMPLETION_LATER : COMPLETION_BEFORE_RETURN;
    bool within_device = ends.to == SIDE_DEVICE && ends.from == SIDE_DEVICE;
    return within_device && may_return_early(stream) ? COMPLETION_LATER : asked;
}

/* The same words let a copy from pageable to device memory return when it has read its source. */
static bool is_staged(const struct stream *stream, struct ends ends)
{
    return ends.from == SIDE_PAGEABLE && ends.to == SIDE_DEVICE && may_return_early(stream);
}

static int wait_for(struct stream *stream)
{
    engine_lock();
    int code = capture_permits_wait(stream);
    if (code == CUDA_OK)
        schedule_wait_stream(stream);
    engine_unlock();
    return code;
}

/* Reads the sources of the work's copies; a call that is to wait has waited for the stream before. */
static int stage(struct stream *stream, struct work *work, enum completion asked)
{
    int code = asked == COMPLETION_BEFORE_RETURN ? wait_for(stream) : CUDA_OK;
    for (size_t index = 0; index < work->batch.count && code == CUDA_OK; index++) {
        struct copy *copy = &work->batch.copies[index];
        void *staging = work_stage(work, copy->size);
        if (staging == NULL)
            code = CUDA_OUT_OF_MEMORY;
        else
            copy->from = memcpy(staging, copy->from, copy->size);
    }
    if (code == CUDA_OK)
        return hand_over(stream, work, COMPLETION_LATER);
    work_free(work);
    return code;
}

static int check_sides(cuda_address destination, size_t to_span, cuda_address source, size_t from_span,
                       enum direction direction, struct ends *ends)
{
    const struct region *to, *from;
    engine_lock();
    enum standing to_standing = memory_standing(destination, to_span, &to);
    enum standing from_standing = memory_standing(source, from_span, &from);
    *ends = (struct ends){side_of(to), side_of(from)};
    engine_unlock();
    bool astride = to_standing == STANDING_ASTRIDE || from_standing == STANDING_ASTRIDE;
    return astride || !fits(direction, *ends) ? CUDA_INVALID_VALUE : CUDA_OK;
}

/* Touches pageable rows in the caller's thread, so that a bad address faults in the call. */
static void probe(const struct rows *rows, struct ends ends)
{
    for (size_t row = 0; row < rows->count; row++) {
        if (ends.from == SIDE_PAGEABLE)
            copy_probe_source(rows->source + row * rows->source_pitch, rows->size);
        if (ends.to == SIDE_PAGEABLE)
            copy_probe_destination(rows->destination + row * rows->destination_pitch, rows->size);
    }
}

/* Both sides of all rows, gaps between them included, must lie in one allocation or in none. */
static int check(const struct rows *rows, enum direction direction, struct ends *ends)
{
    size_t to_span, from_span;
    if (rows->destination == 0 || rows->source == 0 ||
        __builtin_mul_overflow(rows->count - 1, rows->destination_pitch, &to_span) ||
        __builtin_mul_overflow(rows->count - 1, rows->source_pitch, &from_span))
        return CUDA_INVALID_VALUE;
    return check_sides(rows->destination, to_span + rows->size, rows->source, from_span + rows->size, direction, ends);
}

static int enqueue(struct stream *stream, const struct rows *rows, struct ends ends, enum completion completion)
{
    struct work *work = work_create_copies(rows->count);
    if (work == NULL)
        return CUDA_OUT_OF_MEMORY;
    for (size_t row = 0; row < rows->count; row++)
        work->batch.copies[row] = (struct copy){memory_view(rows->destination + row * rows->destination_pitch),
                                                memory_view(rows->source + row * rows->source_pitch), rows->size};
    if (is_staged(stream, ends))
        return stage(stream, work, completion);
    return hand_over(stream, work, completion_of(stream, ends, completion));
}

int copy_rows(struct stream *stream, const struct rows *rows, enum direction direction, enum completion completion)
{
    struct ends ends;
    struct fault fault = {0, false};
    if (rows->size == 0 || rows->count == 0)
        return CUDA_OK;
    int code = check(rows, direction, &ends);
    if (code != CUDA_OK)
        return code;
    probe(rows, ends);
    if (completion == COMPLETION_LATER)
        code = fault_on_call(FAULT_PER_COPY, NULL, &fault);
    if (code == CUDA_OK)
        code = fault_before_work(stream, &fault);
    if (code == CUDA_OK)
        code = enqueue(stream, rows, ends, completion);
    return code == CUDA_OK ? fault_after_work(stream, &fault, memory_view(rows->destination)) : code;
}

int copy_one(struct stream *stream, cuda_address destination, cuda_address source, size_t size,
             enum direction direction, enum completion completion)
{
    const struct rows rows = {.destination = destination, .source = source, .size = size, .count = 1};
    return copy_rows(stream, &rows, direction, completion);
}

/* A fill of device memory need not be waited for either, whatever the call's name says. */
int copy_fill(struct stream *stream, const struct fill *fill, enum completion completion)
{
    const struct region *region;
    size_t size;
    if (fill->count == 0)
        return CUDA_OK;
    if (fill->destination % fill->width != 0 || __builtin_mul_overflow(fill->count, (size_t)fill->width, &size))
        return CUDA_INVALID_VALUE;
    engine_lock();
    enum standing standing = memory_standing(fill->destination, size, &region);
    bool on_device = side_of(region) == SIDE_DEVICE;
    engine_unlock();
    if (standing != STANDING_INSIDE)
        return CUDA_INVALID_VALUE;
    struct work *work = work_create(WORK_SET);
    if (work == NULL)
        return CUDA_OUT_OF_MEMORY;
    work->set.to = memory_view(fill->destination);
    work->set.value = fill->value;
    work->set.width = fill->width;
    work->set.count = fill->count;
    return hand_over(stream, work, on_device && may_return_early(stream) ? COMPLETION_LATER : completion);
}
