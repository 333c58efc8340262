/* Implements injections.h. Rules are only added, so one that is counted stays where it is. */
#include "injections.h"

#include <stddef.h>

#include "calls.h"
#include "lookups.h"
#include "objects.h"
#include "slot.h"

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

/* Every rule counts the event; the first one whose turn it is answers it. NULL: none does. */
static const struct evidence_rule *answering_rule(struct evidence_rules *injections,
                                                  const struct event *event)
{
    struct evidence_rule *answering = NULL;
    uint64_t count = rule_count(injections);
    for (uint64_t i = 0; i < count; i++) {
        struct evidence_rule *rule = &injections->rules[i];
        if (!counts(rule, event))
            continue;
        uint64_t number = atomic_fetch_add_explicit(&rule->seen, 1, memory_order_relaxed) + 1;
        if (answering == NULL && number >= rule->first && number <= rule->last)
            answering = rule;
    }
    if (answering != NULL)
        atomic_fetch_add_explicit(&answering->fired, 1, memory_order_relaxed);
    return answering;
}

static uint32_t conditions_of(const struct call_frame *frame, const struct watched_function *function)
{
    uint32_t conditions = object_is_cuda(caller_of(frame).object) ? 0 : RULE_UNDER_TEST;
    if (function->kind == LOOKUP && lookup_asks_for_batch(frame))
        conditions |= RULE_BATCH_NAME;
    return conditions;
}

bool injection_into_call(struct evidence_slot *slot, struct call_frame *frame, const struct stub *stub,
                         const struct watched_function *function)
{
    if (!is_mentioned(&slot->injections, stub->function))
        return false;
    struct event event = {stub->function, conditions_of(frame, function)};
    const struct evidence_rule *rule = answering_rule(&slot->injections, &event);
    if (rule == NULL)
        return false;
    frame->result = (uint32_t)rule->code;
    if (function->kind == LOOKUP)
        lookup_refuse(frame, function, rule->effect == RULE_FINDS_NULL);
    return true;
}

bool injection_into_dlsym(uint64_t caller)
{
    struct evidence_slot *slot = slot_here().slot;
    if (!injections_requested(slot) || !is_mentioned(&slot->injections, EVIDENCE_DLSYM))
        return false;
    bool by_cuda = object_is_cuda(object_at(caller));
    struct event event = {EVIDENCE_DLSYM, RULE_BATCH_NAME | (by_cuda ? 0 : RULE_UNDER_TEST)};
    return answering_rule(&slot->injections, &event) != NULL;
}
