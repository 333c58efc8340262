/* What happens around a call, by kind of function: the two entry points of the call stubs. */
#include <stddef.h>

#include "calls.h"
#include "functions.h"
#include "injections.h"
#include "lookups.h"
#include "memory_functions.h"
#include "slot.h"
#include "streams.h"
#include "stubs.h"
#include "symbol_lookups.h"
#include "system_calls.h"
#include "trace.h"
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
    if ((uint32_t)frame->result == 0 && handle != NULL && !injection_replaces_call(frame))
        stream_created(*handle);
}

static void begin_stream_destroy(struct call_frame *frame, const struct stub *stub,
                                 const struct watched_function *function, struct slot_lease lease)
{
    (void)stub;
    (void)function;
    trace_event(TRACE_STREAM_GONE, frame->arguments[0], 0, 0, lease);
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
    [LOOKUP] = {lookup_begin, lookup_end},
    [SYMBOL_LOOKUP] = {NULL, NULL}, /* below: these may leave their stub */
    [VERSION_QUERY] = {version_query_begin, version_query_end},
    [MEMORY] = {memory_begin, memory_end},
};

static const struct watched_function *function_of(const struct stub *stub)
{
    return stub->function < MEMORY_FUNCTIONS ? &watched_functions[stub->function]
                                             : memory_function(stub->function);
}

struct stub_target stub_enter(struct call_frame *frame)
{
    const struct stub *stub = stub_numbered(frame->stub);
    const struct watched_function *function = function_of(stub);
    if (function->kind == SYMBOL_LOOKUP && !symbol_lookup_matters(frame))
        return (struct stub_target){stub->real, 1};
    struct slot_lease lease = slot_needed();
    frame->call = NULL;
    frame->site = NULL;
    frame->claim = 0;
    frame->destroyed = 0;
    frame->effect = 0;
    frame->delay = 0;
    if (function->kind != MEMORY && injections_requested(lease.slot))
        injection_into_call(lease.slot, frame, stub, function);
    if (hooks[function->kind].begin != NULL)
        hooks[function->kind].begin(frame, stub, function, lease);
    if (frame->delay != 0)
        system_sleep(frame->delay); /* recorded by now, so in flight */
    return (struct stub_target){injection_replaces_call(frame) ? injection_replacement(frame) : stub->real, 0};
}

void stub_injected_hang(void)
{
    system_wait_forever();
}

uint64_t stub_leave(struct call_frame *frame)
{
    const struct stub *stub = stub_numbered(frame->stub);
    const struct watched_function *function = function_of(stub);
    if (function->kind == SYMBOL_LOOKUP)
        return symbol_lookup_end(frame) ? stub->real : 0;
    hooks[function->kind].end(frame, stub, function);
    return 0;
}
