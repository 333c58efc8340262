/* Creation, destruction and look-up of streams; see streams.h. */
#include "streams.h"

#include <pthread.h>
#include <stdlib.h>

#include "capture.h"
#include "devices.h"

/* One for each device. Queued in by streams_start, guarded by the engine's lock after that, never freed. */
static struct stream legacy[MOST_DEVICES];

/* A thread's own default streams, NULL where it has not used the one of a device. */
struct own_streams {
    struct stream *of[MOST_DEVICES];
};

/* Set once by streams_start: each thread's struct own_streams. */
static pthread_key_t per_thread;

/* At the end of a thread: its streams go when their work is done. */
static void close_per_thread(void *value)
{
    struct own_streams *own = value;
    if (engine_is_forked())
        return;
    engine_lock();
    for (int device = 0; device < MOST_DEVICES; device++) {
        if (own->of[device] == NULL)
            continue;
        capture_abandon(own->of[device]);
        schedule_close(own->of[device]);
    }
    engine_unlock();
    free(own);
}

int streams_start(void)
{
    if (pthread_key_create(&per_thread, close_per_thread) != 0)
        return CUDA_OUT_OF_MEMORY;
    engine_lock();
    for (int device = 0; device < MOST_DEVICES; device++) {
        legacy[device].kind = STREAM_IS_LEGACY;
        legacy[device].object.device = device;
        schedule_add(&legacy[device]);
    }
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

void stream_destroy_all(int device)
{
    struct object *object;
    while ((object = handle_any(OBJECT_STREAM, device)) != NULL)
        stream_destroy((struct stream *)object);
}

static struct own_streams *streams_of_thread(void)
{
    struct own_streams *own = pthread_getspecific(per_thread);
    if (own != NULL)
        return own;
    own = calloc(1, sizeof *own);
    if (own != NULL && pthread_setspecific(per_thread, own) == 0)
        return own;
    free(own);
    return NULL;
}

static struct stream *stream_of_thread(void)
{
    struct own_streams *own = streams_of_thread();
    int device = device_current();
    if (own == NULL || own->of[device] != NULL)
        return own == NULL ? NULL : own->of[device];
    struct stream *stream = calloc(1, sizeof *stream);
    if (stream == NULL)
        return NULL;
    stream->kind = STREAM_IS_BLOCKING;
    stream->object.device = device;
    own->of[device] = stream;
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
        return &legacy[device_current()];
    if (handle == STREAM_PER_THREAD)
        return stream_of_thread();
    return (struct stream *)handle_object(handle, OBJECT_STREAM);
}
