/* The answers of cuGetProcAddress and cudaGetDriverEntryPoint: recorded, and replaced by stubs. */
#ifndef CUDABATCH_LOOKUPS_H
#define CUDABATCH_LOOKUPS_H

#include <stdbool.h>

#include "functions.h"
#include "slot.h"
#include "stubs.h"

/* Whether the call asks for a batch function, in whatever version. */
bool lookup_asks_for_batch(const struct call_frame *frame);

/* Answers NULL in place of the real look-up; with `not_found` it sets the query's result too, where given. */
void lookup_refuse(const struct call_frame *frame, const struct watched_function *function, bool not_found);

/* Call before the real look-up: records one that a rule keeps from ever returning. */
void lookup_begin(struct call_frame *frame, const struct stub *stub, const struct watched_function *function,
                  struct slot_lease lease);

/* Call after the real look-up returned, or a rule answered for it. Gives the answer's counterpart of the other
 * ABI instead where a rule says so and it exists. Answers about names that are not watched stay as they are. */
void lookup_end(struct call_frame *frame, const struct stub *stub, const struct watched_function *function);

#endif
