/* Implements symbol_lookups.h. Both functions take (handle, name, ...) and return an address. */
#include "symbol_lookups.h"

#include <stddef.h>

#include "calls.h"
#include "evidence.h"
#include "injections.h"
#include "objects.h"
#include "tables.h"

enum { NAME = 1 };

static uint16_t function_of(const struct call_frame *frame)
{
    const char *name = (const char *)call_argument(frame, NAME);
    uint16_t function = name != NULL ? function_named(name) : NOT_WATCHED;
    bool is_copy_of_itself = function != NOT_WATCHED && watched_functions[function].kind == SYMBOL_LOOKUP;
    return is_copy_of_itself ? NOT_WATCHED : function;
}

bool symbol_lookup_matters(const struct call_frame *frame)
{
    return function_of(frame) != NOT_WATCHED;
}

static void record(const struct call_frame *frame, const struct dlsym_answer *answer, uint64_t real)
{
    struct evidence_binding binding = {
        .function = answer->function,
        .caller = caller_of(frame).object,
        .callee = object_at(real),
        .via = answer->via,
    };
    binding.callee_offset = object_offset(binding.callee, real);
    tables_add(BINDINGS, &binding.entry);
}

bool symbol_lookup_end(struct call_frame *frame)
{
    const struct stub *inner = stub_at(frame->result);
    uint64_t real = inner != NULL ? inner->real : frame->result;
    struct dlsym_answer answer = {
        .function = inner != NULL ? inner->function : function_of(frame),
        .address = real,
        .via = EVIDENCE_VIA_DLSYM,
    };
    if (real == 0)
        return true;
    if (watched_functions[answer.function].kind == BATCH_COPY)
        injection_into_dlsym(frame->return_address, &answer);
    record(frame, &answer, answer.address != 0 ? answer.address : real);
    frame->result = answer.address != 0 ? stub_for(answer.function, answer.address) : 0;
    return false;
}
