/*
 * Implements lookups.h. All forms take (name, address of the answer, ...); where version and flags lie
 * is in the table of functions.
 */
#include "lookups.h"

#include "calls.h"
#include "evidence.h"
#include "memory.h"
#include "objects.h"
#include "tables.h"

enum {
    NAME = 0,
    ANSWER = 1,
    PER_THREAD_FLAG = 2, /* CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM */
    SYMBOL_NOT_FOUND = 1 /* CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND, cudaDriverEntryPointSymbolNotFound */
};

struct request {
    const char *name;
    uint32_t asked; /* the version parameter, 0 without one */
    uint32_t meant; /* the version that decides: without a parameter, the runtime's own */
    uint64_t flags;
    bool per_thread;
};

static struct request request_of(const struct call_frame *frame, const struct stub *stub,
                                 const struct watched_function *function)
{
    struct request request = {
        .name = (const char *)frame->arguments[NAME],
        .flags = frame->arguments[function->flags_at],
    };
    if (function->version_at == NO_PARAMETER) {
        request.meant = object_runtime_major(atomic_load(&stub->owner)) * 1000;
    } else {
        request.asked = (uint32_t)frame->arguments[function->version_at];
        request.meant = request.asked;
    }
    request.per_thread = request.flags == PER_THREAD_FLAG || (request.flags == 0 && function->per_thread);
    return request;
}

/* The real address answered; 0 for none. An answer that passed through an inner look-up is a stub by now. */
static uint64_t real_answer(const struct call_frame *frame)
{
    const uint64_t *answer = (const uint64_t *)frame->arguments[ANSWER];
    if ((uint32_t)frame->result != 0 || answer == NULL)
        return 0;
    const struct stub *inner = stub_at(*answer);
    return inner != NULL ? inner->real : *answer;
}

static void record(const struct call_frame *frame, const struct stub *stub, const struct request *request,
                   uint16_t target, uint64_t real)
{
    struct caller caller = caller_of(frame);
    struct evidence_lookup lookup = {
        .function = stub->function,
        .caller = caller.object,
        .found = real != 0 ? object_at(real) : EVIDENCE_NO_OBJECT,
        .target = target,
        .version = request->asked,
        .code = (int32_t)frame->result,
        .flags = request->flags,
        .caller_offset = caller.offset,
        .injected = frame->injected,
    };
    lookup.found_offset = real != 0 ? object_offset(lookup.found, real) : 0;
    text_copy(lookup.name, sizeof lookup.name, request->name);
    tables_add(LOOKUPS, &lookup.entry);
}

bool lookup_asks_for_batch(const struct call_frame *frame)
{
    const char *name = (const char *)frame->arguments[NAME];
    uint16_t newest = name != NULL ? function_asked(name, UINT32_MAX, false) : NOT_WATCHED;
    return newest != NOT_WATCHED && watched_functions[newest].kind == BATCH_COPY;
}

void lookup_refuse(const struct call_frame *frame, const struct watched_function *function, bool not_found)
{
    uint64_t *answer = (uint64_t *)frame->arguments[ANSWER];
    if (answer != NULL)
        *answer = 0;
    if (!not_found || function->status_at == NO_PARAMETER)
        return;
    int32_t *status = (int32_t *)frame->arguments[function->status_at];
    if (status != NULL)
        *status = SYMBOL_NOT_FOUND;
}

void lookup_end(struct call_frame *frame, const struct stub *stub, const struct watched_function *function)
{
    struct request request = request_of(frame, stub, function);
    if (request.name == NULL)
        return;
    uint16_t target = function_asked(request.name, request.meant, request.per_thread);
    if (target == NOT_WATCHED)
        return;
    uint64_t real = real_answer(frame);
    uint64_t *answer = (uint64_t *)frame->arguments[ANSWER];
    const struct stub *inner = real != 0 ? stub_at(*answer) : NULL;
    if (inner != NULL)
        target = inner->function; /* the inner look-up was asked with the exact version */
    else if (real != 0)
        *answer = stub_for(target, real);
    record(frame, stub, &request, target, real);
}
