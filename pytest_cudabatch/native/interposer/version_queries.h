/* The answers of the functions that say which CUDA a driver or a runtime is, recorded. */
#ifndef CUDABATCH_VERSION_QUERIES_H
#define CUDABATCH_VERSION_QUERIES_H

#include "functions.h"
#include "slot.h"
#include "stubs.h"

/* Call before the real function: records a query that a rule keeps from ever returning. */
void version_query_begin(struct call_frame *frame, const struct stub *stub,
                         const struct watched_function *function, struct slot_lease lease);

/* Call after the real function returned, or a rule answered for it. Equal answers are recorded once. */
void version_query_end(struct call_frame *frame, const struct stub *stub,
                       const struct watched_function *function);

#endif
