/*
 * The pool of call stubs: code addresses handed out in place of watched functions, one for each pair of a
 * function and its real address. And the frame that a stub builds around the real call.
 */
#ifndef CUDABATCH_STUBS_H
#define CUDABATCH_STUBS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "machine.h"

struct stub {
    _Atomic uint32_t state; /* enum evidence_state */
    uint16_t function;
    _Atomic uint16_t owner; /* object of `real`; judged again at each binding, as libraries come and go */
    uint64_t real;
};

/* Lies on the caller's stack from the stub's entry to its return; stubs_*.S knows the offsets. */
struct call_frame {
    uint64_t arguments[REGISTER_ARGUMENTS];
    uint64_t passed_on[REGISTERS_PASSED_ON];
    uint64_t stub; /* its number */
    uint64_t result;
    uint64_t result_high;          /* of a result of two registers */
    struct evidence_call *call;    /* the record to complete; NULL: none */
    struct evidence_site *site;    /* the counters to complete; NULL: none */
    uint64_t claim;                /* of the slot that both lie in */
    uint64_t destroyed;            /* the live stream handle that this call destroys, or 0 */
    uint16_t effect;               /* enum evidence_effect of the rule whose turn it is; 0: none */
    uint16_t rule;                 /* its index in the slot */
    uint32_t delay;                /* milliseconds to wait before the call */
    _Alignas(16) uint64_t caller_frame_pointer;
    uint64_t return_address;
    uint64_t stack[STACK_WORDS]; /* the caller's: the parameters that lie there, and what lies behind */
};

_Static_assert(offsetof(struct call_frame, stub) == FRAME_STUB, "as in stubs_*.S");
_Static_assert(offsetof(struct call_frame, result) == FRAME_RESULT, "as in stubs_*.S");
_Static_assert(offsetof(struct call_frame, caller_frame_pointer) == FRAME_SIZE, "as in stubs_*.S");
_Static_assert(offsetof(struct call_frame, stack) == FRAME_SIZE + 16, "a frame pointer, a return address");

/* Parameter `index`, from 0, of the call: in a register or in one of the stack words. */
static inline uint64_t call_argument(const struct call_frame *frame, unsigned index)
{
    return index < REGISTER_ARGUMENTS ? frame->arguments[index] : frame->stack[index - REGISTER_ARGUMENTS];
}

/* The address to hand out for `real`; `real` itself where the pool is empty, which is noted as a loss. */
uint64_t stub_for(uint16_t function, uint64_t real);

/* The stub that an address belongs to, or NULL. */
struct stub *stub_at(uint64_t address);

struct stub *stub_numbered(uint64_t number);

/* In stubs_*.S: the stubs themselves, and where the real function returns to. */
extern const char stub_code[];
extern const char stub_after_call[];

/* What to call in place of the real function: one returns the frame's `result`, the others do not return. */
extern const char stub_injected_answer[];
void stub_injected_crash(void);
void stub_injected_hang(void); /* in hooks.c */

/* What to call, and whether to return to the stub or, as if it had never been there, to its caller. */
struct stub_target {
    uint64_t address;
    uint64_t passes; /* 1: jump there and forget the call */
};

/* In hooks.c, called by the stubs: before and after the real function. The latter gives 0, or the address of a
 * function to jump to with the call's parameters, whose answer is the call's. */
struct stub_target stub_enter(struct call_frame *frame);
uint64_t stub_leave(struct call_frame *frame);

#endif
