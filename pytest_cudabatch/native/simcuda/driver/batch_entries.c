/*
 * The batch call's two ABIs, and what happens to a caller that uses the other one.
 *
 * Nine parameters (12.8): failIdx before the stream. An eight-parameter caller leaves its stream in
 * failIdx's place; failIdx is touched first, and handles are read-only, so that call faults whatever
 * litter lies in the ninth place. Eight parameters (13.0): a nine-parameter caller leaves &failIdx in the
 * stream's place; reading through it finds failIdx's value instead of a stream, and faults.
 */
#include "../engine/copies.h"

#include "api.h"
#include "batch_stream.h"
#include "state.h"

#if SIM_DRIVER_OWN >= FIRST_VERSION_WITH_BATCH
/* Writes back what is there: it faults where failIdx is not writable, and changes nothing. */
static void touch(size_t *fail_index)
{
    if (fail_index != NULL)
        __atomic_fetch_or(fail_index, 0, __ATOMIC_RELAXED);
}

static int batch_with_fail_index(const struct batch *batch, size_t *fail_index, void *handle,
                                 enum null_stream null_stream)
{
    struct stream *stream;
    size_t failed = SIZE_MAX;
    int code = driver_ready();
    if (code != CUDA_OK)
        return code;
    touch(fail_index);
    if (handle == STREAM_NULL && null_stream == NULL_IS_LEGACY)
        return CUDA_INVALID_VALUE; /* failIdx stays untouched, unlike for STREAM_LEGACY */
    code = batch_stream(handle, null_stream, &stream);
    if (code == CUDA_OK)
        code = copy_batch(stream, batch, &failed);
    if (fail_index != NULL)
        *fail_index = failed;
    return code;
}

int cuMemcpyBatchAsync(const cuda_address *destinations, const cuda_address *sources, const size_t *sizes, size_t count,
                       const struct copy_attributes *attributes, const size_t *first_copies, size_t attribute_count,
                       size_t *fail_index, void *stream)
{
    const struct batch batch = {destinations, sources, sizes, count, attributes, first_copies, attribute_count};
    return batch_with_fail_index(&batch, fail_index, stream, NULL_IS_LEGACY);
}

int cuMemcpyBatchAsync_ptsz(const cuda_address *destinations, const cuda_address *sources, const size_t *sizes,
                            size_t count, const struct copy_attributes *attributes, const size_t *first_copies,
                            size_t attribute_count, size_t *fail_index, void *stream)
{
    const struct batch batch = {destinations, sources, sizes, count, attributes, first_copies, attribute_count};
    return batch_with_fail_index(&batch, fail_index, stream, NULL_IS_PER_THREAD);
}
#endif

#if SIM_DRIVER_OWN >= FIRST_VERSION_WITHOUT_FAIL_INDEX
/* A NULL stream is refused, by the `_ptsz` twin too: so the real one was seen to answer. */
static int batch_without_fail_index(const struct batch *batch, void *handle)
{
    struct stream *stream;
    size_t failed;
    int code = driver_ready();
    if (code != CUDA_OK)
        return code;
    if (handle == STREAM_NULL)
        return CUDA_INVALID_VALUE;
    code = batch_stream(handle, NULL_IS_LEGACY, &stream);
    return code == CUDA_OK ? copy_batch(stream, batch, &failed) : code;
}

int cuMemcpyBatchAsync_v2(const cuda_address *destinations, const cuda_address *sources, const size_t *sizes,
                          size_t count, const struct copy_attributes *attributes, const size_t *first_copies,
                          size_t attribute_count, void *stream)
{
    const struct batch batch = {destinations, sources, sizes, count, attributes, first_copies, attribute_count};
    return batch_without_fail_index(&batch, stream);
}

int cuMemcpyBatchAsync_v2_ptsz(const cuda_address *destinations, const cuda_address *sources, const size_t *sizes,
                               size_t count, const struct copy_attributes *attributes, const size_t *first_copies,
                               size_t attribute_count, void *stream)
{
    const struct batch batch = {destinations, sources, sizes, count, attributes, first_copies, attribute_count};
    return batch_without_fail_index(&batch, stream);
}

/* Since 13.2, one copy with attributes. Header: they mean what they mean in a batch; assumed: so do all rules. */
int cuMemcpyWithAttributesAsync(cuda_address destination, cuda_address source, size_t size,
                                const struct copy_attributes *attributes, void *stream)
{
    const size_t first = 0;
    const struct batch batch = {&destination, &source, &size, 1, attributes, &first, 1};
    return batch_without_fail_index(&batch, stream);
}

int cuMemcpyWithAttributesAsync_ptsz(cuda_address destination, cuda_address source, size_t size,
                                     const struct copy_attributes *attributes, void *stream)
{
    return cuMemcpyWithAttributesAsync(destination, source, size, attributes,
                                       stream == STREAM_NULL ? STREAM_PER_THREAD : stream);
}
#endif
