/* Copies of rows: CUDA_MEMCPY2D between linear memory of any kind. Arrays are CUDA_NOT_SUPPORTED. */
#include "../engine/copies.h"

#include "api.h"
#include "state.h"

/* An end's first byte, or 0 for a type that there is not. */
static cuda_address start_of(const struct copy_2d_end *end)
{
    cuda_address base = 0;
    if (end->type == MEMORY_TYPE_HOST)
        base = (cuda_address)end->host;
    else if (end->type == MEMORY_TYPE_DEVICE || end->type == MEMORY_TYPE_UNIFIED)
        base = end->device;
    return base == 0 ? 0 : base + end->y * end->pitch + end->x_bytes;
}

/* Assumed: a pitch of 0 stands for rows side by side. */
static size_t pitch_of(const struct copy_2d_end *end, const struct copy_2d *copy)
{
    return end->pitch == 0 ? copy->width_bytes : end->pitch;
}

static enum direction direction_of(const struct copy_2d *copy)
{
    bool to_device = copy->destination.type == MEMORY_TYPE_DEVICE, from_device = copy->source.type == MEMORY_TYPE_DEVICE;
    if (copy->source.type == MEMORY_TYPE_HOST && to_device)
        return COPY_HOST_TO_DEVICE;
    if (from_device && copy->destination.type == MEMORY_TYPE_HOST)
        return COPY_DEVICE_TO_HOST;
    return to_device && from_device ? COPY_DEVICE_TO_DEVICE : COPY_ANY;
}

static int copy_2d(const struct copy_2d *copy, void *handle, enum completion completion, enum null_stream null_stream)
{
    int code = completion == COMPLETION_BEFORE_RETURN ? unsafe_ready() : stream_context_ready(handle);
    if (code != CUDA_OK)
        return code;
    if (copy == NULL || pitch_of(&copy->source, copy) < copy->width_bytes ||
        pitch_of(&copy->destination, copy) < copy->width_bytes)
        return CUDA_INVALID_VALUE;
    if (copy->source.array != NULL || copy->destination.array != NULL)
        return CUDA_NOT_SUPPORTED;
    struct stream *stream = stream_of(handle, null_stream);
    if (stream == NULL)
        return CUDA_OUT_OF_MEMORY;
    const struct rows rows = {
        .destination = start_of(&copy->destination),
        .source = start_of(&copy->source),
        .destination_pitch = pitch_of(&copy->destination, copy),
        .source_pitch = pitch_of(&copy->source, copy),
        .size = copy->width_bytes,
        .count = copy->height,
    };
    return copy_rows(stream, &rows, direction_of(copy), completion);
}

int cuMemcpy2D_v2(const struct copy_2d *copy)
{
    return copy_2d(copy, STREAM_NULL, COMPLETION_BEFORE_RETURN, NULL_IS_LEGACY);
}

int cuMemcpy2D_v2_ptds(const struct copy_2d *copy)
{
    return copy_2d(copy, STREAM_NULL, COMPLETION_BEFORE_RETURN, NULL_IS_PER_THREAD);
}

int cuMemcpy2DAsync_v2(const struct copy_2d *copy, void *stream)
{
    return copy_2d(copy, stream, COMPLETION_LATER, NULL_IS_LEGACY);
}

int cuMemcpy2DAsync_v2_ptsz(const struct copy_2d *copy, void *stream)
{
    return copy_2d(copy, stream, COMPLETION_LATER, NULL_IS_PER_THREAD);
}
