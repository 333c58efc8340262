/*
 * The call stubs, System V x86-64. A stub loads its number into r11, which no caller expects to keep, and
 * jumps to the common path. That builds a struct call_frame (stubs.h), asks stub_enter for the real
 * function (or for what a rule has in its place), calls it with all registers and the first eight stack words
 * as the caller left them, tells stub_leave, and returns what the real function returned. Either of the two may
 * also end the frame, so that a function is entered as if there were no stub. The C code touches no vector
 * register.
 *
 * Unwinders walk through by the CFI below or by rbp, which is set up as in any function.
 */
#include <cet.h> /* marks the object as fit for indirect-branch tracking and shadow stacks */

#include "machine.h"

#define RESULT_HIGH (FRAME_RESULT + 8)

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
    .type stub_code, @function
stub_code:
    .cfi_startproc
    .set number, 0
    .rept STUBS
    .balign STUB_BYTES
    _CET_ENDBR
    movl $number, %r11d
    jmp cudabatch_recorded_call
    .set number, number + 1
    .endr
    .cfi_endproc
    .size stub_code, . - stub_code

    .macro restore_registers
    movq (0 - FRAME_SIZE)(%rbp), %rdi
    movq (8 - FRAME_SIZE)(%rbp), %rsi
    movq (16 - FRAME_SIZE)(%rbp), %rdx
    movq (24 - FRAME_SIZE)(%rbp), %rcx
    movq (32 - FRAME_SIZE)(%rbp), %r8
    movq (40 - FRAME_SIZE)(%rbp), %r9
    movq (48 - FRAME_SIZE)(%rbp), %rax
    movq (56 - FRAME_SIZE)(%rbp), %r10
    .endm

    .balign 16
    .type cudabatch_recorded_call, @function
cudabatch_recorded_call: /* the name that a backtrace shows */
    .cfi_startproc
    pushq %rbp
    .cfi_def_cfa_offset 16
    .cfi_offset %rbp, -16
    movq %rsp, %rbp
    .cfi_def_cfa_register %rbp
    subq $FRAME_SIZE, %rsp
    movq %rdi, 0(%rsp)
    movq %rsi, 8(%rsp)
    movq %rdx, 16(%rsp)
    movq %rcx, 24(%rsp)
    movq %r8, 32(%rsp)
    movq %r9, 40(%rsp)
    movq %rax, 48(%rsp)
    movq %r10, 56(%rsp)
    movq %r11, FRAME_STUB(%rsp)
    movq %rsp, %rdi
    call stub_enter
    movq %rax, %r11
    testq %rdx, %rdx
    jnz .Lpass
    /* The caller's stack words lie above rbp and the return address; the last one is pushed first. Reading
     * past the arguments is safe: the caller's own frame, or its caller's, lies there. */
    pushq 72(%rbp)
    pushq 64(%rbp)
    pushq 56(%rbp)
    pushq 48(%rbp)
    pushq 40(%rbp)
    pushq 32(%rbp)
    pushq 24(%rbp)
    pushq 16(%rbp)
    restore_registers
    call *%r11
stub_after_call:
    addq $64, %rsp
    movq %rax, FRAME_RESULT(%rsp)
    movq %rdx, RESULT_HIGH(%rsp)
    movq %rsp, %rdi
    call stub_leave
    movq %rax, %r11
    testq %rax, %rax
    jnz .Lpass
    movq FRAME_RESULT(%rsp), %rax
    movq RESULT_HIGH(%rsp), %rdx
    .cfi_remember_state
    leave
    .cfi_def_cfa %rsp, 8
    ret
    .cfi_restore_state
.Lpass: /* the callee finds the caller's own return address */
    restore_registers
    leave
    .cfi_def_cfa %rsp, 8
    jmp *%r11
    .cfi_endproc
    .size cudabatch_recorded_call, . - cudabatch_recorded_call

    .balign 16
    .type stub_injected_answer, @function
stub_injected_answer: /* called by the common path only, so rbp points behind its frame */
    .cfi_startproc
    _CET_ENDBR
    movq (FRAME_RESULT - FRAME_SIZE)(%rbp), %rax
    ret
    .cfi_endproc
    .size stub_injected_answer, . - stub_injected_answer

    .balign 16
    .type stub_injected_crash, @function
stub_injected_crash:
    .cfi_startproc
    _CET_ENDBR
    movl 0, %eax /* nothing is ever mapped there */
    ud2
    .cfi_endproc
    .size stub_injected_crash, . - stub_injected_crash

    .section .note.GNU-stack, "", @progbits
