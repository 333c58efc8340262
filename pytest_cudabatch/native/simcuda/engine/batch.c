/*
 * The batch call's contract: its checks, in the order that their answers show, and the work it becomes.
 *
 * Source of the answers: matrix/contract.toml, measured on driver 580.159.04 (CUDA 13.0) with runtimes 12.8
 * to 13.5, where a comment does not say `assumed` or `header`.
 */
#include "copies.h"

#include "faults.h"

#include <stdlib.h>
#include <string.h>

#include "adversary.h"
#include "capture.h"
#include "devices.h"

static bool hint_is_valid(const struct memory_location *hint)
{
    if (hint->type < 0 || hint->type > LOCATION_HOST_NUMA_CURRENT) /* assumed: newer types are refused too */
        return false;
    return hint->type != LOCATION_DEVICE || (hint->id >= 0 && hint->id < device_count());
}

bool copy_attributes_are_valid(const struct copy_attributes *attributes)
{
    return attributes->source_access_order >= ORDER_STREAM && attributes->source_access_order <= ORDER_ANY &&
           attributes->flags <= COPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE && hint_is_valid(&attributes->source_hint) &&
           hint_is_valid(&attributes->destination_hint);
}

/* attrs and attrsIdxs have numAttrs entries; reads nothing behind them. */
static bool attribute_list_is_valid(const struct batch *batch)
{
    if (batch->attributes == NULL || batch->first_copies == NULL) /* assumed for NULL with numAttrs > 0 */
        return false;
    if (batch->attribute_count == 0 || batch->attribute_count > batch->count || batch->first_copies[0] != 0)
        return false;
    for (size_t index = 0; index < batch->attribute_count; index++) {
        size_t first = batch->first_copies[index];
        if (first >= batch->count || (index > 0 && first <= batch->first_copies[index - 1]))
            return false;
        if (!copy_attributes_are_valid(&batch->attributes[index]))
            return false;
    }
    return true;
}

/* Assumed for NULL arrays: a real driver was only seen with count 0. */
static bool arguments_are_valid(const struct batch *batch)
{
    return batch->count != 0 && batch->destinations != NULL && batch->sources != NULL && batch->sizes != NULL &&
           attribute_list_is_valid(batch);
}

/*
 * Is the copy in order? Host memory that CUDA does not know is touched here, under the lock: where it is
 * not mapped the process dies in the call, as it does in a real driver.
 */
static bool copy_is_valid(cuda_address destination, cuda_address source, size_t size)
{
    const struct region *region;
    if (size == 0 || destination == 0 || source == 0) /* a NULL source is assumed to answer like a destination */
        return false;
    enum standing to = memory_standing(destination, size, &region);
    enum standing from = memory_standing(source, size, &region);
    if (to == STANDING_ASTRIDE || from == STANDING_ASTRIDE)
        return false;
    if (from == STANDING_UNKNOWN)
        copy_probe_source(source, size);
    if (to == STANDING_UNKNOWN)
        copy_probe_destination(destination, size);
    return true;
}

/* Fills the work's copies up to the one at fault, if one is: the work then consists of those before it. */
static int translate(const struct batch *batch, struct work *work, size_t *failed)
{
    for (size_t index = 0; index < batch->count; index++) {
        cuda_address destination = batch->destinations[index], source = batch->sources[index];
        if (!copy_is_valid(destination, source, batch->sizes[index])) {
            *failed = index;
            work->batch.count = index;
            return CUDA_INVALID_VALUE;
        }
        work->batch.copies[index] =
            (struct copy){memory_view(destination), memory_view(source), batch->sizes[index]};
    }
    return CUDA_OK;
}

/* The copy behind the last one of the work that attributes[index] applies to. */
static size_t attributes_end(const struct batch *batch, const struct work *work, size_t index)
{
    size_t end = index + 1 < batch->attribute_count ? batch->first_copies[index + 1] : batch->count;
    return end < work->batch.count ? end : work->batch.count;
}

/* Is the source read in the call? The adversarial schedule does so where the order leaves it open, too. */
static bool is_read_now(const struct copy_attributes *attributes)
{
    if (attributes->source_access_order == ORDER_ANY)
        return adversary_is_on() && adversary_reads_early();
    return attributes->source_access_order == ORDER_DURING_API_CALL;
}

/* Reads the sources of copies [first, end) of the work into staging memory of their own. */
static int read_now(struct work *work, size_t first, size_t end)
{
    size_t total = 0;
    for (size_t at = first; at < end; at++)
        total += work->batch.copies[at].size;
    if (total == 0)
        return CUDA_OK;
    char *staging = work_stage(work, total);
    if (staging == NULL)
        return CUDA_OUT_OF_MEMORY;
    for (size_t at = first; at < end; at++) {
        struct copy *copy = &work->batch.copies[at];
        memcpy(staging, copy->from, copy->size);
        copy->from = staging;
        staging += copy->size;
    }
    return CUDA_OK;
}

/* What is read now is the caller's again when the call returns. */
static int read_during_call(const struct batch *batch, struct work *work)
{
    int code = CUDA_OK;
    for (size_t index = 0; index < batch->attribute_count && code == CUDA_OK; index++)
        if (is_read_now(&batch->attributes[index]))
            code = read_now(work, batch->first_copies[index], attributes_end(batch, work, index));
    return code;
}

/* Queues what is in the work; without the memory for that the work is gone. */
static int submit(struct stream *stream, const struct batch *batch, struct work *work)
{
    int code = stream->capture != NULL ? CUDA_OK : read_during_call(batch, work); /* captured: read when it runs */
    if (code != CUDA_OK || work->batch.count == 0) {
        work_free(work);
        return code;
    }
    engine_lock();
    code = capture_or_submit(stream, work);
    engine_unlock();
    return code;
}

bool copy_is_barred_by_capture(const struct stream *stream)
{
    engine_lock();
    bool capturing = stream->capture != NULL;
    engine_unlock();
    return capturing && !capture_takes_batches();
}

int copy_batch(struct stream *stream, const struct batch *batch, size_t *failed)
{
    *failed = SIZE_MAX;
    if (stream->kind == STREAM_IS_LEGACY)
        return CUDA_INVALID_VALUE;
    if (copy_is_barred_by_capture(stream)) /* assumed to come before the checks of the arguments */
        return CUDA_CAPTURE_UNSUPPORTED;
    if (!arguments_are_valid(batch))
        return CUDA_INVALID_VALUE;
    struct work *work = work_create_copies(batch->count);
    if (work == NULL)
        return CUDA_OUT_OF_MEMORY;
    engine_lock();
    int code = translate(batch, work, failed);
    engine_unlock();
    struct fault fault = {0, false};
    if (code == CUDA_OK)
        code = fault_on_call(FAULT_BATCH, batch, &fault);
    if (code == CUDA_OK)
        code = fault_before_work(stream, &fault);
    if (code != CUDA_OK && *failed == SIZE_MAX)
        work->batch.count = 0; /* refused as a whole */
    int submitted = submit(stream, batch, work); /* what comes before a copy at fault is done (measured) */
    if (code == CUDA_OK && submitted == CUDA_OK)
        submitted = fault_after_work(stream, &fault, memory_view(batch->destinations[0]));
    return code != CUDA_OK ? code : submitted;
}
