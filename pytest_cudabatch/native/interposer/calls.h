/* Recording copy calls in this process's slot: in full in a journal, and counted by site. */
#ifndef CUDABATCH_CALLS_H
#define CUDABATCH_CALLS_H

#include "functions.h"
#include "slot.h"
#include "stubs.h"

/* Object and offset of the code that called; a tail call out of a watched function is that function's. */
struct caller {
    uint16_t object;
    uint64_t offset;
};
struct caller caller_of(const struct call_frame *frame);

/* Records a call in flight, before the real function can crash. Does nothing without a slot. */
void call_begin(struct call_frame *frame, const struct stub *stub, const struct watched_function *function,
                struct slot_lease lease);

/* Adds the return code, unless the process has become another one or lost the slot in between. */
void call_end(struct call_frame *frame);

#endif
