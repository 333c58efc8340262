/* What happens around a call, by kind of function: the two entry points of the call stubs. */
#include <stddef.h>

#include "calls.h"
#include "functions.h"
#include "injections.h"
#include "lookups.h"
#include "slot.h"
#include "streams.h"
#include "stubs.h"
#include "version_queries.h"

typedef void begin_hook(struct call_frame *frame, const struct stub *stub,
                        const struct watched_function *function, struct slot_lease lease);
typedef void end_hook(struct call_frame *frame, const struct stub *stub,
                      const struct watched_function *function);

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
    if ((uint32_t)frame->result == 0 && handle != NULL && !frame->injected)
        stream_created(*handle);
}

static void begin_stream_destroy(struct call_frame *frame, const struct stub *stub,
                                 const struct watched_function *function, struct slot_lease lease)
{
    (void)stub;
    (void)function;
    (void)lease;
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
    begin_hook *begin;
    end_hook *end;
} hooks[FUNCTION_KINDS] = {
    [BATCH_COPY] = {call_begin, end_copy},
    [SINGLE_COPY] = {call_begin, end_copy},
    [STREAM_CREATE] = {NULL, end_stream_create},
    [STREAM_DESTROY] = {begin_stream_destroy, end_stream_destroy},
    [LOOKUP] = {NULL, lookup_end},
    [VERSION_QUERY] = {NULL, version_query_end},
};

uint64_t stub_enter(struct call_frame *frame)
{
    const struct stub *stub = stub_numbered(frame->stub);
    const struct watched_function *function = &watched_functions[stub->function];
    struct slot_lease lease = slot_here();
    frame->call = NULL;
    frame->site = NULL;
    frame->claim = 0;
    frame->destroyed = 0;
    frame->injected = injections_requested(lease.slot) &&
                      injection_into_call(lease.slot, frame, stub, function);
    if (hooks[function->kind].begin != NULL)
        hooks[function->kind].begin(frame, stub, function, lease);
    return frame->injected ? (uint64_t)stub_injected_answer : stub->real;
}

void stub_leave(struct call_frame *frame)
{
    const struct stub *stub = stub_numbered(frame->stub);
    const struct watched_function *function = &watched_functions[stub->function];
    hooks[function->kind].end(frame, stub, function);
}
