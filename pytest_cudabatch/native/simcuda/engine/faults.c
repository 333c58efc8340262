/* Implements faults.h. The environment is read once, when it is first needed. */
#include "faults.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "adversary.h"
#include "capture.h"
#include "fault_rules.h"

enum { MOST_RULES = 16, FIRST_STICKY = 700, LAST_STICKY = 720 };

static const char VARIABLE[] = "CUDABATCH_SIM_FAULTS";
static const char SEED[] = "CUDABATCH_SIM_FAULT_SEED";

/* Written under pthread_once: the rules, and whether all that was written are such. */
static struct fault_rule rules[MOST_RULES];
static size_t rule_count;
static bool understood = true;
static uint64_t seed;

/* How many calls each rule has been about; atomic, as the next. */
static uint64_t calls[MOST_RULES];
static int lost;

static void read_rule(const char *text, size_t length)
{
    if (rule_count < MOST_RULES && fault_rule_parse(text, length, &rules[rule_count])) {
        rule_count++;
        return;
    }
    fprintf(stderr, "pytest-cudabatch: %s: %.*s is no fault of the simulated driver: write batch=crash, like\n",
            VARIABLE, (int)length, text);
    understood = false;
}

static void read_seed(void)
{
    const char *text = getenv(SEED);
    char *end;
    if (text == NULL)
        return;
    errno = 0;
    seed = strtoull(text, &end, 10);
    if (*text >= '0' && *text <= '9' && *end == '\0' && errno == 0)
        return;
    fprintf(stderr, "pytest-cudabatch: %s=%s is no number\n", SEED, text);
    understood = false;
}

static void read_rules(void)
{
    const char *text = getenv(VARIABLE);
    while (text != NULL && *text != '\0') {
        size_t length = strcspn(text, ";");
        read_rule(text, length);
        text += length + (text[length] == ';');
    }
    read_seed();
}

static bool is_on_device(cuda_address address)
{
    const struct region *region;
    return memory_standing(address, 1, &region) == STANDING_INSIDE && region->kind == REGION_DEVICE;
}

static bool is_mixed_to_device(const struct batch *batch)
{
    engine_lock();
    bool to_device = is_on_device(batch->destinations[0]) && !is_on_device(batch->sources[0]);
    engine_unlock();
    if (!to_device)
        return false;
    for (size_t index = 1; index < batch->count; index++)
        if (batch->sizes[index] != batch->sizes[0])
            return true;
    return false;
}

static bool is_about(const struct fault_rule *rule, enum fault_target target, const struct batch *batch)
{
    if (rule->target != target)
        return false;
    return batch == NULL ||
           (batch->count > rule->more_than && (!rule->only_mixed || is_mixed_to_device(batch)));
}

static void sleep_for(uint64_t milliseconds)
{
    struct timespec left = {(time_t)(milliseconds / 1000), (long)(milliseconds % 1000) * 1000000};
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        continue;
}

static void crash(void)
{
    *(volatile int *)NULL; /* the null read that the real driver makes */
}

static void hang(void)
{
    for (;;)
        pause();
}

/* Does the rule's `number`-th call fail, at its rate? */
static bool is_drawn(const struct fault_rule *rule, uint64_t number)
{
    return adversary_draw(seed, number) % 100 < rule->argument;
}

static int happen(const struct fault_rule *rule, uint64_t number, struct fault *fault)
{
    switch (rule->effect) {
    case EFFECT_CODE:
        if (rule->argument >= FIRST_STICKY && rule->argument <= LAST_STICKY)
            __atomic_store_n(&lost, (int)rule->argument, __ATOMIC_RELEASE);
        return (int)rule->argument;
    case EFFECT_CRASH:
        if (is_drawn(rule, number))
            crash();
        break;
    case EFFECT_HANG:
        if (is_drawn(rule, number))
            hang();
        break;
    case EFFECT_DELAY:
        sleep_for(rule->argument);
        break;
    case EFFECT_LATE:
        fault->late += (unsigned)rule->argument;
        break;
    case EFFECT_FLIP:
        fault->flips = true;
        break;
    }
    return CUDA_OK;
}

int fault_on_call(enum fault_target target, const struct batch *batch, struct fault *fault)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_rules);
    *fault = (struct fault){0, false};
    int code = understood ? CUDA_OK : CUDA_INVALID_VALUE;
    for (size_t index = 0; index < rule_count && understood; index++) {
        const struct fault_rule *rule = &rules[index];
        if (!is_about(rule, target, batch))
            continue;
        uint64_t number = __atomic_add_fetch(&calls[index], 1, __ATOMIC_RELAXED);
        if (code == CUDA_OK && number >= rule->first && number <= rule->last)
            code = happen(rule, number, fault);
    }
    return code;
}

static void be_late(void *milliseconds)
{
    sleep_for((uintptr_t)milliseconds);
}

static void flip(void *written)
{
    *(unsigned char *)written ^= 1;
}

static int queue(struct stream *stream, host_function function, void *argument)
{
    struct work *work = work_create(WORK_HOST_FUNCTION);
    if (work == NULL)
        return CUDA_OUT_OF_MEMORY;
    work->host.call = function;
    work->host.argument = argument;
    engine_lock();
    int code = capture_or_submit(stream, work);
    engine_unlock();
    return code;
}

int fault_before_work(struct stream *stream, const struct fault *fault)
{
    return fault->late == 0 ? CUDA_OK : queue(stream, be_late, (void *)(uintptr_t)fault->late);
}

int fault_after_work(struct stream *stream, const struct fault *fault, void *written)
{
    return fault->flips ? queue(stream, flip, written) : CUDA_OK;
}

int fault_lost_context(void)
{
    return __atomic_load_n(&lost, __ATOMIC_ACQUIRE);
}
