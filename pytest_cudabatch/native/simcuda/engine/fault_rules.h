/*
 * The rules of faults.h as data. Nothing here has state.
 */
#ifndef CUDABATCH_FAULT_RULES_H
#define CUDABATCH_FAULT_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "faults.h"

enum fault_effect { EFFECT_CODE, EFFECT_CRASH, EFFECT_HANG, EFFECT_DELAY, EFFECT_LATE, EFFECT_FLIP };

struct fault_rule {
    enum fault_target target;
    bool only_mixed;
    uint64_t more_than; /* copies */
    uint64_t first, last; /* calls, counted from 1 */
    enum fault_effect effect;
    uint64_t argument; /* the code, percent or milliseconds */
};

/* Reads the rule of `length` characters; false for anything else. */
bool fault_rule_parse(const char *text, size_t length, struct fault_rule *rule);

#endif
