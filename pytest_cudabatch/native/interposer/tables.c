/* Implements tables.h. An entry goes EMPTY -> WRITING by compare-and-swap -> PUBLISHED, and stays. */
#include "tables.h"

#include <stdbool.h>

#include "memory.h"
#include "slot.h"

/* This process's own copy; a forked child inherits it. Any thread appends. */
static struct evidence_tables known;
static _Atomic uint32_t losses, reported_kinds, missed_kinds;

static const struct {
    size_t offset; /* within struct evidence_tables */
    size_t size;   /* of one entry */
    int count;
} shapes[TABLES] = {
    [OBJECTS] = {offsetof(struct evidence_tables, objects), sizeof(struct evidence_object), EVIDENCE_OBJECTS},
    [BINDINGS] = {offsetof(struct evidence_tables, bindings), sizeof(struct evidence_binding),
                  EVIDENCE_BINDINGS},
    [LOOKUPS] = {offsetof(struct evidence_tables, lookups), sizeof(struct evidence_lookup), EVIDENCE_LOOKUPS},
    [VERSION_QUERIES] = {offsetof(struct evidence_tables, version_queries),
                         sizeof(struct evidence_version_query), EVIDENCE_VERSION_QUERIES},
};

static struct evidence_entry *entry_of(struct evidence_tables *tables, enum table table, int index)
{
    return (struct evidence_entry *)((char *)tables + shapes[table].offset + (size_t)index * shapes[table].size);
}

static bool published(struct evidence_entry *entry)
{
    return atomic_load_explicit(&entry->state, memory_order_acquire) == EVIDENCE_PUBLISHED;
}

/* Fills an empty entry; false where it is taken. */
static bool fill(struct evidence_entry *entry, const struct evidence_entry *from, size_t size)
{
    uint32_t expected = EVIDENCE_EMPTY;
    if (!atomic_compare_exchange_strong(&entry->state, &expected, EVIDENCE_WRITING))
        return false;
    memcpy(entry + 1, from + 1, size - sizeof *entry);
    atomic_store(&entry->state, EVIDENCE_PUBLISHED);
    return true;
}

static int add_known(enum table table, const struct evidence_entry *candidate)
{
    size_t size = shapes[table].size;
    for (int i = 0; i < shapes[table].count; i++) {
        struct evidence_entry *entry = entry_of(&known, table, i);
        if (published(entry) && memcmp(entry + 1, candidate + 1, size - sizeof *entry) == 0)
            return i;
        if (fill(entry, candidate, size))
            return i;
    }
    return TABLE_FULL;
}

/* Publishing in `known` comes first: a thread that copies to a slot meanwhile either sees the entry there, or
 * has stored the claim that slot_here finds here. So no entry falls between the two. */
int tables_add(enum table table, const struct evidence_entry *candidate)
{
    int index = add_known(table, candidate);
    if (index == TABLE_FULL) {
        tables_note_loss();
        return TABLE_FULL;
    }
    struct evidence_slot *slot = slot_here().slot;
    if (slot != NULL)
        fill(entry_of(&slot->tables, table, index), entry_of(&known, table, index), shapes[table].size);
    return index;
}

const struct evidence_object *tables_object(unsigned index)
{
    if (index >= EVIDENCE_OBJECTS || !published(&known.objects[index].entry))
        return NULL;
    return &known.objects[index];
}

void tables_copy_to(struct evidence_slot *slot)
{
    for (enum table table = 0; table < TABLES; table++)
        for (int i = 0; i < shapes[table].count; i++) {
            struct evidence_entry *entry = entry_of(&known, table, i);
            if (published(entry))
                fill(entry_of(&slot->tables, table, i), entry, shapes[table].size);
        }
    atomic_store(&slot->lost, atomic_load(&losses));
    atomic_fetch_or(&slot->reported, atomic_load(&reported_kinds));
    atomic_fetch_or(&slot->missed, atomic_load(&missed_kinds));
}

void tables_note_capability(uint32_t reported, uint32_t missed)
{
    uint32_t known_reported = atomic_load_explicit(&reported_kinds, memory_order_relaxed);
    uint32_t known_missed = atomic_load_explicit(&missed_kinds, memory_order_relaxed);
    if ((known_reported & reported) == reported && (known_missed & missed) == missed)
        return; /* nearly always: this is called at every binding */
    atomic_fetch_or(&reported_kinds, reported);
    atomic_fetch_or(&missed_kinds, missed);
    struct evidence_slot *slot = slot_here().slot;
    if (slot != NULL) {
        atomic_fetch_or(&slot->reported, reported);
        atomic_fetch_or(&slot->missed, missed);
    }
}

void tables_note_loss(void)
{
    uint32_t count = atomic_fetch_add(&losses, 1) + 1;
    struct evidence_slot *slot = slot_here().slot;
    if (slot != NULL)
        atomic_store(&slot->lost, count);
}
