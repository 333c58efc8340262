/* Implements faults.h. The environment is read once, when it is first needed. */
#include "faults.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NEVER_FAILED_UP_TO = 1024 };

enum effect { EFFECT_NONE, EFFECT_CRASH, EFFECT_HANG };

static const struct {
    const char *rule;
    bool only_mixed;
    enum effect effect;
} rules[] = {
    {"batch=crash", false, EFFECT_CRASH},
    {"batch=hang", false, EFFECT_HANG},
    {"mixed-h2d=crash", true, EFFECT_CRASH},
    {"mixed-h2d=hang", true, EFFECT_HANG},
};
enum { RULES = sizeof rules / sizeof *rules };

static const char VARIABLE[] = "CUDABATCH_SIM_FAULTS";

/* Written under pthread_once: which rules hold, and whether all that was written are rules. */
static bool holds[RULES];
static bool understood = true;

static void read_rule(const char *text, size_t length)
{
    for (size_t index = 0; index < RULES; index++)
        if (strlen(rules[index].rule) == length && strncmp(rules[index].rule, text, length) == 0) {
            holds[index] = true;
            return;
        }
    fprintf(stderr, "pytest-cudabatch: %s: %.*s is no fault of the simulated driver: write batch=crash, like\n",
            VARIABLE, (int)length, text);
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
}

static bool is_on_device(cuda_address address)
{
    const struct region *region;
    return memory_standing(address, 1, &region) == STANDING_INSIDE && region->kind == REGION_DEVICE;
}

static bool is_mixed_to_device(const struct batch *batch)
{
    if (batch->count <= NEVER_FAILED_UP_TO)
        return false;
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

static void happen(enum effect effect)
{
    if (effect == EFFECT_HANG)
        for (;;)
            pause();
    *(volatile int *)NULL; /* the null read that the real driver makes */
}

int fault_on_batch(const struct batch *batch)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_rules);
    for (size_t index = 0; index < RULES; index++)
        if (holds[index] && (!rules[index].only_mixed || is_mixed_to_device(batch)))
            happen(rules[index].effect);
    return understood ? CUDA_OK : CUDA_INVALID_VALUE;
}
