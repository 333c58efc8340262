/*
 * The return from a signal handler, x86-64. Without unwind information on purpose: unwinders and debuggers know
 * a signal's frame by these very bytes.
 */
#include <cet.h>

    .text
    .hidden fault_handler_return
    .globl fault_handler_return

    .balign 16
    .type fault_handler_return, @function
    nop /* a return address belongs to the function of the byte before it */
fault_handler_return:
    movq $15, %rax /* rt_sigreturn */
    syscall
    .size fault_handler_return, . - fault_handler_return

    .section .note.GNU-stack, "", @progbits
