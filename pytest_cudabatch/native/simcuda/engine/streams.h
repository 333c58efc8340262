/*
 * Streams: those of the program and the two default ones. Needs the engine's lock unless said otherwise.
 */
#ifndef CUDABATCH_STREAMS_H
#define CUDABATCH_STREAMS_H

#include "schedule.h"

/* What a NULL handle means: the legacy default stream, or in `_ptsz` and `_ptds` entries the thread's own. */
enum null_stream { NULL_IS_LEGACY, NULL_IS_PER_THREAD };

/* Makes the default streams possible; called once, by cuInit. Does not need the lock. */
int streams_start(void);

/* Returns a cuda_code; flags as cuStreamCreate takes them, priorities are clamped to what there is. */
int stream_create(unsigned flags, int priority, void **handle);

/* The handle faults from now on; queued work still runs. */
void stream_destroy(struct stream *stream);
void stream_destroy_all(int device);

/* Is the handle one of the three numbers, and not a stream of the program? */
bool stream_is_default(const void *handle);

/*
 * Returns the stream behind a handle, NULL only without memory for the thread's own stream. Reads through
 * the handle, so a stale or false one is SIGSEGV. Call it without the lock.
 */
struct stream *stream_of(void *handle, enum null_stream null_stream);

#endif
