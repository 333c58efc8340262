/* Order and preference; see choosing.h. */
#include "choosing.h"

#include <time.h>

#include "adversary.h"

int64_t monotonic_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

bool older_work(const struct stream *streams, enum stream_kind kind, int device, uint64_t ticket)
{
    for (const struct stream *stream = streams; stream != NULL; stream = stream->next)
        if (stream->kind == kind && stream->object.device == device && stream->first != NULL && stream->first->ticket < ticket)
            return true;
    return false;
}

bool is_ready(const struct stream *streams, const struct stream *stream)
{
    const struct work *work = stream->first;
    if (work == NULL || stream->busy)
        return false;
    if (work->kind == WORK_WAIT && !work->mark->reached)
        return false;
    if (stream->kind == STREAM_IS_LEGACY)
        return !older_work(streams, STREAM_IS_BLOCKING, stream->object.device, work->ticket);
    if (stream->kind == STREAM_IS_BLOCKING)
        return !older_work(streams, STREAM_IS_LEGACY, stream->object.device, work->ticket);
    return true;
}

struct stream *oldest_ready(struct stream *streams)
{
    struct stream *chosen = NULL;
    for (struct stream *stream = streams; stream != NULL; stream = stream->next)
        if (is_ready(streams, stream) && (chosen == NULL || stream->first->ticket < chosen->first->ticket))
            chosen = stream;
    return chosen;
}

static bool is_held(const struct stream *stream)
{
    uint64_t ticket = stream->first->ticket;
    return ticket > stream->demanded && !adversary_is_eager(ticket);
}

/* The one of two streams, either of them NULL, whose first work the adversarial schedule prefers. */
static struct stream *preferred(struct stream *one, struct stream *other)
{
    if (one == NULL || other == NULL)
        return one == NULL ? other : one;
    return adversary_rank(other->first->ticket) < adversary_rank(one->first->ticket) ? other : one;
}

struct stream *next_released(struct stream *streams)
{
    struct stream *chosen = NULL;
    for (struct stream *stream = streams; stream != NULL; stream = stream->next)
        if (is_ready(streams, stream) && !is_held(stream))
            chosen = preferred(chosen, stream);
    return chosen;
}

struct stream *next_overdue(struct stream *streams, int64_t *wake)
{
    struct stream *chosen = NULL;
    int64_t now = monotonic_now();
    *wake = INT64_MAX;
    for (struct stream *stream = streams; stream != NULL; stream = stream->next) {
        if (!is_ready(streams, stream))
            continue;
        struct work *work = stream->first;
        if (work->ready_since == 0)
            work->ready_since = now;
        int64_t due = work->ready_since + adversary_patience(work->ticket);
        if (due <= now)
            chosen = preferred(chosen, stream);
        else if (due < *wake)
            *wake = due;
    }
    return chosen;
}
