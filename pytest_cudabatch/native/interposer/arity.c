/*
 * Implements arity.h. An answer is evidence against somebody, so what could be either is unknown: behind an
 * 8-parameter call the ninth word is whatever the caller's stack holds, and zeros and ones are common there.
 */
#include "arity.h"

#include <stdbool.h>

#include "streams.h"

enum {
    EIGHTH = 1, /* the first stack word is parameter 7 */
    NINTH = 2,
    STREAM_PER_THREAD = 2,     /* the special handles: 0 default, 1 legacy, 2 per thread */
    NEAR_STACK = 64 * 1024,    /* how far above the call a caller's local variable may lie */
    LOWEST_POINTER = 64 * 1024 /* vm.mmap_min_addr: nothing is mapped below */
};

static bool is_special(uint64_t word)
{
    return word <= STREAM_PER_THREAD;
}

/* A stream handle never lies on the stack; failIdx nearly always does. */
static bool is_local_variable(const struct call_frame *frame, uint64_t word)
{
    uint64_t stack = (uint64_t)frame->stack;
    return word >= stack && word < stack + NEAR_STACK;
}

uint8_t arity_of(const struct call_frame *frame)
{
    uint64_t eighth = frame->stack[EIGHTH];
    uint64_t ninth = frame->stack[NINTH];
    if (stream_state(eighth) == STREAM_LIVE)
        return 8;
    if (stream_state(ninth) == STREAM_LIVE)
        return 9;
    if (is_local_variable(frame, eighth))
        return 9;
    if (stream_state(eighth) == STREAM_DESTROYED)
        return 8;
    if (eighth != 0 && is_special(eighth))
        return 8; /* no failIdx is 1 or 2 */
    if (eighth >= LOWEST_POINTER && is_special(ninth))
        return 9;
    return ARITY_UNKNOWN;
}

uint64_t arity_stream(const struct call_frame *frame, uint8_t arity)
{
    return frame->stack[arity == 8 ? EIGHTH : NINTH];
}
