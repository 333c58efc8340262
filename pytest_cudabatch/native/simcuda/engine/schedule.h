/*
 * The device's side of time: streams hold queues of work, and a schedule says which runs next.
 *
 * Work is queued by API calls and runs later: on the worker thread, which starts with the first
 * asynchronous submission (never at load: processes fork before they use CUDA), or on a thread that
 * waits for it. Which work may run, and which of it is next, is choosing.h's. One lock guards all of the engine's
 * state; work itself runs without it.
 *
 * Fair: of all that is ready the oldest runs next. Adversarial (adversary.h): eager work runs at once, on the
 * thread that submits it or makes it ready; other work is held until it is demanded, which waiting for it
 * does, and asking for it often enough. The worker runs only what has been ready for long, so that a program
 * which waits for nothing, or by other means, goes on too.
 */
#ifndef CUDABATCH_SCHEDULE_H
#define CUDABATCH_SCHEDULE_H

#include <stdbool.h>

#include "../abi.h"
#include "handles.h"

/* A point in a stream: what an event remembers. Shared by the event and by queued work; needs the lock. */
struct mark {
    int references;
    bool reached;
    int64_t nanoseconds;   /* of the monotonic clock, when it was reached */
    struct stream *stream; /* where the record is queued; dead when it is reached, NULL before it is queued */
    uint64_t ticket;       /* of the record */
};

struct mark *mark_create(void); /* one reference; NULL without memory */
struct mark *mark_retain(struct mark *mark);
void mark_release(struct mark *mark);

/* One copy, in addresses that the engine may dereference. */
struct copy {
    void *to;
    const void *from;
    size_t size;
};

typedef void (*host_function)(void *argument);

enum work_kind { WORK_COPIES, WORK_SET, WORK_RECORD, WORK_WAIT, WORK_HOST_FUNCTION, WORK_FREE };

struct work {
    struct work *next;
    uint64_t ticket;     /* position in the order of submission, over all streams */
    int64_t ready_since; /* nanoseconds, kept by the adversarial schedule; 0: not seen ready yet */
    enum work_kind kind;
    union {
        struct {
            size_t count;
            struct copy *copies;     /* lies behind this struct */
            struct staging *staging; /* owned: sources that were read at submission, or NULL */
        } batch;
        struct {
            void *to;
            uint32_t value;
            unsigned width; /* of an element: 1, 2 or 4 bytes */
            size_t count;   /* of elements */
        } set;
        struct mark *mark; /* owned reference: to reach, or to wait for */
        struct {
            host_function call;
            void *argument;
        } host;
        cuda_address freed; /* an allocation that is leaving */
    };
};

struct work *work_create(enum work_kind kind); /* NULL without memory */
struct work *work_create_copies(size_t count); /* the same, with room for `count` copies */
void work_free(struct work *work);             /* needs the lock when the work has a mark */

/* A copy of captured work, which has read no source yet and has no mark; NULL without memory. */
struct work *work_clone(const struct work *work);

/* Returns `size` bytes that live as long as the work, which is one of copies; NULL without memory. */
void *work_stage(struct work *work, size_t size);

/* LEGACY and BLOCKING streams wait for each other, as the legacy default stream demands. */
enum stream_kind { STREAM_IS_LEGACY, STREAM_IS_BLOCKING, STREAM_IS_NON_BLOCKING };

struct stream {
    struct object object; /* first, see handles.h */
    enum stream_kind kind;
    int priority;
    struct stream *next;        /* in the schedule's list */
    struct work *first, *last;  /* the first stays in the queue until it has run */
    uint64_t submitted;         /* ticket of the newest work */
    uint64_t finished;          /* ticket of the newest finished work */
    uint64_t demanded;          /* adversarial: work up to this ticket is held no longer */
    unsigned queries;           /* adversarial: how often its work was asked for since it was last demanded */
    bool busy;                  /* some thread runs `first` */
    unsigned waiters;           /* threads in wait_for_ticket */
    bool closed;                /* destroyed by the program: freed when nobody needs it any more */
    struct capture *capture;    /* what takes the work instead of the queue, or NULL; see capture.h */
};

/*
 * Once for the process, before all else: a fork after it leaves a child in which the engine is unusable.
 * CUDA_INVALID_VALUE where the environment asks for a schedule, or a number of devices, that there is not.
 */
int engine_start(void);
bool engine_is_forked(void); /* needs no lock, which a thread of the parent may have held */

void engine_lock(void);
void engine_unlock(void);

/* Everything below needs the lock; the waits give it up while they wait. */
void schedule_add(struct stream *stream);
void schedule_close(struct stream *stream);

/*
 * Queues work and sees to it that it runs. Takes ownership. CUDA_OUT_OF_MEMORY if no thread can be had. It may
 * give up the lock after it has queued the work, so that other threads change what the caller knows.
 */
int schedule_submit(struct stream *stream, struct work *work);

/* Queues work and returns when it has run; starts no thread. Takes ownership. */
void schedule_run(struct stream *stream, struct work *work);

void schedule_wait_stream(struct stream *stream);
void schedule_wait_mark(const struct mark *mark);
void schedule_wait_device(int device); /* or ANY_DEVICE */

/* Has all work of the stream, or up to the mark, finished? Asking is seen by the adversarial schedule. */
bool schedule_is_idle(struct stream *stream);
bool schedule_is_reached(const struct mark *mark);

#endif
