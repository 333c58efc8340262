/* Implements version_queries.h. All forms take the address of an int and nothing else. */
#include "version_queries.h"

#include <stddef.h>

#include "calls.h"
#include "evidence.h"
#include "injections.h"
#include "tables.h"

static struct evidence_version_query describe(const struct call_frame *frame, const struct stub *stub)
{
    struct caller caller = caller_of(frame);
    return (struct evidence_version_query){
        .function = stub->function,
        .caller = caller.object,
        .callee = atomic_load_explicit(&stub->owner, memory_order_relaxed),
        .caller_offset = caller.offset,
    };
}

void version_query_begin(struct call_frame *frame, const struct stub *stub,
                         const struct watched_function *function, struct slot_lease lease)
{
    (void)function;
    (void)lease;
    if (!injection_ends_call(frame))
        return;
    struct evidence_version_query query = describe(frame, stub);
    query.injected = INJECTED_END;
    tables_add(VERSION_QUERIES, &query.entry);
}

void version_query_end(struct call_frame *frame, const struct stub *stub,
                       const struct watched_function *function)
{
    (void)function;
    const int32_t *version = (const int32_t *)frame->arguments[0];
    struct evidence_version_query query = describe(frame, stub);
    query.injected = injection_replaces_call(frame) ? INJECTED_ANSWER : 0;
    query.code = (int32_t)frame->result;
    if (query.code == 0 && version != NULL && query.injected == 0)
        query.version = *version;
    tables_add(VERSION_QUERIES, &query.entry);
}
