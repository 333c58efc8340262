/* Reads rules; see fault_rules.h and, for the grammar, faults.h. */
#include "fault_rules.h"

#include <string.h>

enum { NEVER_FAILED_UP_TO = 1024, LARGEST = 1000000000 };

/* What is left to read. */
struct reader {
    const char *at, *end;
};

static bool take(struct reader *reader, const char *word)
{
    size_t length = strlen(word);
    if ((size_t)(reader->end - reader->at) < length || strncmp(reader->at, word, length) != 0)
        return false;
    reader->at += length;
    return true;
}

static bool take_number(struct reader *reader, uint64_t *number)
{
    const char *start = reader->at;
    *number = 0;
    for (; reader->at < reader->end && *reader->at >= '0' && *reader->at <= '9'; reader->at++) {
        *number = *number * 10 + (uint64_t)(*reader->at - '0');
        if (*number > LARGEST)
            return false;
    }
    return reader->at > start;
}

static bool take_target(struct reader *reader, struct fault_rule *rule)
{
    static const struct {
        const char *word;
        enum fault_target target;
        bool only_mixed;
        uint64_t more_than;
    } targets[] = {
        {"batch", FAULT_BATCH, false, 0},
        {"mixed-h2d", FAULT_BATCH, true, NEVER_FAILED_UP_TO},
        {"per-copy", FAULT_PER_COPY, false, 0},
        {"allocate", FAULT_ALLOCATE, false, 0},
    };
    for (size_t index = 0; index < sizeof targets / sizeof *targets; index++)
        if (take(reader, targets[index].word)) {
            rule->target = targets[index].target;
            rule->only_mixed = targets[index].only_mixed;
            rule->more_than = targets[index].more_than;
            return true;
        }
    return false;
}

/* Which calls of the target, by size and by number. */
static bool take_calls(struct reader *reader, struct fault_rule *rule)
{
    rule->first = 1;
    rule->last = UINT64_MAX;
    if (take(reader, ">") && (rule->target != FAULT_BATCH || !take_number(reader, &rule->more_than)))
        return false;
    if (!take(reader, "@"))
        return true;
    if (!take_number(reader, &rule->first) || rule->first == 0)
        return false;
    if (!take(reader, "+"))
        rule->last = rule->first;
    return true;
}

/* An effect with an argument; `most` is the largest one. */
static bool take_argument(struct reader *reader, struct fault_rule *rule, enum fault_effect effect, uint64_t most)
{
    rule->effect = effect;
    return take_number(reader, &rule->argument) && rule->argument <= most;
}

static bool take_effect(struct reader *reader, struct fault_rule *rule)
{
    const uint64_t always = 100, longest = 3600000;
    rule->argument = always;
    if (take(reader, "crash:"))
        return take_argument(reader, rule, EFFECT_CRASH, always);
    if (take(reader, "hang:"))
        return take_argument(reader, rule, EFFECT_HANG, always);
    if (take(reader, "delay:"))
        return take_argument(reader, rule, EFFECT_DELAY, longest);
    if (take(reader, "late:"))
        return rule->target != FAULT_ALLOCATE && take_argument(reader, rule, EFFECT_LATE, longest);
    if (take(reader, "crash")) {
        rule->effect = EFFECT_CRASH;
        return true;
    }
    if (take(reader, "hang")) {
        rule->effect = EFFECT_HANG;
        return true;
    }
    if (take(reader, "flip")) {
        rule->effect = EFFECT_FLIP;
        return rule->target != FAULT_ALLOCATE;
    }
    return take_argument(reader, rule, EFFECT_CODE, LARGEST) && rule->argument > 0;
}

static void skip_spaces(struct reader *reader)
{
    while (reader->at < reader->end && *reader->at == ' ')
        reader->at++;
    while (reader->end > reader->at && reader->end[-1] == ' ')
        reader->end--;
}

bool fault_rule_parse(const char *text, size_t length, struct fault_rule *rule)
{
    struct reader reader = {text, text + length};
    skip_spaces(&reader);
    return take_target(&reader, rule) && take_calls(&reader, rule) && take(&reader, "=") &&
           take_effect(&reader, rule) && reader.at == reader.end;
}
