/* The stream entries. Those that take a stream read through its handle: a stale one is SIGSEGV. */
#include "../engine/streams.h"

#include "../engine/capture.h"
#include "../engine/events.h"
#include "api.h"
#include "state.h"

int cuStreamCreateWithPriority(void **stream, unsigned flags, int priority)
{
    int code = stream == NULL ? CUDA_INVALID_VALUE : context_ready();
    if (code != CUDA_OK)
        return code;
    engine_lock();
    code = stream_create(flags, priority, stream);
    engine_unlock();
    return code;
}

int cuStreamCreate(void **stream, unsigned flags)
{
    return cuStreamCreateWithPriority(stream, flags, STREAM_PRIORITY_LOWEST);
}

/* Resolves a handle for the entries below; CUDA_OK and the stream, or a code. */
static int enter(void *handle, enum null_stream null_stream, struct stream **stream)
{
    int code = context_ready();
    if (code != CUDA_OK)
        return code;
    *stream = stream_of(handle, null_stream);
    return *stream == NULL ? CUDA_OUT_OF_MEMORY : CUDA_OK;
}

int cuStreamDestroy_v2(void *handle)
{
    struct stream *stream;
    int code = enter(handle, NULL_IS_LEGACY, &stream);
    if (code != CUDA_OK)
        return code;
    if (stream->object.handle == NULL)
        return CUDA_INVALID_HANDLE; /* a default stream */
    engine_lock();
    stream_destroy(stream);
    engine_unlock();
    return CUDA_OK;
}

static int synchronize(void *handle, enum null_stream null_stream)
{
    struct stream *stream;
    int code = enter(handle, null_stream, &stream);
    if (code != CUDA_OK)
        return code;
    engine_lock();
    code = capture_permits_wait(stream);
    if (code == CUDA_OK)
        schedule_wait_stream(stream);
    engine_unlock();
    return code;
}

int cuStreamSynchronize(void *stream)
{
    return synchronize(stream, NULL_IS_LEGACY);
}

int cuStreamSynchronize_ptsz(void *stream)
{
    return synchronize(stream, NULL_IS_PER_THREAD);
}

static int query(void *handle, enum null_stream null_stream)
{
    struct stream *stream;
    int code = enter(handle, null_stream, &stream);
    if (code != CUDA_OK)
        return code;
    engine_lock();
    code = capture_permits_wait(stream);
    if (code == CUDA_OK && !schedule_is_idle(stream))
        code = CUDA_NOT_READY;
    engine_unlock();
    return code;
}

int cuStreamQuery(void *stream)
{
    return query(stream, NULL_IS_LEGACY);
}

int cuStreamQuery_ptsz(void *stream)
{
    return query(stream, NULL_IS_PER_THREAD);
}

static int wait_event(void *handle, void *event, unsigned flags, enum null_stream null_stream)
{
    struct stream *stream;
    int code = flags > 1 ? CUDA_INVALID_VALUE : enter(handle, null_stream, &stream);
    return code == CUDA_OK ? event_make_stream_wait(event, stream) : code;
}

int cuStreamWaitEvent(void *stream, void *event, unsigned flags)
{
    return wait_event(stream, event, flags, NULL_IS_LEGACY);
}

int cuStreamWaitEvent_ptsz(void *stream, void *event, unsigned flags)
{
    return wait_event(stream, event, flags, NULL_IS_PER_THREAD);
}

static int get_flags(void *handle, unsigned *flags, enum null_stream null_stream)
{
    struct stream *stream;
    int code = flags == NULL ? CUDA_INVALID_VALUE : enter(handle, null_stream, &stream);
    if (code == CUDA_OK)
        *flags = stream->kind == STREAM_IS_NON_BLOCKING ? STREAM_FLAG_NON_BLOCKING : 0;
    return code;
}

int cuStreamGetFlags(void *stream, unsigned *flags)
{
    return get_flags(stream, flags, NULL_IS_LEGACY);
}

int cuStreamGetFlags_ptsz(void *stream, unsigned *flags)
{
    return get_flags(stream, flags, NULL_IS_PER_THREAD);
}

static int get_priority(void *handle, int *priority, enum null_stream null_stream)
{
    struct stream *stream;
    int code = priority == NULL ? CUDA_INVALID_VALUE : enter(handle, null_stream, &stream);
    if (code == CUDA_OK)
        *priority = stream->priority;
    return code;
}

int cuStreamGetPriority(void *stream, int *priority)
{
    return get_priority(stream, priority, NULL_IS_LEGACY);
}

int cuStreamGetPriority_ptsz(void *stream, int *priority)
{
    return get_priority(stream, priority, NULL_IS_PER_THREAD);
}

static int launch(void *handle, host_function function, void *argument, enum null_stream null_stream)
{
    struct stream *stream;
    int code = function == NULL ? CUDA_INVALID_VALUE : enter(handle, null_stream, &stream);
    if (code != CUDA_OK)
        return code;
    struct work *work = work_create(WORK_HOST_FUNCTION);
    if (work == NULL)
        return CUDA_OUT_OF_MEMORY;
    work->host.call = function;
    work->host.argument = argument;
    engine_lock();
    code = capture_or_submit(stream, work);
    engine_unlock();
    return code;
}

int cuLaunchHostFunc(void *stream, host_function function, void *argument)
{
    return launch(stream, function, argument, NULL_IS_LEGACY);
}

int cuLaunchHostFunc_ptsz(void *stream, host_function function, void *argument)
{
    return launch(stream, function, argument, NULL_IS_PER_THREAD);
}
