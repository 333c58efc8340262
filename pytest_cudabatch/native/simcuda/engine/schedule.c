/* The queues, the worker thread, and the order in which work runs; see schedule.h. */
#include "schedule.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "adversary.h"
#include "choosing.h"
#include "devices.h"
#include "memory.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* All guarded by the lock. */
static pthread_cond_t work_arrived; /* the worker waits for it, by the monotonic clock; made by engine_start */
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
    pthread_condattr_t monotonic;
    int code = adversary_start();
    if (code == CUDA_OK)
        code = devices_start();
    if (code != CUDA_OK)
        return code;
    bool made = pthread_condattr_init(&monotonic) == 0 && pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC) == 0 &&
                pthread_cond_init(&work_arrived, &monotonic) == 0;
    return made && pthread_atfork(NULL, NULL, note_fork) == 0 ? CUDA_OK : CUDA_OUT_OF_MEMORY;
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
    mark->nanoseconds = monotonic_now();
    mark->reached = true;
}

/* Takes the finished work off its queue and wakes whoever may go on. */
static void finish(struct stream *stream)
{
    struct work *work = stream->first;
    if (work->kind == WORK_RECORD)
        reach(work->mark);
    if (work->kind == WORK_FREE)
        memory_end_free(work->freed);
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

static void set_all(const struct work *work)
{
    if (work->set.width == 1) {
        memset(work->set.to, (int)work->set.value, work->set.count);
        return;
    }
    for (size_t index = 0; index < work->set.count; index++) /* little-endian, as every host of a GPU is */
        memcpy((char *)work->set.to + index * work->set.width, &work->set.value, work->set.width);
}

static void run_released(void);

static void *call_host_function(void *argument)
{
    struct stream *stream = argument;
    const struct work *work = stream->first; /* stays first: the stream is busy */
    work->host.call(work->host.argument);
    engine_lock();
    finish(stream);
    run_released();
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
        set_all(work);
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
    case WORK_FREE:
        break; /* what they change needs the lock: see finish */
    }
    engine_lock();
    finish(stream);
}

/* Adversarial: runs what is not held, here and now. Gives up the lock meanwhile. */
static void run_released(void)
{
    struct stream *stream;
    while (adversary_is_on() && (stream = next_released(streams)) != NULL)
        run_first(stream);
}

static void wait_for_work(int64_t wake)
{
    const struct timespec until = {.tv_sec = wake / 1000000000, .tv_nsec = wake % 1000000000};
    if (wake == INT64_MAX)
        pthread_cond_wait(&work_arrived, &lock);
    else
        pthread_cond_timedwait(&work_arrived, &lock, &until);
}

/* Never returns and is never joined: it ends with the process, wherever it is then. */
static void *worker(void *unused)
{
    (void)unused;
    engine_lock();
    for (;;) {
        int64_t wake = INT64_MAX;
        struct stream *stream = adversary_is_on() ? next_overdue(streams, &wake) : oldest_ready(streams);
        if (stream != NULL)
            run_first(stream);
        else
            wait_for_work(wake);
    }
    return NULL;
}

static void enqueue(struct stream *stream, struct work *work)
{
    work->next = NULL;
    work->ticket = ++last_ticket;
    if (work->kind == WORK_RECORD) {
        work->mark->stream = stream;
        work->mark->ticket = work->ticket;
    }
    if (adversary_is_on() && work->kind == WORK_COPIES)
        adversary_shuffle(work->batch.copies, work->batch.count, work->ticket);
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
    run_released();
    return CUDA_OK;
}

static bool wait_for_each_other(const struct stream *one, const struct stream *other)
{
    if (one->object.device != other->object.device)
        return false;
    return (one->kind == STREAM_IS_LEGACY && other->kind == STREAM_IS_BLOCKING) ||
           (one->kind == STREAM_IS_BLOCKING && other->kind == STREAM_IS_LEGACY);
}

/* Adversarial: lets go of the stream's work up to `ticket`, and of all that it has to wait for. */
static void demand(struct stream *stream, uint64_t ticket)
{
    if (!adversary_is_on() || ticket <= stream->demanded)
        return;
    stream->demanded = ticket; /* first: what follows may lead back here */
    stream->queries = 0;
    for (const struct work *work = stream->first; work != NULL && work->ticket <= ticket; work = work->next)
        if (work->kind == WORK_WAIT && !work->mark->reached)
            demand(work->mark->stream, work->mark->ticket);
    for (struct stream *other = streams; other != NULL; other = other->next)
        if (wait_for_each_other(stream, other))
            demand(other, ticket);
}

/* What a waiting thread does: run what may run, cheaper than to wake the worker for it, or wait for the others. */
static void help(struct stream *stream)
{
    struct stream *chosen = stream;
    if (adversary_is_on())
        chosen = next_released(streams);
    else if (stream == NULL || !is_ready(streams, stream))
        chosen = NULL;
    if (chosen != NULL)
        run_first(chosen);
    else
        pthread_cond_wait(&work_finished, &lock);
}

/* Another thread may destroy the stream meanwhile; after this the stream may be gone. */
static void wait_for_ticket(struct stream *stream, uint64_t ticket)
{
    demand(stream, ticket);
    stream->waiters++;
    while (stream->finished < ticket)
        help(stream);
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
    uint64_t ticket = last_ticket; /* a default stream, which stays */
    demand(stream, ticket);
    while (older_work(streams, STREAM_IS_BLOCKING, stream->object.device, ticket + 1))
        help(NULL);
}

void schedule_wait_mark(const struct mark *mark)
{
    if (!mark->reached)
        demand(mark->stream, mark->ticket);
    while (!mark->reached)
        help(NULL);
}

/* Unfinished work of the device, or of ANY_DEVICE, up to `ticket`, if there is any. */
static bool has_work_up_to(uint64_t ticket, int device)
{
    for (const struct stream *stream = streams; stream != NULL; stream = stream->next)
        if ((device == ANY_DEVICE || stream->object.device == device) && stream->first != NULL &&
            stream->first->ticket <= ticket)
            return true;
    return false;
}

void schedule_wait_device(int device)
{
    uint64_t ticket = last_ticket;
    for (struct stream *stream = streams; stream != NULL; stream = stream->next)
        if (device == ANY_DEVICE || stream->object.device == device)
            demand(stream, ticket);
    while (has_work_up_to(ticket, device))
        help(NULL);
}

/* Adversarial: work that is asked for often enough is demanded, and what can runs before the query returns. */
static void note_query(struct stream *stream, uint64_t ticket)
{
    if (!adversary_is_on() || ticket <= stream->demanded || ++stream->queries < adversary_queries(ticket))
        return;
    demand(stream, ticket);
    run_released();
}

static bool has_work(const struct stream *stream)
{
    if (stream->kind == STREAM_IS_LEGACY && older_work(streams, STREAM_IS_BLOCKING, stream->object.device, last_ticket + 1))
        return true;
    return stream->first != NULL;
}

bool schedule_is_idle(struct stream *stream)
{
    bool idle = !has_work(stream);
    if (!idle)
        note_query(stream, stream->kind == STREAM_IS_LEGACY ? last_ticket : stream->submitted);
    return idle;
}

bool schedule_is_reached(const struct mark *mark)
{
    bool reached = mark->reached;
    if (!reached)
        note_query(mark->stream, mark->ticket);
    return reached;
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
