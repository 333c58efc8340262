/*
 * Events: marks in streams that the program holds. Takes the engine's lock itself; returns cuda_codes.
 * A handle that is no live event is CUDA_INVALID_HANDLE.
 */
#ifndef CUDABATCH_EVENTS_H
#define CUDABATCH_EVENTS_H

#include "streams.h"

int event_create(unsigned flags, void **handle);
int event_destroy(void *handle);
void event_destroy_all(int device); /* needs the lock */

/* CUDA_INVALID_HANDLE for a stream of another device than the event's. */
int event_record(void *handle, struct stream *stream);
int event_make_stream_wait(void *handle, struct stream *stream);

/* An event that was never recorded counts as reached. */
int event_query(void *handle); /* CUDA_OK or CUDA_NOT_READY */
int event_synchronize(void *handle);
int event_elapsed(void *start, void *end, float *milliseconds);

#endif
