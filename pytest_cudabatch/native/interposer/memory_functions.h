/*
 * The driver's functions that give memory to a process and take it back: watched in a process with a trace
 * only. Every libcudart, also a static one, gets its memory from them, so the runtime's own need no watching.
 *
 * They are no part of evidence, so their numbers do not lie in its table of functions but behind it.
 */
#ifndef CUDABATCH_MEMORY_FUNCTIONS_H
#define CUDABATCH_MEMORY_FUNCTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "functions.h"
#include "slot.h"
#include "stubs.h"

enum { MEMORY_FUNCTIONS = 0x100 }; /* number of the first */

/* As function_named and function_asked; NOT_WATCHED too where the process has no trace. */
uint16_t memory_function_named(const char *name);
uint16_t memory_function_asked(const char *name, bool per_thread);

/* The row of a number from MEMORY_FUNCTIONS on. */
const struct watched_function *memory_function(uint16_t number);

/* Hooks around a call: memory goes before the real function runs, and comes after it returned. */
void memory_begin(struct call_frame *frame, const struct stub *stub, const struct watched_function *function,
                  struct slot_lease lease);
void memory_end(struct call_frame *frame, const struct stub *stub, const struct watched_function *function);

#endif
