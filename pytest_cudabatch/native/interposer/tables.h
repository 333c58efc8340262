/*
 * The tables of evidence (objects, bindings, look-ups, version queries), kept in the process and mirrored into its slot.
 *
 * Libraries are bound before a slot is claimed, often in the parent of the process that claims it. So each
 * entry is first written into the process's own copy, which a forked child inherits, and then, under the
 * same index, into the slot; a slot claimed later gets everything that came before. Entries are never
 * changed or removed.
 */
#ifndef CUDABATCH_TABLES_H
#define CUDABATCH_TABLES_H

#include "evidence.h"

enum table { OBJECTS, BINDINGS, LOOKUPS, VERSION_QUERIES, TABLES };

enum { TABLE_FULL = -1 };

/* Index of an entry equal to `candidate` (its state apart), added if there is none, or TABLE_FULL. */
int tables_add(enum table table, const struct evidence_entry *candidate);

/* A published object, or NULL. */
const struct evidence_object *tables_object(unsigned index);

/* Copies all published entries, and the count of what was lost, into a slot. Safe to run twice at once. */
void tables_copy_to(struct evidence_slot *slot);

/* Notes that the dynamic linker reports bindings of these kinds, or that it did not where it should have. */
void tables_note_capability(uint32_t reported, uint32_t missed);

/* Notes that something watched could not be recorded, so that the evidence says that it is incomplete. */
void tables_note_loss(void);

#endif
