/* Implements injections.h. Rules are only added, so one that is counted stays where it is. */
#include "injections.h"

#include <stddef.h>

#include "calls.h"
#include "lookups.h"
#include "objects.h"
#include "slot.h"
#include "system_calls.h"

/* A call as rules see it. */
struct event {
    unsigned function;   /* number in functions.c, or EVIDENCE_DLSYM */
    uint32_t conditions; /* of enum evidence_condition, those that it fulfils */
};

static uint64_t rule_count(struct evidence_rules *injections)
{
    uint64_t count = atomic_load_explicit(&injections->count, memory_order_acquire);
    return count < EVIDENCE_RULES ? count : EVIDENCE_RULES;
}

/* Whether any rule is about the function; what that leaves out needs no further look at the caller. */
static bool is_mentioned(struct evidence_rules *injections, unsigned function)
{
    uint64_t count = rule_count(injections);
    for (uint64_t i = 0; i < count; i++)
        if (injections->rules[i].functions >> function & 1)
            return true;
    return false;
}

static bool counts(const struct evidence_rule *rule, const struct event *event)
{
    return (rule->functions >> event->function & 1) != 0 && (rule->conditions & ~event->conditions) == 0;
}

/* What the rules have for a call. */
struct decision {
    uint16_t rule; /* the first one whose turn it is, delays apart */
    enum evidence_effect effect; /* its effect; 0: there is none */
    uint32_t delay;              /* milliseconds, of all delays together */
};

static void count_effect(struct evidence_rule *rule)
{
    atomic_fetch_add_explicit(&rule->fired, 1, memory_order_relaxed);
}

/* Every rule counts the event. The effect is counted too, but for that of a look-up, which may not come off. */
static struct decision decide(struct evidence_rules *injections, const struct event *event)
{
    struct decision decision = {0};
    uint64_t count = rule_count(injections);
    for (uint16_t i = 0; i < count; i++) {
        struct evidence_rule *rule = &injections->rules[i];
        if (!counts(rule, event))
            continue;
        uint64_t number = atomic_fetch_add_explicit(&rule->seen, 1, memory_order_relaxed) + 1;
        bool has_turn = number >= rule->first && number <= rule->last;
        bool delays = rule->effect == RULE_DELAYS;
        if (!has_turn || (!delays && decision.effect != 0))
            continue;
        if (delays)
            decision.delay += rule->delay;
        else
            decision = (struct decision){i, rule->effect, decision.delay};
        if (rule->effect != RULE_FINDS_OTHER_ABI)
            count_effect(rule);
    }
    return decision;
}

static uint32_t conditions_of(const struct call_frame *frame, const struct watched_function *function)
{
    uint32_t conditions = object_is_under_test(caller_of(frame).object) ? RULE_UNDER_TEST : 0;
    if (function->kind == LOOKUP && lookup_asks_for_batch(frame))
        conditions |= RULE_BATCH_NAME;
    return conditions;
}

void injection_into_call(struct evidence_slot *slot, struct call_frame *frame, const struct stub *stub,
                         const struct watched_function *function)
{
    if (!is_mentioned(&slot->injections, stub->function))
        return;
    struct event event = {stub->function, conditions_of(frame, function)};
    struct decision decision = decide(&slot->injections, &event);
    frame->effect = decision.effect;
    frame->rule = decision.rule;
    frame->delay = decision.delay;
    if (decision.effect != RULE_RETURNS_CODE && decision.effect != RULE_FINDS_NULL)
        return;
    frame->result = (uint32_t)slot->injections.rules[decision.rule].code;
    if (function->kind == LOOKUP)
        lookup_refuse(frame, function, decision.effect == RULE_FINDS_NULL);
}

bool injection_ends_call(const struct call_frame *frame)
{
    return frame->effect == RULE_HANGS || frame->effect == RULE_CRASHES;
}

bool injection_replaces_call(const struct call_frame *frame)
{
    return frame->effect == RULE_RETURNS_CODE || frame->effect == RULE_FINDS_NULL || injection_ends_call(frame);
}

uint64_t injection_replacement(const struct call_frame *frame)
{
    switch (frame->effect) {
    case RULE_HANGS: return (uint64_t)stub_injected_hang;
    case RULE_CRASHES: return (uint64_t)stub_injected_crash;
    default: return (uint64_t)stub_injected_answer;
    }
}

void injection_took_effect(const struct call_frame *frame)
{
    struct evidence_slot *slot = slot_here().slot;
    if (slot != NULL) /* not taken away meanwhile */
        count_effect(&slot->injections.rules[frame->rule]);
}

/* The counterpart of the other ABI: a driver's own, or that of a runtime of the other ABI which is loaded too. */
static bool divert(struct dlsym_answer *answer)
{
    uint16_t function = function_of_other_abi(answer->function);
    uint64_t library = answer->address;
    if (function == NOT_WATCHED) {
        function = answer->function;
        library = object_runtime_of_other_abi(object_at(answer->address));
    }
    uint64_t address = library != 0 ? object_symbol(library, watched_functions[function].name) : 0;
    if (address == 0)
        return false;
    *answer = (struct dlsym_answer){function, address, EVIDENCE_DLSYM_OTHER_ABI};
    return true;
}

void injection_into_dlsym(uint64_t caller, struct dlsym_answer *answer)
{
    struct evidence_slot *slot = slot_needed().slot;
    if (!injections_requested(slot) || !is_mentioned(&slot->injections, EVIDENCE_DLSYM))
        return;
    bool under_test = object_is_under_test(object_at(caller));
    struct event event = {EVIDENCE_DLSYM, RULE_BATCH_NAME | (under_test ? RULE_UNDER_TEST : 0)};
    struct decision decision = decide(&slot->injections, &event);
    if (decision.delay != 0)
        system_sleep(decision.delay);
    switch (decision.effect) {
    case RULE_RETURNS_CODE:
    case RULE_FINDS_NULL: *answer = (struct dlsym_answer){answer->function, 0, EVIDENCE_DLSYM_REFUSED}; break;
    case RULE_FINDS_OTHER_ABI:
        if (divert(answer))
            count_effect(&slot->injections.rules[decision.rule]);
        break;
    case RULE_HANGS: stub_injected_hang(); break;
    case RULE_CRASHES: stub_injected_crash(); break;
    case RULE_DELAYS: break;
    }
}
