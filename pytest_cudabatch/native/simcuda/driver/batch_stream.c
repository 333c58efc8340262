/* See batch_stream.h. */
#include "batch_stream.h"

#include "state.h"

int batch_stream(void *handle, enum null_stream null_stream, struct stream **stream)
{
    *stream = stream_of(handle, null_stream);
    if (*stream == NULL)
        return CUDA_OUT_OF_MEMORY;
    int code = context_ready();
    return code == CUDA_INVALID_CONTEXT && !stream_is_default(handle) ? CUDA_INVALID_VALUE : code;
}
