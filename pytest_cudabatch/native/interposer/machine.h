/*
 * What depends on the processor's architecture, besides stubs_*.S: one machine_*.h for each, all with the same
 * names. The assembler reads this too, and sees the numbers that stubs and C code share.
 *
 *   REGISTER_ARGUMENTS         parameters of a call that lie in registers; the next one is the first stack word
 *   REGISTERS_PASSED_ON        other registers that a callee may expect to have as its caller left them
 *   FRAME_STUB, FRAME_RESULT, FRAME_SIZE: offsets in struct call_frame (stubs.h), asserted there
 *   system_call                enters the kernel
 *   thread_pointer             tells threads apart, as `thread` in evidence
 *   RELOCATION_JUMP_SLOT, RELOCATION_TABLE, RELOCATION_DATA: of pointers, in a PLT's table, a table of addresses
 *                              and data; computed alike, so that they can stand for each other
 *   relocation_is_embedded     whether a type puts a symbol's address or distance elsewhere than into a pointer
 *   INSTRUCTION_OF             the instruction that a signal's ucontext_t is about
 *   HANDLER_FLAGS, HANDLER_RETURN: what the kernel needs to return from a signal handler
 */
#ifndef CUDABATCH_MACHINE_H
#define CUDABATCH_MACHINE_H

#define STUBS 256
#define STUB_BYTES 16
#define STACK_WORDS 8 /* of the caller's, which a stub copies */

#if defined(__x86_64__) && defined(__LP64__)
#include "machine_x86_64.h"
#elif defined(__aarch64__) && defined(__LP64__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#include "machine_aarch64.h"
#else
#error "the interposer has no call stubs for this architecture"
#endif

#endif
