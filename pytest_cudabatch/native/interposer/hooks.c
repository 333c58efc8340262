/* What happens around a real call, by kind of function: the two entry points of the call stubs. */
#include <stddef.h>

#include "calls.h"
#include "functions.h"
#include "lookups.h"
#include "streams.h"
#include "stubs.h"

typedef void hook(struct call_frame *frame, const struct stub *stub, const struct watched_function *function);

static void end_copy(struct call_frame *frame, const struct stub *stub, const struct watched_function *function)
{
    (void)stub;
    (void)function;
    call_end(frame);
}

static void end_stream_create(struct call_frame *frame, const struct stub *stub,
                              const struct watched_function *function)
{
    (void)stub;
    (void)function;
    const uint64_t *handle = (const uint64_t *)frame->arguments[0];
    if ((uint32_t)frame->result == 0 && handle != NULL)
        stream_created(*handle);
}

static void begin_stream_destroy(struct call_frame *frame, const struct stub *stub,
                                 const struct watched_function *function)
{
    (void)stub;
    (void)function;
    if (stream_destroyed(frame->arguments[0]))
        frame->destroyed = frame->arguments[0];
}

static void end_stream_destroy(struct call_frame *frame, const struct stub *stub,
                               const struct watched_function *function)
{
    (void)stub;
    (void)function;
    if ((uint32_t)frame->result != 0)
        stream_created(frame->destroyed); /* refused: it lives on */
}

static const struct {
    hook *begin;
    hook *end;
} hooks[FUNCTION_KINDS] = {
    [BATCH_COPY] = {call_begin, end_copy},
    [SINGLE_COPY] = {call_begin, end_copy},
    [STREAM_CREATE] = {NULL, end_stream_create},
    [STREAM_DESTROY] = {begin_stream_destroy, end_stream_destroy},
    [LOOKUP] = {NULL, lookup_end},
};

uint64_t stub_enter(struct call_frame *frame)
{
    const struct stub *stub = stub_numbered(frame->stub);
    const struct watched_function *function = &watched_functions[stub->function];
    frame->call = NULL;
    frame->site = NULL;
    frame->claim = 0;
    frame->destroyed = 0;
    if (hooks[function->kind].begin != NULL)
        hooks[function->kind].begin(frame, stub, function);
    return stub->real;
}

void stub_leave(struct call_frame *frame)
{
    const struct stub *stub = stub_numbered(frame->stub);
    const struct watched_function *function = &watched_functions[stub->function];
    hooks[function->kind].end(frame, stub, function);
}
