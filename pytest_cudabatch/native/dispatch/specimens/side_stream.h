/* A stream and an event of a specimen's own, for those that do not copy on the stream that they are given.
 *
 * Both come from whichever runtime dlsym finds, once for the process, and stay until it ends.
 */
#ifndef CUDABATCH_SIDE_STREAM_H
#define CUDABATCH_SIDE_STREAM_H

#include <pthread.h>

#include "specimen.h"

/* The functions are NULL, and so is the stream, where no loaded library has them. `code` is CUDA's. */
struct side_stream {
    int code;
    void *stream;
    void *event;
    int (*record)(void *event, void *stream);
    int (*wait)(void *stream, void *event, unsigned flags);
};

static struct side_stream side; /* written once, by side_stream_make */

static void side_stream_make(void)
{
    typedef int (*create)(void **, unsigned);
    const unsigned non_blocking = 1, disable_timing = 2;
    create create_stream = (create)cudabatch_symbol(RTLD_DEFAULT, "cudaStreamCreateWithFlags");
    create create_event = (create)cudabatch_symbol(RTLD_DEFAULT, "cudaEventCreateWithFlags");
    side.record = (int (*)(void *, void *))cudabatch_symbol(RTLD_DEFAULT, "cudaEventRecord");
    side.wait = (int (*)(void *, void *, unsigned))cudabatch_symbol(RTLD_DEFAULT, "cudaStreamWaitEvent");
    if (create_stream == NULL || create_event == NULL || side.record == NULL || side.wait == NULL)
        return;
    side.code = create_event(&side.event, disable_timing);
    if (side.code == CUDABATCH_SUCCESS)
        side.code = create_stream(&side.stream, non_blocking);
}

/* Returns it, or NULL where `stream` is a default stream or there can be none: then copy on `stream`. */
static inline const struct side_stream *side_stream_for(void *stream)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if ((uintptr_t)stream <= 2)
        return NULL;
    pthread_once(&once, side_stream_make);
    return side.stream == NULL && side.code == CUDABATCH_SUCCESS ? NULL : &side;
}

/* Makes work that is queued on `later` from now on wait for what is queued on `earlier`. */
static inline int side_stream_order(const struct side_stream *with, void *earlier, void *later)
{
    int code = with->record(with->event, earlier);
    return code == CUDABATCH_SUCCESS ? with->wait(later, with->event, 0) : code;
}

#endif
