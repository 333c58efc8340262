/* The answers of cuGetProcAddress and cudaGetDriverEntryPoint: recorded, and replaced by stubs. */
#ifndef CUDABATCH_LOOKUPS_H
#define CUDABATCH_LOOKUPS_H

#include "functions.h"
#include "stubs.h"

/* Call after the real look-up returned. Answers about names that are not watched stay as they are. */
void lookup_end(struct call_frame *frame, const struct stub *stub, const struct watched_function *function);

#endif
