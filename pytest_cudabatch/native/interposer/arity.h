/*
 * With how many parameters a batch call was made: 9 (dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs,
 * failIdx, stream) or 8 (without failIdx). The call itself says so by where the stream lies.
 */
#ifndef CUDABATCH_ARITY_H
#define CUDABATCH_ARITY_H

#include <stdint.h>

#include "stubs.h"

enum { ARITY_UNKNOWN = 0 };

/* 8, 9 or ARITY_UNKNOWN. */
uint8_t arity_of(const struct call_frame *frame);

/* The stream that a caller with this arity (8 or 9) meant. */
uint64_t arity_stream(const struct call_frame *frame, uint8_t arity);

#endif
