/* Creation, destruction and look-up of streams; see streams.h. */
#include "streams.h"

#include <pthread.h>
#include <stdlib.h>

#include "capture.h"

/* Queued in by streams_start, guarded by the engine's lock after that, never freed. */
static struct stream legacy = {.kind = STREAM_IS_LEGACY};

/* Set once by streams_start: each thread's own default stream. */
static pthread_key_t per_thread;

/* At the end of a thread: its stream goes when its work is done. */
static void close_per_thread(void *stream)
{
    if (engine_is_forked())
        return;
    engine_lock();
    capture_abandon(stream);
    schedule_close(stream);
    engine_unlock();
}

int streams_start(void)
{
    if (pthread_key_create(&per_thread, close_per_thread) != 0)
        return CUDA_OUT_OF_MEMORY;
    engine_lock();
    schedule_add(&legacy);
    engine_unlock();
    return CUDA_OK;
}

static int clamp_priority(int priority)
{
    if (priority > STREAM_PRIORITY_LOWEST)
        return STREAM_PRIORITY_LOWEST;
    return priority < STREAM_PRIORITY_HIGHEST ? STREAM_PRIORITY_HIGHEST : priority;
}

int stream_create(unsigned flags, int priority, void **handle)
{
    if (flags > STREAM_FLAG_NON_BLOCKING)
        return CUDA_INVALID_VALUE;
    struct stream *stream = calloc(1, sizeof *stream);
    if (stream == NULL || !handle_create(&stream->object, OBJECT_STREAM)) {
        free(stream);
        return CUDA_OUT_OF_MEMORY;
    }
    stream->kind = flags == STREAM_FLAG_NON_BLOCKING ? STREAM_IS_NON_BLOCKING : STREAM_IS_BLOCKING;
    stream->priority = clamp_priority(priority);
    schedule_add(stream);
    *handle = stream->object.handle;
    return CUDA_OK;
}

void stream_destroy(struct stream *stream)
{
    handle_retire(&stream->object);
    capture_abandon(stream);
    schedule_close(stream);
}

void stream_destroy_all(void)
{
    struct object *object;
    while ((object = handle_any(OBJECT_STREAM)) != NULL)
        stream_destroy((struct stream *)object);
}

static struct stream *stream_of_thread(void)
{
    struct stream *stream = pthread_getspecific(per_thread);
    if (stream != NULL)
        return stream;
    stream = calloc(1, sizeof *stream);
    if (stream == NULL || pthread_setspecific(per_thread, stream) != 0) {
        free(stream);
        return NULL;
    }
    stream->kind = STREAM_IS_BLOCKING;
    engine_lock();
    schedule_add(stream);
    engine_unlock();
    return stream;
}

bool stream_is_default(const void *handle)
{
    return handle == STREAM_NULL || handle == STREAM_LEGACY || handle == STREAM_PER_THREAD;
}

struct stream *stream_of(void *handle, enum null_stream null_stream)
{
    if (handle == STREAM_NULL)
        handle = null_stream == NULL_IS_LEGACY ? STREAM_LEGACY : STREAM_PER_THREAD;
    if (handle == STREAM_LEGACY)
        return &legacy;
    if (handle == STREAM_PER_THREAD)
        return stream_of_thread();
    return (struct stream *)handle_object(handle, OBJECT_STREAM);
}
