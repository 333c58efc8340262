/* The queues, the worker thread, and the order in which work runs; see schedule.h. */
#include "schedule.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* All guarded by the lock. */
static pthread_cond_t work_arrived = PTHREAD_COND_INITIALIZER;  /* the worker waits for it */
static pthread_cond_t work_finished = PTHREAD_COND_INITIALIZER; /* synchronising callers wait for it */
static struct stream *streams;
static uint64_t last_ticket;
static bool worker_runs;

/* Set in a forked child, whose worker is missing; read without the lock. */
static volatile sig_atomic_t forked;

static void note_fork(void)
{
    forked = 1;
}

int engine_start(void)
{
    return pthread_atfork(NULL, NULL, note_fork) == 0 ? CUDA_OK : CUDA_OUT_OF_MEMORY;
}

bool engine_is_forked(void)
{
    return forked;
}

void engine_lock(void)
{
    pthread_mutex_lock(&lock);
}

void engine_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

/* Has a stream of the kind, other than `stream`, unfinished work older than `ticket`? */
static bool older_work(enum stream_kind kind, uint64_t ticket)
{
    for (const struct stream *stream = streams; stream != NULL; stream = stream->next)
        if (stream->kind == kind && stream->first != NULL && stream->first->ticket < ticket)
            return true;
    return false;
}

/* May the stream's first work run now? Everything that the contract orders is decided here. */
static bool ready(const struct stream *stream)
{
    const struct work *work = stream->first;
    if (work == NULL || stream->busy)
        return false;
    if (work->kind == WORK_WAIT && !work->mark->reached)
        return false;
    if (stream->kind == STREAM_IS_LEGACY)
        return !older_work(STREAM_IS_BLOCKING, work->ticket);
    if (stream->kind == STREAM_IS_BLOCKING)
        return !older_work(STREAM_IS_LEGACY, work->ticket);
    return true;
}

/* The schedule: of all that may run, the oldest. */
static struct stream *next_stream(void)
{
    struct stream *chosen = NULL;
    for (struct stream *stream = streams; stream != NULL; stream = stream->next)
        if (ready(stream) && (chosen == NULL || stream->first->ticket < chosen->first->ticket))
            chosen = stream;
    return chosen;
}

/* Frees a stream that the program has destroyed, once its work is done and nobody waits for it. */
static void remove_if_over(struct stream *stream)
{
    if (!stream->closed || stream->first != NULL || stream->waiters != 0)
        return;
    struct stream **link = &streams;
    while (*link != stream)
        link = &(*link)->next;
    *link = stream->next;
    free(stream);
}

static void reach(struct mark *mark)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    mark->nanoseconds = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
    mark->reached = true;
}

/* Takes the finished work off its queue and wakes whoever may go on. */
static void finish(struct stream *stream)
{
    struct work *work = stream->first;
    if (work->kind == WORK_RECORD)
        reach(work->mark);
    stream->finished = work->ticket;
    stream->busy = false;
    stream->first = work->next;
    if (stream->first == NULL)
        stream->last = NULL;
    work_free(work);
    remove_if_over(stream);
    pthread_cond_broadcast(&work_finished);
    if (worker_runs)
        pthread_cond_signal(&work_arrived);
}

static void copy_all(const struct work *work)
{
    for (size_t index = 0; index < work->batch.count; index++) {
        const struct copy *copy = &work->batch.copies[index];
        memmove(copy->to, copy->from, copy->size);
    }
}

static void *call_host_function(void *argument)
{
    struct stream *stream = argument;
    const struct work *work = stream->first; /* stays first: the stream is busy */
    work->host.call(work->host.argument);
    engine_lock();
    finish(stream);
    engine_unlock();
    return NULL;
}

/* Signals of the program go to its own threads; faults stay with the thread that causes them. */
static bool start_thread(void *(*body)(void *), void *argument)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT};
    sigset_t blocked, before;
    pthread_t thread;
    sigfillset(&blocked);
    for (size_t index = 0; index < sizeof faults / sizeof *faults; index++)
        sigdelset(&blocked, faults[index]);
    pthread_sigmask(SIG_SETMASK, &blocked, &before);
    bool started = pthread_create(&thread, NULL, body, argument) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (started)
        pthread_detach(thread);
    return started;
}

