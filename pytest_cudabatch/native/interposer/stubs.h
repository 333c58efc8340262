/*
 * The pool of call stubs: code addresses handed out in place of watched functions, one for each pair of a
 * function and its real address. And the frame that a stub builds around the real call.
 */
#ifndef CUDABATCH_STUBS_H
#define CUDABATCH_STUBS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum { STUBS = 256, STUB_BYTES = 16, STACK_WORDS = 8 };

struct stub {
    _Atomic uint32_t state; /* enum evidence_state */
    uint16_t function;
    _Atomic uint16_t owner; /* object of `real`; judged again at each binding, as libraries come and go */
    uint64_t real;
};

/* Lies on the caller's stack from the stub's entry to its return; stubs_x86_64.S knows the offsets. */
struct call_frame {
    uint64_t arguments[6]; /* parameters 1 to 6: rdi, rsi, rdx, rcx, r8, r9 */
    uint64_t rax;          /* at entry, passed on */
    uint64_t r10;
    uint64_t stub; /* its number */
    uint64_t result;
    uint64_t result_high;          /* rdx */
    struct evidence_call *call;    /* the record to complete; NULL: none */
    struct evidence_site *site;    /* the counters to complete; NULL: none */
    uint64_t claim;                /* of the slot that both lie in */
    uint64_t destroyed;            /* the live stream handle that this call destroys, or 0 */
    uint16_t effect;               /* enum evidence_effect of the rule whose turn it is; 0: none */
    uint16_t rule;                 /* its index in the slot */
    uint32_t delay;                /* milliseconds to wait before the call */
    uint64_t caller_frame_pointer; /* rbp */
    uint64_t return_address;
    uint64_t stack[STACK_WORDS]; /* the caller's: parameters 7, 8, 9 and what lies behind */
};

_Static_assert(offsetof(struct call_frame, stub) == 64, "as in stubs_x86_64.S");
_Static_assert(offsetof(struct call_frame, result) == 72, "as in stubs_x86_64.S");
_Static_assert(offsetof(struct call_frame, caller_frame_pointer) == 128, "as in stubs_x86_64.S");
_Static_assert(offsetof(struct call_frame, stack) == 144, "as in stubs_x86_64.S");

/* Parameter `index`, from 0, of the call: in a register or in one of the stack words. */
static inline uint64_t call_argument(const struct call_frame *frame, unsigned index)
{
    enum { REGISTERS = 6 };
    return index < REGISTERS ? frame->arguments[index] : frame->stack[index - REGISTERS];
}

/* The address to hand out for `real`; `real` itself where the pool is empty, which is noted as a loss. */
uint64_t stub_for(uint16_t function, uint64_t real);

/* The stub that an address belongs to, or NULL. */
struct stub *stub_at(uint64_t address);

struct stub *stub_numbered(uint64_t number);

/* In stubs_x86_64.S: the stubs themselves, and where the real function returns to. */
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
