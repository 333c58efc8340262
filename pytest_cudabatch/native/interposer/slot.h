/*
 * The evidence file of this process and the slot in it that the process may write to.
 *
 * A slot belongs to the process whose pid its claim holds. A forked child starts without one: what the
 * parent remembers is wiped by the kernel, so the child looks for a claim of its own. Where the file says so
 * (EVIDENCE_SELF_CLAIM), nobody claims for a process: it takes a free slot itself, and a program that replaces
 * it by exec takes another one, although its pid is the same.
 */
#ifndef CUDABATCH_SLOT_H
#define CUDABATCH_SLOT_H

#include <stdbool.h>
#include <stdint.h>

#include "evidence.h"

/* Maps the file named by CUDABATCH_EVIDENCE. False where there is none or it has another layout. */
bool slot_open_file(void);

struct slot_lease {
    struct evidence_slot *slot; /* NULL: this process has none */
    uint64_t claim;             /* equal claims are the same slot, process and generation */
};

/* The slot of this process now. The first call after a claim copies what was known before into the slot. */
struct slot_lease slot_here(void);

/* The same, for a watched call: where processes claim for themselves, one without a slot takes one. */
struct slot_lease slot_needed(void);

/* Whether processes claim for themselves. */
bool slot_is_self_claimed(void);

/* Whether batches are to be traced, and how large a process's trace may become in bytes. */
bool slot_is_traced(void);
uint64_t slot_trace_limit(void);

/* Path of the evidence file; "" where there is none. */
const char *slot_file_path(void);

#endif