/* Runs the first work of a ready stream, without the lock. */
static void run_first(struct stream *stream)
{
    const struct work *work = stream->first;
    stream->busy = true;
    engine_unlock();
    switch (work->kind) {
    case WORK_COPIES:
        copy_all(work);
        break;
    case WORK_SET:
        memset(work->set.to, work->set.value, work->set.size);
        break;
    case WORK_HOST_FUNCTION:
        /* A thread of its own: it may block for as long as it likes while other streams go on. */
        if (start_thread(call_host_function, stream)) {
            engine_lock();
            return;
        }
        work->host.call(work->host.argument);
        break;
    case WORK_RECORD:
    case WORK_WAIT:
        break;
    }
    engine_lock();
    finish(stream);
}

/* Never returns and is never joined: it ends with the process, wherever it is then. */
static void *worker(void *unused)
{
    (void)unused;
    engine_lock();
    for (;;) {
        struct stream *stream = next_stream();
        if (stream != NULL)
            run_first(stream);
        else
            pthread_cond_wait(&work_arrived, &lock);
    }
    return NULL;
}

static void enqueue(struct stream *stream, struct work *work)
{
    work->next = NULL;
    work->ticket = ++last_ticket;
    if (stream->last == NULL)
        stream->first = work;
    else
        stream->last->next = work;
    stream->last = work;
    stream->submitted = work->ticket;
}

int schedule_submit(struct stream *stream, struct work *work)
{
    if (!worker_runs)
        worker_runs = start_thread(worker, NULL);
    if (!worker_runs) {
        work_free(work);
        return CUDA_OUT_OF_MEMORY;
    }
    enqueue(stream, work);
    pthread_cond_signal(&work_arrived);
    return CUDA_OK;
}

/*
 * A waiting thread runs what is ready in its stream itself: cheaper than to wake the worker for it. Another
 * thread may destroy the stream meanwhile; after this the stream may be gone.
 */
static void wait_for_ticket(struct stream *stream, uint64_t ticket)
{
    stream->waiters++;
    while (stream->finished < ticket) {
        if (ready(stream))
            run_first(stream);
        else
            pthread_cond_wait(&work_finished, &lock);
    }
    stream->waiters--;
    remove_if_over(stream);
}

void schedule_run(struct stream *stream, struct work *work)
{
    enqueue(stream, work);
    wait_for_ticket(stream, stream->submitted);
}

void schedule_wait_stream(struct stream *stream)
{
    bool is_legacy = stream->kind == STREAM_IS_LEGACY;
    wait_for_ticket(stream, stream->submitted);
    if (!is_legacy)
        return;
    uint64_t ticket = last_ticket;
    while (older_work(STREAM_IS_BLOCKING, ticket + 1))
        pthread_cond_wait(&work_finished, &lock);
}

void schedule_wait_mark(const struct mark *mark)
{
    while (!mark->reached)
        pthread_cond_wait(&work_finished, &lock);
}

static bool any_older_work(uint64_t ticket)
{
    return older_work(STREAM_IS_LEGACY, ticket) || older_work(STREAM_IS_BLOCKING, ticket) ||
           older_work(STREAM_IS_NON_BLOCKING, ticket);
}

void schedule_wait_all(void)
{
    uint64_t ticket = last_ticket;
    while (any_older_work(ticket + 1))
        pthread_cond_wait(&work_finished, &lock);
}

bool schedule_is_idle(const struct stream *stream)
{
    if (stream->kind == STREAM_IS_LEGACY && older_work(STREAM_IS_BLOCKING, last_ticket + 1))
        return false;
    return stream->first == NULL;
}

void schedule_add(struct stream *stream)
{
    stream->next = streams;
    streams = stream;
}

void schedule_close(struct stream *stream)
{
    stream->closed = true;
    remove_if_over(stream);
}
