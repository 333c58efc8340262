/* The choices of the adversarial schedule; see adversary.h. */
#include "adversary.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schedule.h"

static const char VARIABLE[] = "CUDABATCH_SIM_SCHEDULE";
static const char ADVERSARIAL[] = "adversarial";

/* Written once, by adversary_start, before any work is queued. */
static bool on;
static uint64_t seed;

/* How often adversary_reads_early was asked; atomic. */
static uint64_t early_reads;

/* One number for each kind of choice, so that choices about one work do not hang together. */
enum choice { CHOICE_EAGER = 1, CHOICE_PATIENCE, CHOICE_RANK, CHOICE_QUERIES, CHOICE_SHUFFLE, CHOICE_EARLY };

static bool parse_seed(const char *text, uint64_t *parsed)
{
    char *end;
    if (*text < '0' || *text > '9')
        return false;
    errno = 0;
    *parsed = strtoull(text, &end, 10);
    return *end == '\0' && errno == 0;
}

static bool parse(const char *text)
{
    size_t length = sizeof ADVERSARIAL - 1;
    if (strcmp(text, "fair") == 0)
        return true;
    if (strncmp(text, ADVERSARIAL, length) != 0)
        return false;
    on = true;
    text += length;
    return *text == '\0' || (*text == ':' && parse_seed(text + 1, &seed));
}

int adversary_start(void)
{
    const char *text = getenv(VARIABLE);
    if (text == NULL || parse(text))
        return CUDA_OK;
    fprintf(stderr, "pytest-cudabatch: %s=%s is no schedule: set it to fair, adversarial or adversarial:SEED\n",
            VARIABLE, text);
    return CUDA_INVALID_VALUE;
}

bool adversary_is_on(void)
{
    return on;
}

/* The finaliser of splitmix64: every bit of the result hangs on every bit of `value`. */
static uint64_t mix(uint64_t value)
{
    value += 0x9e3779b97f4a7c15;
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9;
    value = (value ^ value >> 27) * 0x94d049bb133111eb;
    return value ^ value >> 31;
}

uint64_t adversary_draw(uint64_t with, uint64_t number)
{
    return mix(mix(with) ^ number);
}

static uint64_t draw(enum choice choice, uint64_t number)
{
    return mix(mix(mix(seed) ^ (uint64_t)choice) ^ number);
}

bool adversary_is_eager(uint64_t ticket)
{
    return draw(CHOICE_EAGER, ticket) % 4 == 0;
}

int64_t adversary_patience(uint64_t ticket)
{
    static const int64_t MILLISECOND = 1000000;
    if (adversary_is_eager(ticket)) /* whoever submits it runs it; this is for when that thread cannot */
        return MILLISECOND;
    return (20 + (int64_t)(draw(CHOICE_PATIENCE, ticket) % 31)) * MILLISECOND;
}

uint64_t adversary_rank(uint64_t ticket)
{
    return draw(CHOICE_RANK, ticket);
}

unsigned adversary_queries(uint64_t ticket)
{
    return 1 + (unsigned)(draw(CHOICE_QUERIES, ticket) % 3);
}

void adversary_shuffle(struct copy *copies, size_t count, uint64_t ticket)
{
    uint64_t state = draw(CHOICE_SHUFFLE, ticket);
    for (size_t left = count; left > 1; left--) {
        state = mix(state);
        size_t chosen = state % left;
        struct copy swapped = copies[chosen];
        copies[chosen] = copies[left - 1];
        copies[left - 1] = swapped;
    }
}

bool adversary_reads_early(void)
{
    uint64_t number = __atomic_fetch_add(&early_reads, 1, __ATOMIC_RELAXED);
    return draw(CHOICE_EARLY, number) % 2 == 0;
}
