/* The single-copy entries: each says its direction, its completion and what NULL means. */
#include "../engine/copies.h"

#include "api.h"
#include "state.h"

struct manner {
    enum direction direction;
    enum completion completion;
    enum null_stream null_stream;
};

static int manner_ready(const void *handle, struct manner manner)
{
    return manner.completion == COMPLETION_BEFORE_RETURN ? unsafe_ready() : stream_context_ready(handle);
}

static int copy(uintptr_t destination, uintptr_t source, size_t size, void *handle, struct manner manner)
{
    int code = manner_ready(handle, manner);
    if (code != CUDA_OK)
        return code;
    struct stream *stream = stream_of(handle, manner.null_stream);
    if (stream == NULL)
        return CUDA_OUT_OF_MEMORY;
    return copy_one(stream, destination, source, size, manner.direction, manner.completion);
}

#define SYNCHRONOUS(direction, null_stream) \
    STREAM_NULL, (struct manner){direction, COMPLETION_BEFORE_RETURN, null_stream}
#define ASYNCHRONOUS(direction, null_stream) stream, (struct manner){direction, COMPLETION_LATER, null_stream}

/* One entry and its per-thread twin, which differ in what a NULL stream means. */
#define COPY_ENTRIES(name, twin, to_type, from_type, direction)                                               \
    int name(to_type destination, from_type source, size_t size)                                              \
    {                                                                                                         \
        return copy((uintptr_t)destination, (uintptr_t)source, size, SYNCHRONOUS(direction, NULL_IS_LEGACY)); \
    }                                                                                                         \
    int twin(to_type destination, from_type source, size_t size)                                              \
    {                                                                                                         \
        return copy((uintptr_t)destination, (uintptr_t)source, size,                                          \
                    SYNCHRONOUS(direction, NULL_IS_PER_THREAD));                                              \
    }

#define COPY_ASYNC_ENTRIES(name, twin, to_type, from_type, direction)                                          \
    int name(to_type destination, from_type source, size_t size, void *stream)                                 \
    {                                                                                                          \
        return copy((uintptr_t)destination, (uintptr_t)source, size, ASYNCHRONOUS(direction, NULL_IS_LEGACY)); \
    }                                                                                                          \
    int twin(to_type destination, from_type source, size_t size, void *stream)                                 \
    {                                                                                                          \
        return copy((uintptr_t)destination, (uintptr_t)source, size,                                           \
                    ASYNCHRONOUS(direction, NULL_IS_PER_THREAD));                                              \
    }

COPY_ENTRIES(cuMemcpy, cuMemcpy_ptds, cuda_address, cuda_address, COPY_ANY)
COPY_ENTRIES(cuMemcpyHtoD_v2, cuMemcpyHtoD_v2_ptds, cuda_address, const void *, COPY_HOST_TO_DEVICE)
COPY_ENTRIES(cuMemcpyDtoH_v2, cuMemcpyDtoH_v2_ptds, void *, cuda_address, COPY_DEVICE_TO_HOST)
COPY_ENTRIES(cuMemcpyDtoD_v2, cuMemcpyDtoD_v2_ptds, cuda_address, cuda_address, COPY_DEVICE_TO_DEVICE)
COPY_ASYNC_ENTRIES(cuMemcpyAsync, cuMemcpyAsync_ptsz, cuda_address, cuda_address, COPY_ANY)
COPY_ASYNC_ENTRIES(cuMemcpyHtoDAsync_v2, cuMemcpyHtoDAsync_v2_ptsz, cuda_address, const void *, COPY_HOST_TO_DEVICE)
COPY_ASYNC_ENTRIES(cuMemcpyDtoHAsync_v2, cuMemcpyDtoHAsync_v2_ptsz, void *, cuda_address, COPY_DEVICE_TO_HOST)
COPY_ASYNC_ENTRIES(cuMemcpyDtoDAsync_v2, cuMemcpyDtoDAsync_v2_ptsz, cuda_address, cuda_address, COPY_DEVICE_TO_DEVICE)
