/*
 * Raw Linux system calls: they need no libc and leave the program's errno alone. Each returns what
 * the kernel returns: a negative errno (-4095 to -1) on failure.
 */
#ifndef CUDABATCH_SYSTEM_CALLS_H
#define CUDABATCH_SYSTEM_CALLS_H

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

#include "machine.h"

static inline bool system_failed(long result)
{
    return result < 0 && result >= -4095;
}

static inline int system_open(const char *path, int flags)
{
    return (int)system_call(SYS_openat, AT_FDCWD, (long)path, flags | O_CLOEXEC, 0, 0, 0);
}

static inline long system_read(int descriptor, void *buffer, size_t size)
{
    return system_call(SYS_read, descriptor, (long)buffer, (long)size, 0, 0, 0);
}

/* Appends in one piece: what other processes append to the same file at the same time does not mix with it. */
static inline long system_append(const char *path, const void *content, size_t size)
{
    long descriptor = system_call(SYS_openat, AT_FDCWD, (long)path, O_WRONLY | O_APPEND | O_CLOEXEC, 0, 0, 0);
    if (system_failed(descriptor))
        return descriptor;
    long written = system_call(SYS_write, descriptor, (long)content, (long)size, 0, 0, 0);
    system_call(SYS_close, descriptor, 0, 0, 0, 0, 0);
    return written;
}

static inline void system_close(int descriptor)
{
    system_call(SYS_close, descriptor, 0, 0, 0, 0, 0);
}

static inline uint32_t system_getpid(void)
{
    return (uint32_t)system_call(SYS_getpid, 0, 0, 0, 0, 0, 0);
}

/* A signal's action as the kernel takes it; libc's struct sigaction is another one. */
struct kernel_action {
    void (*handler)(int number, siginfo_t *information, void *context);
    unsigned long flags;
    void (*restorer)(void); /* counts with SA_RESTORER among the flags only */
    uint64_t mask;
};

/* As sigaction(2); either pointer may be NULL. */
static inline long system_signal_action(int number, const struct kernel_action *to, struct kernel_action *from)
{
    return system_call(SYS_rt_sigaction, number, (long)to, (long)from, sizeof to->mask, 0, 0);
}

/* Waits so long, however many signals arrive meanwhile. */
static inline void system_sleep(uint32_t milliseconds)
{
    enum { NANOSECONDS = 1000000000 };
    struct timespec until; /* the kernel's on every 64-bit architecture */
    system_call(SYS_clock_gettime, CLOCK_MONOTONIC, (long)&until, 0, 0, 0, 0);
    until.tv_nsec += milliseconds % 1000 * 1000000;
    until.tv_sec += milliseconds / 1000 + until.tv_nsec / NANOSECONDS;
    until.tv_nsec %= NANOSECONDS;
    while (system_call(SYS_clock_nanosleep, CLOCK_MONOTONIC, TIMER_ABSTIME, (long)&until, 0, 0, 0) == -EINTR)
        ;
}

/* Never returns. Signal handlers of the program run; only a signal that ends the process ends it. */
static inline _Noreturn void system_wait_forever(void)
{
    for (;;)
        system_call(SYS_ppoll, 0, 0, 0, 0, 0, 0);
}

static inline uint32_t system_getppid(void)
{
    return (uint32_t)system_call(SYS_getppid, 0, 0, 0, 0, 0, 0);
}

/* Maps readable and writable memory, of a file or (descriptor -1) anonymous; NULL on failure. */
static inline void *system_map(size_t size, int flags, int descriptor)
{
    long address = system_call(SYS_mmap, 0, (long)size, PROT_READ | PROT_WRITE, flags, descriptor, 0);
    return system_failed(address) ? NULL : (void *)address;
}

#endif
