/* Implements calls.h without locks: places are claimed by compare-and-swap, records published last. */
#include "calls.h"

#include "arguments.h"
#include "arity.h"
#include "evidence.h"
#include "faults.h"
#include "injections.h"
#include "machine.h"
#include "objects.h"
#include "tables.h"
#include "trace.h"

static uint64_t outcome(enum evidence_progress progress, uint32_t code)
{
    return (uint64_t)progress << 32 | code;
}

struct caller caller_of(const struct call_frame *frame)
{
    uint64_t address = frame->return_address;
    if (address == (uint64_t)stub_after_call) {
        /* A watched function ended by jumping to this one: its own frame lies right above our stack words. */
        const struct call_frame *outer = (const struct call_frame *)(frame->stack + STACK_WORDS);
        address = stub_numbered(outer->stub)->real;
    }
    uint16_t object = object_at(address);
    return (struct caller){object, object_offset(object, address)};
}

static bool claim_place(struct evidence_call *call)
{
    uint64_t before = atomic_load_explicit(&call->outcome, memory_order_relaxed);
    uint64_t progress = before >> 32;
    return (progress == CALL_EMPTY || progress == CALL_RETURNED) &&
           atomic_compare_exchange_strong(&call->outcome, &before, outcome(CALL_WRITING, 0));
}

/* A record to fill, or NULL where all places of the ring hold calls in flight. */
static struct evidence_call *journal_place(struct evidence_journal *journal)
{
    uint64_t number = atomic_fetch_add_explicit(&journal->begun, 1, memory_order_relaxed);
    if (number < EVIDENCE_FIRST)
        return claim_place(&journal->first[number]) ? &journal->first[number] : NULL;
    for (uint64_t i = 0; i < EVIDENCE_LAST; i++) {
        struct evidence_call *call = &journal->last[(number + i) % EVIDENCE_LAST];
        if (claim_place(call))
            return call;
    }
    return NULL;
}

static struct evidence_site *site_for(struct evidence_slot *slot, const struct evidence_call *call)
{
    uint64_t key = (uint64_t)call->function << 48 | (uint64_t)call->caller << 32 |
                   (uint64_t)call->callee << 16 | (uint64_t)call->given << 8 | 1;
    uint64_t start = key * UINT64_C(0x9e3779b97f4a7c15) >> 32;
    for (uint64_t probe = 0; probe < EVIDENCE_SITES; probe++) {
        struct evidence_site *site = &slot->sites[(start + probe) % EVIDENCE_SITES];
        uint64_t there = atomic_load_explicit(&site->key, memory_order_relaxed);
        if (there == key || (there == 0 && (atomic_compare_exchange_strong(&site->key, &there, key) ||
                                            there == key)))
            return site;
    }
    return NULL;
}

static void describe(struct evidence_call *call, const struct call_frame *frame, const struct stub *stub,
                     const struct watched_function *function)
{
    struct caller caller = caller_of(frame);
    call->function = stub->function;
    call->caller = caller.object;
    call->caller_offset = caller.offset;
    call->callee = atomic_load_explicit(&stub->owner, memory_order_relaxed);
    if (call->callee != caller.object)
        object_passes_on(call->callee);
    call->callee_offset = object_offset(call->callee, stub->real);
    call->thread = thread_pointer();
    if (function->kind == BATCH_COPY) {
        call->given = arity_of(frame, function);
        call->flags = call->given != ARITY_UNKNOWN ? CALL_HAS_STREAM : 0;
        call->stream = call->flags != 0 ? arity_stream(frame, call->given) : 0;
        call->count = call_argument(frame, function->count_at);
    } else {
        call->given = ARITY_UNKNOWN;
        call->flags = CALL_HAS_STREAM;
        call->stream = call_argument(frame, function->stream_at);
        call->count = 1;
    }
}

/* Copies the described call and publishes it by the outcome, last. */
static void publish(struct evidence_call *record, const struct evidence_call *call)
{
    record->sequence = call->sequence;
    record->function = call->function;
    record->caller = call->caller;
    record->callee = call->callee;
    record->given = call->given;
    record->flags = call->flags;
    record->caller_offset = call->caller_offset;
    record->callee_offset = call->callee_offset;
    record->stream = call->stream;
    record->count = call->count;
    record->thread = call->thread;
    atomic_store_explicit(&record->outcome, outcome(CALL_IN_FLIGHT, 0), memory_order_release);
}

static void count_call(struct evidence_site *site, uint64_t descriptors)
{
    atomic_fetch_add_explicit(&site->calls, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&site->descriptors, descriptors, memory_order_relaxed);
    uint64_t largest = atomic_load_explicit(&site->largest, memory_order_relaxed);
    while (descriptors > largest && !atomic_compare_exchange_weak(&site->largest, &largest, descriptors))
        ;
}

void call_begin(struct call_frame *frame, const struct stub *stub, const struct watched_function *function,
                struct slot_lease lease)
{
    struct evidence_slot *slot = lease.slot;
    if (slot == NULL)
        return;
    faults_survived(&slot->fault);
    struct evidence_call call;
    describe(&call, frame, stub, function);
    if (injection_replaces_call(frame))
        call.flags |= CALL_INJECTED | arguments_judge(slot, frame, function, &call);
    call.sequence = atomic_fetch_add(&slot->sequence, 1) + 1;
    frame->claim = lease.claim;
    frame->site = site_for(slot, &call);
    if (frame->site != NULL)
        count_call(frame->site, call.count);
    else
        tables_note_loss();
    frame->call = journal_place(function->kind == BATCH_COPY ? &slot->batch : &slot->per_copy);
    if (frame->call != NULL)
        publish(frame->call, &call);
    if (function->kind == BATCH_COPY)
        trace_batch(frame, &call, lease);
}

void call_end(struct call_frame *frame)
{
    if ((frame->call == NULL && frame->site == NULL) || slot_here().claim != frame->claim)
        return;
    uint32_t code = (uint32_t)frame->result;
    if (code != 0 && frame->call != NULL && watched_functions[frame->call->function].kind == BATCH_COPY)
        trace_returned(frame->call->sequence, code, slot_here());
    if (frame->call != NULL)
        atomic_store_explicit(&frame->call->outcome, outcome(CALL_RETURNED, code), memory_order_release);
    if (frame->site == NULL)
        return;
    if (code != 0) {
        atomic_store_explicit(&frame->site->last_error, code, memory_order_relaxed);
        atomic_fetch_add_explicit(&frame->site->errors, 1, memory_order_relaxed);
    }
    atomic_fetch_add_explicit(&frame->site->returned, 1, memory_order_relaxed);
}
