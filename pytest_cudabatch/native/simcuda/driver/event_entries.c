/* The event entries. A dead event's handle is CUDA_INVALID_HANDLE; a dead stream's is SIGSEGV. */
#include "../engine/events.h"

#include "api.h"
#include "state.h"

int cuEventCreate(void **event, unsigned flags)
{
    int code = event == NULL ? CUDA_INVALID_VALUE : context_ready();
    return code == CUDA_OK ? event_create(flags, event) : code;
}

int cuEventDestroy_v2(void *event)
{
    int code = context_ready();
    return code == CUDA_OK ? event_destroy(event) : code;
}

int cuEventQuery(void *event)
{
    int code = context_ready();
    return code == CUDA_OK ? event_query(event) : code;
}

int cuEventSynchronize(void *event)
{
    int code = context_ready();
    return code == CUDA_OK ? event_synchronize(event) : code;
}

int cuEventElapsedTime(float *milliseconds, void *start, void *end)
{
    int code = milliseconds == NULL ? CUDA_INVALID_VALUE : context_ready();
    return code == CUDA_OK ? event_elapsed(start, end, milliseconds) : code;
}

int cuEventElapsedTime_v2(float *milliseconds, void *start, void *end)
{
    return cuEventElapsedTime(milliseconds, start, end);
}

static int record(void *event, void *handle, unsigned flags, enum null_stream null_stream)
{
    int code = flags > 1 ? CUDA_INVALID_VALUE : context_ready();
    if (code != CUDA_OK)
        return code;
    struct stream *stream = stream_of(handle, null_stream);
    return stream == NULL ? CUDA_OUT_OF_MEMORY : event_record(event, stream);
}

int cuEventRecord(void *event, void *stream)
{
    return record(event, stream, 0, NULL_IS_LEGACY);
}

int cuEventRecord_ptsz(void *event, void *stream)
{
    return record(event, stream, 0, NULL_IS_PER_THREAD);
}

int cuEventRecordWithFlags(void *event, void *stream, unsigned flags)
{
    return record(event, stream, flags, NULL_IS_LEGACY);
}

int cuEventRecordWithFlags_ptsz(void *event, void *stream, unsigned flags)
{
    return record(event, stream, flags, NULL_IS_PER_THREAD);
}
