/* The stream handles of this process, known from watching their creation. They tell a call's parameters apart. */
#ifndef CUDABATCH_STREAMS_H
#define CUDABATCH_STREAMS_H

#include <stdbool.h>
#include <stdint.h>

enum stream_state { STREAM_UNKNOWN, STREAM_LIVE, STREAM_DESTROYED };

void stream_created(uint64_t handle);

/* Call before the destroying function runs, since another thread may be given the same handle once it has.
 * True where the handle was live until now. */
bool stream_destroyed(uint64_t handle);

enum stream_state stream_state(uint64_t handle);

#endif
