/* Code that fails in one way each, at an instruction with a name; and handlers as programs have them. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#if defined(__x86_64__)
#define INSTRUCTION_OF(context) ((context)->uc_mcontext.gregs[REG_RIP])
#define READ "movb (%0), %%al"
#define WRITE "movb %%al, (%0)"
#define ILLEGAL "ud2"
#define CHANGED "rax"
#elif defined(__aarch64__)
#define INSTRUCTION_OF(context) ((context)->uc_mcontext.pc)
#define READ "ldrb w1, [%0]"
#define WRITE "strb w1, [%0]"
#define ILLEGAL "udf #0"
#define CHANGED "x1"
#endif

void fail_read(uint64_t address)
{
    __asm__ volatile(".globl at_read\nat_read: " READ ::"r"(address) : CHANGED, "memory");
}

void fail_write(uint64_t address)
{
    __asm__ volatile(".globl at_write\nat_write: " WRITE ::"r"(address) : "memory");
}

void fail_illegal(uint64_t unused)
{
    (void)unused;
    __asm__ volatile(".globl at_illegal\nat_illegal: " ILLEGAL);
}

#ifdef __x86_64__ /* elsewhere a division by zero has a result */
void fail_divide(uint64_t by)
{
    __asm__ volatile(".globl at_divide\nat_divide: divq %0" ::"r"(by), "a"(1), "d"(0));
}
#endif

void fail_jump(uint64_t address) { ((void (*)(void))address)(); }

void fail_abort(uint64_t unused)
{
    (void)unused;
    abort();
}

void fail_raise(uint64_t number) { raise((int)number); }

/* A page of a file that has become shorter. */
uint64_t page_past_the_end(const char *path)
{
    FILE *file = fopen(path, "w+");
    if (file == NULL || ftruncate(fileno(file), 4096) != 0)
        abort();
    void *page = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fileno(file), 0);
    if (page == MAP_FAILED || ftruncate(fileno(file), 0) != 0)
        abort();
    return (uint64_t)page;
}

uint64_t fail_overflow(uint64_t depth)
{
    volatile char room[4096];
    room[0] = (char)depth;
    return depth == UINT64_MAX ? 0 : fail_overflow(depth + 1) + (uint64_t)room[0];
}

static stack_t alternate;
static sigjmp_buf safe;
static const void *this_object = &safe;

static void say_and_exit(int number, siginfo_t *information, void *context)
{
    uint64_t instruction = (uint64_t)INSTRUCTION_OF((ucontext_t *)context);
    uint64_t here = (uint64_t)__builtin_frame_address(0), stack = (uint64_t)alternate.ss_sp;
    int has_data = number == SIGSEGV || number == SIGBUS;
    long address = (long)information->si_addr - (has_data ? 0 : (long)instruction);
    int by_us = information->si_code <= 0 && information->si_pid == getpid();
    char text[200];
    int size = snprintf(text, sizeof text,
                        "{\"signal\": %d, \"code\": %d, \"address\": %ld, \"by_us\": %d, \"alternate\": %d, "
                        "\"instruction\": %ld}\n",
                        number, information->si_code,
                        information->si_code > 0 ? address : 0, by_us,
                        here >= stack && here < stack + alternate.ss_size,
                        (long)(instruction - (uint64_t)this_object));
    if (write(1, text, (size_t)size) != size)
        _exit(1);
    _exit(42);
}

static void recover(int number)
{
    (void)number;
    siglongjmp(safe, 1);
}

static void install(int number, struct sigaction action)
{
    if (sigaction(number, &action, NULL) != 0)
        abort();
}

void handle_by_saying(int number)
{
    install(number, (struct sigaction){.sa_sigaction = say_and_exit, .sa_flags = SA_SIGINFO});
}

/* With as small a stack as the kernel allows a handler. */
void handle_on_alternate_stack(int number)
{
    alternate.ss_size = (size_t)sysconf(_SC_MINSIGSTKSZ) + 2048;
    alternate.ss_sp = malloc(alternate.ss_size);
    if (sigaltstack(&alternate, NULL) != 0)
        abort();
    install(number, (struct sigaction){.sa_sigaction = say_and_exit, .sa_flags = SA_SIGINFO | SA_ONSTACK});
}

void handle_by_recovering(void) { install(SIGSEGV, (struct sigaction){.sa_handler = recover}); }

/* Survives the read, and returns 1. */
int read_recovering(uint64_t address)
{
    if (sigsetjmp(safe, 1) != 0)
        return 1;
    fail_read(address);
    return 0;
}
