/* Implements version_queries.h. All forms take the address of an int and nothing else. */
#include "version_queries.h"

#include <stddef.h>

#include "calls.h"
#include "evidence.h"
#include "tables.h"

void version_query_end(struct call_frame *frame, const struct stub *stub,
                       const struct watched_function *function)
{
    (void)function;
    struct caller caller = caller_of(frame);
    const int32_t *version = (const int32_t *)frame->arguments[0];
    struct evidence_version_query query = {
        .function = stub->function,
        .caller = caller.object,
        .callee = atomic_load_explicit(&stub->owner, memory_order_relaxed),
        .injected = frame->injected != 0,
        .code = (int32_t)frame->result,
        .caller_offset = caller.offset,
    };
    if (query.code == 0 && version != NULL && !frame->injected)
        query.version = *version;
    tables_add(VERSION_QUERIES, &query.entry);
}
