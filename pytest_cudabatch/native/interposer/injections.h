/*
 * Injection by request: the rules in this process's slot decide which calls are answered without calling the
 * real function. A forked child has no slot, hence no rules, until it claims one; so its calls are never
 * counted among its parent's.
 */
#ifndef CUDABATCH_INJECTIONS_H
#define CUDABATCH_INJECTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "evidence.h"
#include "functions.h"
#include "stubs.h"

/* All that a call costs in a process without rules. */
static inline bool injections_requested(const struct evidence_slot *slot)
{
    return slot != NULL && atomic_load_explicit(&slot->injections.count, memory_order_relaxed) != 0;
}

/* Counts a call that is about to be made. True where a rule answers it: the frame's `result` then holds the
 * code to return, and a look-up's parameters are set. */
bool injection_into_call(struct evidence_slot *slot, struct call_frame *frame, const struct stub *stub,
                         const struct watched_function *function);

/* Counts a dlsym of a batch function by the code at this address. True where it is to find nothing. */
bool injection_into_dlsym(uint64_t caller);

#endif
