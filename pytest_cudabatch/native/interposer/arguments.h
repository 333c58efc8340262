/*
 * Are a flat batch call's arguments right? Asked only of calls that a rule answers, where the process says what
 * memory the call is about: so it costs an ordinary call nothing, and a crash inside the real function can be
 * held against what the same call is given when it is not made.
 */
#ifndef CUDABATCH_ARGUMENTS_H
#define CUDABATCH_ARGUMENTS_H

#include "evidence.h"
#include "functions.h"
#include "stubs.h"

/*
 * CALL_ARGUMENTS_RIGHT: the stream is live, each range lies inside one of the slot's allocations, and the
 * attributes follow the contract. CALL_ARGUMENTS_WRONG: one of them is not so, or an array cannot be read.
 * 0: it is not known, because the slot names no allocation or the call is no flat batch.
 */
uint8_t arguments_judge(struct evidence_slot *slot, const struct call_frame *frame,
                        const struct watched_function *function, const struct evidence_call *call);

#endif
