/*
 * Traces: every batch's descriptors, kept for replay, where the evidence file asks for it (EVIDENCE_TRACED).
 *
 * Each process appends records to a file of its own, <evidence file>.trace.<slot>, before the call that they
 * are about, straight from the caller's arrays: one writev, no memory, and an address that is not mapped ends
 * the record instead of the process. Opening, sizing and closing the file each time costs about 2 microseconds;
 * a descriptor kept open could be closed by the program and mean another file by the next batch.
 *
 * So that addresses can be told as offsets within allocations, the driver's functions that give and take memory
 * are watched too (memory_functions.h), which a process without a trace does not pay for.
 */
#ifndef CUDABATCH_TRACE_H
#define CUDABATCH_TRACE_H

#include "calls.h"
#include "evidence.h"
#include "functions.h"
#include "slot.h"
#include "stubs.h"

#define TRACE_MAGIC UINT64_C(0x3165636172746263) /* "cbtrace1", little endian */

enum trace_kind {
    TRACE_BATCH = 1,       /* behind it: destinations, sources, sizes, attributes, and their first copies */
    TRACE_RETURNED = 2,    /* the batch `sequence` returned `value`, which is not 0 */
    TRACE_TAKEN = 3,       /* memory of kind `attributes` at `value`, `count` bytes (0: not known) */
    TRACE_FREED = 4,       /* the memory at `value` is about to be given back */
    TRACE_STREAM_GONE = 5, /* the stream `value` is about to be destroyed */
    TRACE_CUT = 6,         /* of the record of batch `sequence`, only `value` bytes could be written */
    TRACE_SKIPPED = 7,     /* a batch without a record: a 3D one, no sensible count, or addresses not mapped */
};

enum trace_memory { TRACE_DEVICE = 0, TRACE_MANAGED = 1, TRACE_PINNED = 2, TRACE_REGISTERED = 3 };

struct trace_record {
    uint64_t magic;
    uint32_t kind;     /* enum trace_kind */
    uint32_t function; /* of a batch */
    uint64_t sequence; /* of a batch: as in its evidence */
    uint64_t value;    /* of a batch: the stream, with CALL_HAS_STREAM */
    uint64_t count;    /* of a batch: descriptors */
    uint64_t attributes;
    uint64_t thread;
    uint32_t given;
    uint32_t flags; /* as of an evidence_call */
};

_Static_assert(sizeof(struct trace_record) == 64, "a record's head has no padding");

/* Appends a batch that is about to be called by code under test. */
void trace_batch(const struct call_frame *frame, const struct evidence_call *call, struct slot_lease lease);

/* Appends what a batch returned, where that is not 0. */
void trace_returned(uint64_t sequence, uint32_t code, struct slot_lease lease);

/* Appends another event of the process. */
void trace_event(enum trace_kind kind, uint64_t value, uint64_t count, uint64_t attributes, struct slot_lease lease);

#endif
