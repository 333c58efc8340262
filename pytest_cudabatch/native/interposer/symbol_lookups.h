/*
 * dlsym and dlvsym of a library that puts itself between the program and the C library, as GPU-sharing layers
 * do: it may answer with functions of its own, which the dynamic linker never hears of. Only questions about
 * watched functions are looked at; all others go through as if there were no stub.
 *
 * The C library's dlsym judges its caller by the return address. A layer that merely jumps to it must leave
 * ours out of sight: where it found nothing, it is entered again with the caller's.
 */
#ifndef CUDABATCH_SYMBOL_LOOKUPS_H
#define CUDABATCH_SYMBOL_LOOKUPS_H

#include <stdbool.h>
#include <stdint.h>

#include "functions.h"
#include "stubs.h"

/* Whether the call is about a watched function, so that its answer matters. */
bool symbol_lookup_matters(const struct call_frame *frame);

/* Call after it returned: replaces an address by a stub. True where it has to be entered again. */
bool symbol_lookup_end(struct call_frame *frame);

#endif
