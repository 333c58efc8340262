/*
 * Implements lookups.h. All forms take (name, address of the answer, ...); where version and flags lie
 * is in the table of functions.
 */
#include "lookups.h"

#include "calls.h"
#include "evidence.h"
#include "injections.h"
#include "memory.h"
#include "memory_functions.h"
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

/* What a look-up found: a watched function and its real address, 0 for none. */
struct answer {
    uint16_t function;
    uint64_t real;
};

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
                   struct answer answer, enum evidence_injected injected)
{
    struct caller caller = caller_of(frame);
    struct evidence_lookup lookup = {
        .function = stub->function,
        .caller = caller.object,
        .found = answer.real != 0 ? object_at(answer.real) : EVIDENCE_NO_OBJECT,
        .target = answer.function,
        .version = request->asked,
        .code = injected != INJECTED_END ? (int32_t)frame->result : 0,
        .flags = request->flags,
        .caller_offset = caller.offset,
        .injected = injected,
    };
    lookup.found_offset = answer.real != 0 ? object_offset(lookup.found, answer.real) : 0;
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

/* The function that the request is about; NOT_WATCHED for any other name, and for none. */
static uint16_t function_requested(const struct request *request)
{
    return request->name != NULL ? function_asked(request->name, request->meant, request->per_thread)
                                 : NOT_WATCHED;
}

void lookup_begin(struct call_frame *frame, const struct stub *stub, const struct watched_function *function,
                  struct slot_lease lease)
{
    (void)lease;
    struct request request = request_of(frame, stub, function);
    struct answer none = {.function = function_requested(&request)};
    if (injection_ends_call(frame) && none.function != NOT_WATCHED)
        record(frame, stub, &request, none, INJECTED_END);
}

/* Replaces the answer by its counterpart where a rule asks for that and there is one. */
static bool divert(const struct call_frame *frame, struct answer *answer)
{
    if (frame->effect != RULE_FINDS_OTHER_ABI || answer->real == 0)
        return false;
    struct answer other = {.function = function_of_other_abi(answer->function)};
    if (other.function == NOT_WATCHED)
        return false;
    other.real = object_symbol(answer->real, watched_functions[other.function].name);
    if (other.real == 0)
        return false;
    injection_took_effect(frame);
    *answer = other;
    return true;
}

/* Watches a function that gives or takes memory, which is no part of the evidence. */
static void watch_memory_function(const struct call_frame *frame, const struct request *request)
{
    uint64_t *given = (uint64_t *)frame->arguments[ANSWER];
    if (request->name == NULL || given == NULL || (uint32_t)frame->result != 0 || *given == 0)
        return;
    uint16_t function = memory_function_asked(request->name, request->per_thread);
    if (function != NOT_WATCHED && stub_at(*given) == NULL)
        *given = stub_for(function, *given);
}

void lookup_end(struct call_frame *frame, const struct stub *stub, const struct watched_function *function)
{
    struct request request = request_of(frame, stub, function);
    struct answer answer = {.function = function_requested(&request)};
    if (answer.function == NOT_WATCHED) {
        watch_memory_function(frame, &request);
        return;
    }
    answer.real = real_answer(frame);
    uint64_t *given = (uint64_t *)frame->arguments[ANSWER];
    const struct stub *inner = answer.real != 0 ? stub_at(*given) : NULL;
    if (inner != NULL)
        answer.function = inner->function; /* the inner look-up was asked with the exact version */
    bool diverted = divert(frame, &answer);
    if (diverted || (inner == NULL && answer.real != 0))
        *given = stub_for(answer.function, answer.real);
    record(frame, stub, &request, answer,
           diverted || injection_replaces_call(frame) ? INJECTED_ANSWER : (enum evidence_injected)0);
}
