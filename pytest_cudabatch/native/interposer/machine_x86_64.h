/* machine.h for x86-64, System V. */
#define REGISTER_ARGUMENTS 6  /* rdi, rsi, rdx, rcx, r8, r9 */
#define REGISTERS_PASSED_ON 2 /* rax and r10 */

#define FRAME_STUB 64
#define FRAME_RESULT 72
#define FRAME_SIZE 128

#ifndef __ASSEMBLER__

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>

static inline long system_call(long number, long a, long b, long c, long d, long e, long f)
{
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

static inline uint64_t thread_pointer(void)
{
    uint64_t pointer;
    __asm__("movq %%fs:0, %0" : "=r"(pointer));
    return pointer;
}

enum {
    RELOCATION_JUMP_SLOT = R_X86_64_JUMP_SLOT,
    RELOCATION_TABLE = R_X86_64_GLOB_DAT,
    RELOCATION_DATA = R_X86_64_64,
};

static inline bool relocation_is_embedded(uint64_t type)
{
    switch (type) {
    case R_X86_64_PC32:
    case R_X86_64_PLT32:
    case R_X86_64_PC64:
    case R_X86_64_32:
    case R_X86_64_32S: return true;
    default: return false;
    }
}

#define INSTRUCTION_OF(context) ((uint64_t)(context)->uc_mcontext.gregs[REG_RIP])

/* In faults_x86_64.S: returns from the handler. */
void fault_handler_return(void);

#define HANDLER_FLAGS 0x04000000 /* SA_RESTORER */
#define HANDLER_RETURN fault_handler_return

#endif
