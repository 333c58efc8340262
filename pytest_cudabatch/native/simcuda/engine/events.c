/* Creation, recording and waiting; see events.h. */
#include "events.h"

#include <stdlib.h>

#include "capture.h"

struct event {
    struct object object; /* first, see handles.h */
    unsigned flags;
    struct mark *mark; /* of the newest record, NULL before the first; an owned reference */
};

static struct event *find(const void *handle)
{
    return (struct event *)handle_find(handle, OBJECT_EVENT);
}

static bool flags_are_valid(unsigned flags)
{
    bool interprocess = flags & EVENT_FLAG_INTERPROCESS;
    return flags <= EVENT_FLAGS_ALL && (!interprocess || flags & EVENT_FLAG_DISABLE_TIMING);
}

int event_create(unsigned flags, void **handle)
{
    if (!flags_are_valid(flags))
        return CUDA_INVALID_VALUE;
    struct event *event = calloc(1, sizeof *event);
    if (event == NULL)
        return CUDA_OUT_OF_MEMORY;
    event->flags = flags;
    engine_lock();
    bool created = handle_create(&event->object, OBJECT_EVENT);
    if (created)
        *handle = event->object.handle;
    engine_unlock();
    if (created)
        return CUDA_OK;
    free(event);
    return CUDA_OUT_OF_MEMORY;
}

static void destroy(struct event *event)
{
    handle_retire(&event->object);
    mark_release(event->mark);
    free(event);
}

int event_destroy(void *handle)
{
    engine_lock();
    struct event *event = find(handle);
    if (event != NULL)
        destroy(event);
    engine_unlock();
    return event != NULL ? CUDA_OK : CUDA_INVALID_HANDLE;
}

void event_destroy_all(int device)
{
    struct object *object;
    while ((object = handle_any(OBJECT_EVENT, device)) != NULL)
        destroy((struct event *)object);
}

static int submit_mark(struct stream *stream, enum work_kind kind, struct mark *mark)
{
    struct work *work = work_create(kind);
    if (work == NULL)
        return CUDA_OUT_OF_MEMORY;
    work->mark = mark_retain(mark);
    return capture_or_submit(stream, work);
}

static int record(struct event *event, struct stream *stream)
{
    struct mark *mark = mark_create(), *older = event->mark;
    if (mark == NULL)
        return CUDA_OUT_OF_MEMORY;
    event->mark = mark;
    int code = submit_mark(stream, WORK_RECORD, mark); /* after a success the event may be gone */
    if (code != CUDA_OK)
        event->mark = older; /* it will be reached */
    mark_release(code == CUDA_OK ? older : mark);
    return code;
}

int event_record(void *handle, struct stream *stream)
{
    engine_lock();
    struct event *event = find(handle);
    bool fits = event != NULL && event->object.device == stream->object.device;
    int code = fits ? record(event, stream) : CUDA_INVALID_HANDLE;
    engine_unlock();
    return code;
}

int event_make_stream_wait(void *handle, struct stream *stream)
{
    int code = CUDA_OK;
    engine_lock();
    const struct event *event = find(handle);
    if (event == NULL)
        code = CUDA_INVALID_HANDLE;
    else if (event->mark != NULL && stream->capture != NULL)
        code = capture_isolates(stream);
    else if (event->mark != NULL && !event->mark->reached)
        code = submit_mark(stream, WORK_WAIT, event->mark);
    engine_unlock();
    return code;
}

int event_query(void *handle)
{
    int code = CUDA_OK;
    engine_lock();
    const struct event *event = find(handle);
    if (event == NULL)
        code = CUDA_INVALID_HANDLE;
    else if (event->mark != NULL && !schedule_is_reached(event->mark))
        code = CUDA_NOT_READY;
    engine_unlock();
    return code;
}

int event_synchronize(void *handle)
{
    engine_lock();
    const struct event *event = find(handle);
    if (event != NULL && event->mark != NULL) {
        struct mark *mark = mark_retain(event->mark); /* the event may be recorded anew meanwhile */
        schedule_wait_mark(mark);
        mark_release(mark);
    }
    engine_unlock();
    return event != NULL ? CUDA_OK : CUDA_INVALID_HANDLE;
}

static bool is_timed(const struct event *event)
{
    return event != NULL && !(event->flags & EVENT_FLAG_DISABLE_TIMING) && event->mark != NULL;
}

int event_elapsed(void *start, void *end, float *milliseconds)
{
    int code = CUDA_OK;
    engine_lock();
    const struct event *first = find(start), *last = find(end);
    if (!is_timed(first) || !is_timed(last) || first->object.device != last->object.device)
        code = CUDA_INVALID_HANDLE;
    else if (!first->mark->reached || !last->mark->reached)
        code = CUDA_NOT_READY;
    else
        *milliseconds = (float)(last->mark->nanoseconds - first->mark->nanoseconds) / 1e6f;
    engine_unlock();
    return code;
}
