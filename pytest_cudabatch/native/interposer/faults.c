/*
 * Implements faults.h. The handler runs at any point of any thread, on a stack that may be small: it takes no
 * lock, and what needs room is static, used by one thread at a time.
 */
#define _GNU_SOURCE /* the names of registers in ucontext_t */
#include "faults.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <ucontext.h>

#include "evidence.h"
#include "machine.h"
#include "objects.h"
#include "slot.h"
#include "system_calls.h"

enum { SIGNALS = 32 };

static const int fatal[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
enum { FATAL = sizeof fatal / sizeof fatal[0] };

/* What was there before our handler. Written before it is installed, by threads that write the same. */
static struct kernel_action previous[SIGNALS];

/* A signal that somebody sent, the process itself by abort for example; it does not come again by itself. */
static bool was_sent(const siginfo_t *information)
{
    return information->si_code <= 0;
}

/* The slot's record is free for the process's first fault only. */
static bool take(struct evidence_fault *fault)
{
    uint32_t empty = EVIDENCE_EMPTY;
    return atomic_compare_exchange_strong(&fault->entry.state, &empty, EVIDENCE_WRITING);
}

static void describe(struct evidence_fault *fault, const siginfo_t *information, const ucontext_t *context)
{
    static struct object_search search;
    static atomic_flag in_use = ATOMIC_FLAG_INIT; /* only by threads that crash in different slots */
    uint64_t instruction = INSTRUCTION_OF(context);
    fault->signal = information->si_signo;
    fault->code = information->si_code;
    fault->thread = thread_pointer();
    fault->object = EVIDENCE_NO_OBJECT;
    if (was_sent(information))
        return;
    fault->address = (uint64_t)information->si_addr;
    if (!atomic_flag_test_and_set(&in_use)) {
        fault->object = object_find(instruction, &search);
        atomic_flag_clear(&in_use);
    }
    fault->offset = object_offset(fault->object, instruction);
}

/* Sends the signal again with all that it said; it arrives when the handler has returned, where it was. */
static void send_again(int number, siginfo_t *information)
{
    uint64_t mask = UINT64_C(1) << (number - 1);
    long process = system_getpid(), thread = system_call(SYS_gettid, 0, 0, 0, 0, 0, 0);
    system_call(SYS_rt_sigprocmask, SIG_BLOCK, (long)&mask, 0, sizeof mask, 0, 0);
    if (system_failed(
            system_call(SYS_rt_tgsigqueueinfo, process, thread, number, (long)information, 0, 0)))
        system_call(SYS_tgkill, process, thread, number, 0, 0, 0);
}

/* The previous action is back before anything is looked at, and the signal is not blocked (SA_NODEFER): should
 * memory go away under our reading, that fault ends the process as this one would have. */
static void handle(int number, siginfo_t *information, void *context)
{
    struct evidence_slot *slot = slot_here().slot;
    system_signal_action(number, &previous[number], NULL);
    if (slot != NULL && take(&slot->fault)) {
        describe(&slot->fault, information, context);
        atomic_store_explicit(&slot->fault.entry.state, EVIDENCE_PUBLISHED, memory_order_release);
    }
    if (was_sent(information))
        send_again(number, information);
}

static void watch(int number)
{
    static const struct kernel_action ours = {
        .handler = handle,
        .flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER | HANDLER_FLAGS,
        .restorer = HANDLER_RETURN,
    };
    struct kernel_action there;
    if (system_failed(system_signal_action(number, NULL, &there)) || (void *)there.handler == (void *)SIG_IGN ||
        there.handler == ours.handler)
        return;
    previous[number] = there;
    system_signal_action(number, &ours, NULL);
}

void faults_watch(void)
{
    for (int i = 0; i < FATAL; i++)
        watch(fatal[i]);
}

void faults_survived(struct evidence_fault *fault)
{
    if (atomic_load_explicit(&fault->entry.state, memory_order_relaxed) != EVIDENCE_PUBLISHED ||
        fault->thread != thread_pointer())
        return;
    atomic_store(&fault->entry.state, EVIDENCE_EMPTY);
    faults_watch();
}
