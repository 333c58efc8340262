/* Calls a watched function with values in all vector argument and return registers and looks at them after. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

/* Number of bytes that differ, or -1 where the function is missing. The function itself uses none of them. */
int vectors_changed(void)
{
    void *function = dlsym(RTLD_DEFAULT, "cudaMemcpyAsync_ptsz");
    uint8_t before[256], after[256];
    int changed = 0;
    if (function == NULL)
        return -1;
    for (int i = 0; i < 256; i++)
        before[i] = (uint8_t)(i * 7 + 1);
#define EACH(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)
#define LOAD(n) "movups " #n "*16(%[before]), %%xmm" #n "\n"
#define STORE(n) "movups %%xmm" #n ", " #n "*16(%[after])\n"
    __asm__ volatile("movq %%rsp, %%r15\n"
                     "subq $128, %%rsp\n" /* past the red zone */
                     "andq $-16, %%rsp\n" EACH(LOAD) "call *%[function]\n" EACH(STORE) "movq %%r15, %%rsp\n"
                     :
                     : [before] "b"(before), [after] "r"(after), [function] "r"(function)
                     : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r15", "memory", "cc", "xmm0",
                       "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11",
                       "xmm12", "xmm13", "xmm14", "xmm15");
    for (int i = 0; i < 256; i++)
        changed += before[i] != after[i];
    return changed;
}
