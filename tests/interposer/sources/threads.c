/* Many threads that copy at once: each alternates batch calls and single copies of its own stream. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>

typedef int batch(void *, void *, void *, uint64_t, void *, void *, uint64_t, void *);
typedef int single(void *, const void *, uint64_t, int, void *);
typedef int create(void **);

struct work {
    long rounds;
    long errors;
    void *stream;
};

static batch *copy_batch;
static single *copy_single;

static void *run(void *argument)
{
    struct work *work = argument;
    for (long i = 0; i < work->rounds; i++) {
        work->errors += copy_batch(NULL, NULL, NULL, (uint64_t)i, NULL, NULL, 1, work->stream) != 0;
        work->errors += copy_single(NULL, NULL, 1, 1, work->stream) != 0;
    }
    return NULL;
}

/* Number of calls that failed, or -1. */
long threads_copy(int threads, long rounds)
{
    enum { MOST = 16 };
    pthread_t ids[MOST];
    struct work work[MOST];
    long errors = 0;
    create *new_stream = (create *)dlsym(RTLD_DEFAULT, "cudaStreamCreate");
    copy_batch = (batch *)dlsym(RTLD_DEFAULT, "cudaMemcpyBatchAsync");
    copy_single = (single *)dlsym(RTLD_DEFAULT, "cudaMemcpyAsync");
    if (threads > MOST || new_stream == NULL || copy_batch == NULL || copy_single == NULL)
        return -1;
    for (int i = 0; i < threads; i++) {
        work[i] = (struct work){.rounds = rounds};
        if (new_stream(&work[i].stream) != 0 || pthread_create(&ids[i], NULL, run, &work[i]) != 0)
            return -1;
    }
    for (int i = 0; i < threads; i++) {
        pthread_join(ids[i], NULL);
        errors += work[i].errors;
    }
    return errors;
}

/* Seconds of CPU time are the caller's business: this only repeats one thread's batch calls. */
long threads_repeat(long rounds, void *stream)
{
    long errors = 0;
    batch *copy = (batch *)dlsym(RTLD_DEFAULT, "cudaMemcpyBatchAsync");
    for (long i = 0; i < rounds; i++)
        errors += copy(NULL, NULL, NULL, 1, NULL, NULL, 1, stream) != 0;
    return errors;
}
