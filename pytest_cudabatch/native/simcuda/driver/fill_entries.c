/* The fill entries, by elements of 8, 16 and 32 bits; each says its completion and what NULL means. */
#include "../engine/copies.h"

#include "api.h"
#include "state.h"

static int fill(const struct fill *fill, void *handle, enum completion completion, enum null_stream null_stream)
{
    int code = completion == COMPLETION_BEFORE_RETURN ? unsafe_ready() : stream_context_ready(handle);
    if (code != CUDA_OK)
        return code;
    struct stream *stream = stream_of(handle, null_stream);
    return stream == NULL ? CUDA_OUT_OF_MEMORY : copy_fill(stream, fill, completion);
}

#define FILL(value) (&(struct fill){destination, value, sizeof(value), count})

/* A synchronous and an asynchronous entry, each with its per-thread twin. */
#define FILL_ENTRIES(name, name_async, value_type)                                           \
    int name(cuda_address destination, value_type value, size_t count)                       \
    {                                                                                        \
        return fill(FILL(value), STREAM_NULL, COMPLETION_BEFORE_RETURN, NULL_IS_LEGACY);     \
    }                                                                                        \
    int name##_ptds(cuda_address destination, value_type value, size_t count)                \
    {                                                                                        \
        return fill(FILL(value), STREAM_NULL, COMPLETION_BEFORE_RETURN, NULL_IS_PER_THREAD); \
    }                                                                                        \
    int name_async(cuda_address destination, value_type value, size_t count, void *stream)   \
    {                                                                                        \
        return fill(FILL(value), stream, COMPLETION_LATER, NULL_IS_LEGACY);                  \
    }                                                                                        \
    int name_async##_ptsz(cuda_address destination, value_type value, size_t count, void *stream) \
    {                                                                                        \
        return fill(FILL(value), stream, COMPLETION_LATER, NULL_IS_PER_THREAD);              \
    }

FILL_ENTRIES(cuMemsetD8_v2, cuMemsetD8Async, unsigned char)
FILL_ENTRIES(cuMemsetD16_v2, cuMemsetD16Async, unsigned short)
FILL_ENTRIES(cuMemsetD32_v2, cuMemsetD32Async, unsigned)
