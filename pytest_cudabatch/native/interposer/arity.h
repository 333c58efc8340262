/*
 * With how many parameters a batch call was made. 1D: 9 (dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs,
 * failIdx, stream) or 8 (without failIdx). 3D: 5 (numOps, opList, failIdx, flags, stream) or 4. The call itself
 * says so by where the stream lies.
 */
#ifndef CUDABATCH_ARITY_H
#define CUDABATCH_ARITY_H

#include <stdint.h>

#include "functions.h"
#include "stubs.h"

enum { ARITY_UNKNOWN = 0 };

/* 8 or 9, for a 3D function 4 or 5, or ARITY_UNKNOWN. */
uint8_t arity_of(const struct call_frame *frame, const struct watched_function *function);

/* The stream that a caller with this arity meant: in either list the last parameter. */
uint64_t arity_stream(const struct call_frame *frame, uint8_t arity);

#endif
