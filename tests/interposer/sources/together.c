/* Calls a function in many threads at the same moment: they spin until all of them are there. */
#include <pthread.h>
#include <stdatomic.h>

enum { THREADS = 8 };

struct call {
    int (*function)(void *);
    void *argument;
    _Atomic int awaited;
    _Atomic int failed;
};

static void *make(void *shared)
{
    struct call *call = shared;
    atomic_fetch_sub(&call->awaited, 1);
    while (atomic_load(&call->awaited) > 0)
        continue;
    if (call->function(call->argument) != 0)
        atomic_fetch_add(&call->failed, 1);
    return NULL;
}

/* How many of the THREADS calls did not return 0. */
int call_together(int (*function)(void *), void *argument)
{
    struct call call = {.function = function, .argument = argument, .awaited = THREADS};
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, make, &call);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    return call.failed;
}
