/*
 * Injection by request: the rules in this process's slot decide which calls are delayed, and which are answered,
 * hang or crash without calling the real function. A forked child has no slot, hence no rules, until it claims
 * one; so its calls are never counted among its parent's.
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

/* Counts a call that is about to be made and notes in the frame what the rules have for it: `effect`, `rule`,
 * `delay`, and for a code also `result` and a look-up's parameters. */
void injection_into_call(struct evidence_slot *slot, struct call_frame *frame, const struct stub *stub,
                         const struct watched_function *function);

/* Whether a rule keeps the real function from being called, and whether the call never returns then. */
bool injection_replaces_call(const struct call_frame *frame);
bool injection_ends_call(const struct call_frame *frame);

/* What to call in place of the real function, where a rule replaces it. */
uint64_t injection_replacement(const struct call_frame *frame);

/* Counts that a look-up was answered in the other ABI, which shows only when it has been made. */
void injection_took_effect(const struct call_frame *frame);

/* A function that dlsym or dlvsym was asked for, and what it is to answer. */
struct dlsym_answer {
    uint16_t function;
    uint64_t address; /* 0: NULL */
    uint16_t via;     /* enum evidence_via */
};

/* Applies the rules to a dlsym of a batch function by the code at this address; does not return from a hang or
 * a crash. Takes the true answer and leaves it where no rule has another one. */
void injection_into_dlsym(uint64_t caller, struct dlsym_answer *answer);

#endif
