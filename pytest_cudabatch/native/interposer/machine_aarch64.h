/* machine.h for aarch64, AAPCS64, little endian. */
#define REGISTER_ARGUMENTS 8  /* x0 to x7 */
#define REGISTERS_PASSED_ON 1 /* x8, where a result lies that registers do not hold */

#define FRAME_STUB 72
#define FRAME_RESULT 80
#define FRAME_SIZE 144

#ifndef __ASSEMBLER__

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline long system_call(long number, long a, long b, long c, long d, long e, long f)
{
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;
    __asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
    return x0;
}

static inline uint64_t thread_pointer(void)
{
    uint64_t pointer;
    __asm__("mrs %0, tpidr_el0" : "=r"(pointer));
    return pointer;
}

enum {
    RELOCATION_JUMP_SLOT = R_AARCH64_JUMP_SLOT,
    RELOCATION_TABLE = R_AARCH64_GLOB_DAT,
    RELOCATION_DATA = R_AARCH64_ABS64,
};

/* The dynamic linker accepts none that is. */
static inline bool relocation_is_embedded(uint64_t type)
{
    (void)type;
    return false;
}

#define INSTRUCTION_OF(context) ((uint64_t)(context)->uc_mcontext.pc)

#define HANDLER_FLAGS 0 /* the kernel has its own code to return to, in the vDSO */
#define HANDLER_RETURN NULL

#endif
