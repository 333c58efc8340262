/*
 * Implements arity.h. An answer is evidence against somebody, so what could be either is unknown: behind the
 * shorter list lies whatever the caller's stack or register holds, and zeros and ones are common there.
 */
#include "arity.h"

#include <stdbool.h>

#include "streams.h"

enum {
    STREAM_PER_THREAD = 2,     /* the special handles: 0 default, 1 legacy, 2 per thread */
    NEAR_STACK = 64 * 1024,    /* how far above the call a caller's local variable may lie */
    LOWEST_POINTER = 64 * 1024 /* vm.mmap_min_addr: nothing is mapped below */
};

/* The words that tell the two lists apart. */
struct words {
    uint64_t fail;   /* failIdx in the longer list; in the shorter one its stream (1D) or its flags (3D) */
    uint64_t before; /* the last parameter of the shorter list: its stream */
    uint64_t last;   /* the last parameter of the longer list: its stream */
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

/* Neither stream is live. In the shorter list `before` is the stream, in the longer one it is failIdx. */
static bool is_shorter_1d(const struct words *words)
{
    return words->before != 0 && is_special(words->before); /* no failIdx is 1 or 2 */
}

static bool is_longer_1d(const struct words *words)
{
    return words->fail >= LOWEST_POINTER && is_special(words->last);
}

/* Neither stream is live. The flags, third or fourth, are 0 in every version; no failIdx is 1 or 2 either. */
static bool is_shorter_3d(const struct words *words)
{
    return words->fail == 0 && words->before != 0 && is_special(words->before);
}

static bool is_longer_3d(const struct words *words)
{
    return words->fail >= LOWEST_POINTER && words->before == 0;
}

uint8_t arity_of(const struct call_frame *frame, const struct watched_function *function)
{
    uint8_t shorter = (uint8_t)(function->stream_at + 1), longer = (uint8_t)(shorter + 1);
    bool is_3d = function->fail_at != function->stream_at;
    struct words words = {
        .fail = call_argument(frame, function->fail_at),
        .before = call_argument(frame, shorter - 1U),
        .last = call_argument(frame, longer - 1U),
    };
    if (stream_state(words.before) == STREAM_LIVE)
        return shorter;
    if (stream_state(words.last) == STREAM_LIVE || is_local_variable(frame, words.fail))
        return longer;
    if (stream_state(words.before) == STREAM_DESTROYED)
        return shorter;
    if (is_3d ? is_shorter_3d(&words) : is_shorter_1d(&words))
        return shorter;
    if (is_3d ? is_longer_3d(&words) : is_longer_1d(&words))
        return longer;
    return ARITY_UNKNOWN;
}

uint64_t arity_stream(const struct call_frame *frame, uint8_t arity)
{
    return call_argument(frame, arity - 1U);
}
