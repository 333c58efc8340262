/*
 * Which of the queued work may run, and which of it does so next. `streams` is the schedule's list, whose
 * stream links lead on; everything here needs the engine's lock.
 */
#ifndef CUDABATCH_CHOOSING_H
#define CUDABATCH_CHOOSING_H

#include "schedule.h"

/* Nanoseconds of the monotonic clock. */
int64_t monotonic_now(void);

/* Has a stream of the kind, on the device, unfinished work older than `ticket`? */
bool older_work(const struct stream *streams, enum stream_kind kind, int device, uint64_t ticket);

/* May the stream's first work run now? Everything that the contract orders is decided here. */
bool is_ready(const struct stream *streams, const struct stream *stream);

/* Each returns a stream whose first work is to run now, or NULL. */

/* The fair schedule: of all that is ready, the oldest. */
struct stream *oldest_ready(struct stream *streams);

/* The adversarial schedule, for threads that call CUDA: of what is ready and not held. */
struct stream *next_released(struct stream *streams);

/* The same for the worker: of what has been ready for long. `wake` is when the next of it will have been. */
struct stream *next_overdue(struct stream *streams, int64_t *wake);

#endif
