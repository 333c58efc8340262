/*
 * The call stubs, AAPCS64. A stub loads its number into x16, which no caller expects to keep, and branches to
 * the common path, which does what that of stubs_x86_64.S does. No vector register is saved because none is
 * touched, here or in the C code: a save of q0 to q7 would cut what is longer, as by SVE.
 *
 * Unwinders walk through by the CFI below or by x29, which points to a frame record as in any function.
 */
#include "machine.h"

#define RESULT_AND_HIGH FRAME_RESULT
#define STACK_BYTES (STACK_WORDS * 8)
#define CALLERS_STACK 16 /* from x29, behind the frame record */

/* Where a branch through a register may lead (BTI); a hint that older processors ignore. */
#define LANDING_PAD hint #34 /* bti c */

    .text
    .hidden stub_code
    .hidden stub_after_call
    .hidden stub_enter
    .hidden stub_leave
    .hidden stub_injected_answer
    .hidden stub_injected_crash
    .globl stub_code
    .globl stub_after_call
    .globl stub_injected_answer
    .globl stub_injected_crash

    .balign STUB_BYTES
    .type stub_code, %function
stub_code:
    .cfi_startproc
    .set number, 0
    .rept STUBS
    .balign STUB_BYTES
    LANDING_PAD
    mov w16, #number
    b cudabatch_recorded_call
    .set number, number + 1
    .endr
    .cfi_endproc
    .size stub_code, . - stub_code

    .macro restore_registers
    ldp x0, x1, [x29, #(0 - FRAME_SIZE)]
    ldp x2, x3, [x29, #(16 - FRAME_SIZE)]
    ldp x4, x5, [x29, #(32 - FRAME_SIZE)]
    ldp x6, x7, [x29, #(48 - FRAME_SIZE)]
    ldr x8, [x29, #(64 - FRAME_SIZE)]
    .endm

    .macro leave
    mov sp, x29
    ldp x29, x30, [sp], #16
    .cfi_def_cfa sp, 0
    .cfi_restore x29
    .cfi_restore x30
    .endm

    .balign 16
    .type cudabatch_recorded_call, %function
cudabatch_recorded_call: /* the name that a backtrace shows */
    .cfi_startproc
    stp x29, x30, [sp, #-16]!
    .cfi_def_cfa_offset 16
    .cfi_offset x29, -16
    .cfi_offset x30, -8
    mov x29, sp
    .cfi_def_cfa_register x29
    sub sp, sp, #FRAME_SIZE
    stp x0, x1, [sp, #0]
    stp x2, x3, [sp, #16]
    stp x4, x5, [sp, #32]
    stp x6, x7, [sp, #48]
    stp x8, x16, [sp, #64] /* x16 is the frame's `stub` */
    mov x0, sp
    bl stub_enter
    mov x16, x0
    cbnz x1, .Lpass
    /* The caller's stack words. Reading past the arguments is safe: the caller's own frame, or its caller's,
     * lies there. */
    sub sp, sp, #STACK_BYTES
    ldp x0, x1, [x29, #CALLERS_STACK]
    ldp x2, x3, [x29, #(CALLERS_STACK + 16)]
    ldp x4, x5, [x29, #(CALLERS_STACK + 32)]
    ldp x6, x7, [x29, #(CALLERS_STACK + 48)]
    stp x0, x1, [sp, #0]
    stp x2, x3, [sp, #16]
    stp x4, x5, [sp, #32]
    stp x6, x7, [sp, #48]
    restore_registers
    blr x16
stub_after_call:
    add sp, sp, #STACK_BYTES
    stp x0, x1, [sp, #RESULT_AND_HIGH]
    mov x0, sp
    bl stub_leave
    mov x16, x0
    cbnz x0, .Lpass
    ldp x0, x1, [sp, #RESULT_AND_HIGH]
    .cfi_remember_state
    leave
    ret
    .cfi_restore_state
.Lpass: /* the callee finds the caller's own return address; x16 keeps the branch fit for a landing pad */
    restore_registers
    leave
    br x16
    .cfi_endproc
    .size cudabatch_recorded_call, . - cudabatch_recorded_call

    .balign 16
    .type stub_injected_answer, %function
stub_injected_answer: /* called by the common path only, so x29 points behind its frame */
    .cfi_startproc
    LANDING_PAD
    ldr x0, [x29, #(FRAME_RESULT - FRAME_SIZE)]
    ret
    .cfi_endproc
    .size stub_injected_answer, . - stub_injected_answer

    .balign 16
    .type stub_injected_crash, %function
stub_injected_crash:
    .cfi_startproc
    LANDING_PAD
    mov x0, #0
    ldr w0, [x0] /* nothing is ever mapped there */
    udf #0
    .cfi_endproc
    .size stub_injected_crash, . - stub_injected_crash

    /* Marks the object as fit for BTI: GNU_PROPERTY_AARCH64_FEATURE_1_AND with its first bit. */
    .section .note.gnu.property, "a"
    .balign 8
    .word 4, 16, 5
    .asciz "GNU"
    .word 0xc0000000, 4, 1, 0

    .section .note.GNU-stack, "", %progbits
