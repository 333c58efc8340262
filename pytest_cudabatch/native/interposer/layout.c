/* Exports the numbers of evidence.h and the order of functions.c, for the test that compares Python's mirror. */
#include "evidence.h"
#include "functions.h"

#define EXPORT __attribute__((visibility("default")))

struct layout_fact {
    char name[56];
    uint64_t value;
};

#define SIZE(type) {#type, sizeof(struct type)}
#define FIELD(type, field) {#type "." #field, offsetof(struct type, field)}
#define NUMBER(name) {#name, name}

extern const struct layout_fact cudabatch_layout[];

EXPORT const struct layout_fact cudabatch_layout[] = {
    NUMBER(EVIDENCE_MAGIC),
    NUMBER(EVIDENCE_VERSION),
    NUMBER(EVIDENCE_HEADER_SIZE),
    NUMBER(EVIDENCE_SLOTS_MAX),
    NUMBER(EVIDENCE_RULES),
    NUMBER(EVIDENCE_NO_OBJECT),
    NUMBER(EVIDENCE_DLSYM),
    NUMBER(EVIDENCE_PUBLISHED),
    NUMBER(EVIDENCE_VIA_PLT),
    NUMBER(EVIDENCE_VIA_DLSYM),
    NUMBER(EVIDENCE_DLSYM_REFUSED),
    NUMBER(EVIDENCE_DLSYM_OTHER_ABI),
    NUMBER(INJECTED_ANSWER),
    NUMBER(INJECTED_END),
    NUMBER(CALL_IN_FLIGHT),
    NUMBER(CALL_RETURNED),
    NUMBER(CALL_HAS_STREAM),
    NUMBER(CALL_INJECTED),
    NUMBER(RULE_UNDER_TEST),
    NUMBER(RULE_BATCH_NAME),
    NUMBER(RULE_RETURNS_CODE),
    NUMBER(RULE_FINDS_NULL),
    NUMBER(RULE_FINDS_OTHER_ABI),
    NUMBER(RULE_DELAYS),
    NUMBER(RULE_HANGS),
    NUMBER(RULE_CRASHES),
    SIZE(evidence_entry),
    FIELD(evidence_entry, state),
    FIELD(evidence_entry, reserved),
    SIZE(evidence_object),
    FIELD(evidence_object, entry),
    FIELD(evidence_object, base),
    FIELD(evidence_object, path),
    FIELD(evidence_object, soname),
    SIZE(evidence_binding),
    FIELD(evidence_binding, entry),
    FIELD(evidence_binding, function),
    FIELD(evidence_binding, caller),
    FIELD(evidence_binding, callee),
    FIELD(evidence_binding, via),
    FIELD(evidence_binding, callee_offset),
    SIZE(evidence_lookup),
    FIELD(evidence_lookup, entry),
    FIELD(evidence_lookup, function),
    FIELD(evidence_lookup, caller),
    FIELD(evidence_lookup, found),
    FIELD(evidence_lookup, target),
    FIELD(evidence_lookup, version),
    FIELD(evidence_lookup, code),
    FIELD(evidence_lookup, flags),
    FIELD(evidence_lookup, caller_offset),
    FIELD(evidence_lookup, found_offset),
    FIELD(evidence_lookup, injected),
    FIELD(evidence_lookup, name),
    SIZE(evidence_version_query),
    FIELD(evidence_version_query, entry),
    FIELD(evidence_version_query, function),
    FIELD(evidence_version_query, caller),
    FIELD(evidence_version_query, callee),
    FIELD(evidence_version_query, injected),
    FIELD(evidence_version_query, code),
    FIELD(evidence_version_query, version),
    FIELD(evidence_version_query, caller_offset),
    SIZE(evidence_call),
    FIELD(evidence_call, outcome),
    FIELD(evidence_call, sequence),
    FIELD(evidence_call, function),
    FIELD(evidence_call, caller),
    FIELD(evidence_call, callee),
    FIELD(evidence_call, given),
    FIELD(evidence_call, flags),
    FIELD(evidence_call, caller_offset),
    FIELD(evidence_call, callee_offset),
    FIELD(evidence_call, stream),
    FIELD(evidence_call, count),
    FIELD(evidence_call, thread),
    SIZE(evidence_journal),
    FIELD(evidence_journal, begun),
    FIELD(evidence_journal, first),
    FIELD(evidence_journal, last),
    SIZE(evidence_site),
    FIELD(evidence_site, key),
    FIELD(evidence_site, calls),
    FIELD(evidence_site, returned),
    FIELD(evidence_site, errors),
    SIZE(evidence_tables),
    FIELD(evidence_tables, objects),
    FIELD(evidence_tables, bindings),
    FIELD(evidence_tables, lookups),
    FIELD(evidence_tables, version_queries),
    SIZE(evidence_rule),
    FIELD(evidence_rule, functions),
    FIELD(evidence_rule, first),
    FIELD(evidence_rule, last),
    FIELD(evidence_rule, conditions),
    FIELD(evidence_rule, effect),
    FIELD(evidence_rule, code),
    FIELD(evidence_rule, delay),
    FIELD(evidence_rule, seen),
    FIELD(evidence_rule, fired),
    SIZE(evidence_rules),
    FIELD(evidence_rules, count),
    FIELD(evidence_rules, rules),
    SIZE(evidence_slot),
    FIELD(evidence_slot, attached),
    FIELD(evidence_slot, lost),
    FIELD(evidence_slot, sequence),
    FIELD(evidence_slot, injections),
    FIELD(evidence_slot, tables),
    FIELD(evidence_slot, sites),
    FIELD(evidence_slot, batch),
    FIELD(evidence_slot, per_copy),
    SIZE(evidence_header),
    FIELD(evidence_header, magic),
    FIELD(evidence_header, version),
    FIELD(evidence_header, header_size),
    FIELD(evidence_header, slot_count),
    FIELD(evidence_header, slot_size),
    FIELD(evidence_header, reserved),
    FIELD(evidence_header, claims),
    {"", 0},
};

/* Name of the function that a number in evidence means; NULL past the last. */
EXPORT const char *cudabatch_function_name(uint32_t number);

const char *cudabatch_function_name(uint32_t number)
{
    for (uint32_t i = 0; watched_functions[i].name != NULL; i++)
        if (i == number)
            return watched_functions[i].name;
    return 0;
}
