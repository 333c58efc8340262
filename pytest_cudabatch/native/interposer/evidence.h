/*
 * The evidence file: the one place that says how it is laid out.
 *
 * A supervisor creates the file; every process under the interposer maps it shared. A header page is followed
 * by `slot_count` slots of `slot_size` bytes. A process owns a slot while `claims[slot]` holds its pid; it
 * writes only there. Only a slot's rules come from outside: its supervisor, or Python code in the process,
 * adds them, one writer at a time. Nothing is ever locked: an entry is filled first and published last, by
 * its state word or a count, so whatever a reader finds published is whole, also after SIGKILL at any point.
 *
 * pytest_cudabatch/interposer/layout.py mirrors this file; layout.c exports the numbers and a test compares
 * them. Change EVIDENCE_VERSION with every change of the layout or of the order in functions.c.
 */
#ifndef CUDABATCH_EVIDENCE_H
#define CUDABATCH_EVIDENCE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define EVIDENCE_MAGIC UINT64_C(0x31746e6564697665) /* "evident1", little endian */

enum {
    EVIDENCE_VERSION = 3,
    EVIDENCE_HEADER_SIZE = 4096,
    EVIDENCE_SLOTS_MAX = 256,
    EVIDENCE_OBJECTS = 128,
    EVIDENCE_BINDINGS = 512, /* a process with torch binds and asks for some hundred */
    EVIDENCE_LOOKUPS = 512,
    EVIDENCE_VERSION_QUERIES = 128,
    EVIDENCE_SITES = 256,
    EVIDENCE_RULES = 32,
    EVIDENCE_ALLOCATIONS = 64,
    EVIDENCE_FIRST = 64, /* calls kept in full from the start ... */
    EVIDENCE_LAST = 64,  /* ... and before the end */
    EVIDENCE_PATH = 512, /* bytes of a path, not terminated when full; a longer path keeps its tail */
    EVIDENCE_NAME = 64,  /* bytes of a SONAME or a function name, not terminated when full */
    EVIDENCE_NO_OBJECT = 0xffff,
    EVIDENCE_DLSYM = 63, /* dlsym and dlvsym, where a rule says which functions it is about */
};

/* The first word of an entry of a table. */
enum evidence_state { EVIDENCE_EMPTY = 0, EVIDENCE_WRITING = 1, EVIDENCE_PUBLISHED = 2 };

struct evidence_entry {
    _Atomic uint32_t state; /* enum evidence_state */
    uint32_t reserved;
};

/* A mapped ELF object. `base` is its load bias: address minus base is what addr2line and nm call the address. */
struct evidence_object {
    struct evidence_entry entry;
    uint64_t base;
    char path[EVIDENCE_PATH]; /* "[anonymous]" for code that lies in no file */
    char soname[EVIDENCE_NAME];
};

enum evidence_via {
    EVIDENCE_VIA_PLT = 1,
    EVIDENCE_VIA_DLSYM = 2,
    EVIDENCE_DLSYM_REFUSED = 3,   /* a rule made dlsym answer NULL */
    EVIDENCE_DLSYM_OTHER_ABI = 4, /* a rule made dlsym answer with this function in place of its counterpart */
    EVIDENCE_VIA_RELOCATION = 5,  /* a pointer: the address was taken, or the code was built with -fno-plt */
    EVIDENCE_UNSEEN = 6,          /* as before, but it could not be replaced: calls by it are not recorded */
};

/* What a rule did to a look-up or to a version query. */
enum evidence_injected {
    INJECTED_ANSWER = 1, /* it answered */
    INJECTED_END = 2,    /* the call never returned, by a hang or a crash, so it has no code */
};

/* The dynamic linker gave `caller` the address of a watched function in `callee`. Objects are table indexes.
 * Of an unseen binding the callee may be unknown. */
struct evidence_binding {
    struct evidence_entry entry;
    uint16_t function; /* index into functions.c, as everywhere below */
    uint16_t caller;
    uint16_t callee;
    uint16_t via; /* enum evidence_via */
    uint64_t callee_offset;
};

/* One answer of cuGetProcAddress or cudaGetDriverEntryPoint about a watched name. */
struct evidence_lookup {
    struct evidence_entry entry;
    uint16_t function; /* the look-up function that was called */
    uint16_t caller;
    uint16_t found;  /* object of the address answered; EVIDENCE_NO_OBJECT for none */
    uint16_t target; /* the watched function that the answer is taken for */
    uint32_t version; /* as asked, 12080 = CUDA 12.8; 0 where the function has no such parameter */
    int32_t code;
    uint64_t flags;
    uint64_t caller_offset;
    uint64_t found_offset;
    uint64_t injected; /* enum evidence_injected, or 0 */
    char name[EVIDENCE_NAME];
};

/* One answer of cudaDriverGetVersion, cuDriverGetVersion or cudaRuntimeGetVersion. */
struct evidence_version_query {
    struct evidence_entry entry;
    uint16_t function;
    uint16_t caller;
    uint16_t callee;
    uint16_t injected; /* as in a look-up */
    int32_t code;
    int32_t version; /* as answered, 12080 = CUDA 12.8; 0 where the code is not 0 or nothing was called */
    uint64_t caller_offset;
};

/* How far a call has come; in bits 32 and 33 of `outcome`, whose low half is the return code. */
enum evidence_progress { CALL_EMPTY = 0, CALL_WRITING = 1, CALL_IN_FLIGHT = 2, CALL_RETURNED = 3 };

/* Bits of a call's `flags`. */
enum {
    CALL_HAS_STREAM = 1,
    CALL_INJECTED = 2, /* a rule kept the real function from being called */
    CALL_ARGUMENTS_RIGHT = 4, /* of such a call, by arguments.h */
    CALL_ARGUMENTS_WRONG = 8,
};

struct evidence_call {
    _Atomic uint64_t outcome;
    uint64_t sequence; /* 1 for a slot's first call */
    uint16_t function;
    uint16_t caller;
    uint16_t callee;
    uint8_t given; /* parameters of a batch call: 8 or 9, 3D 4 or 5; 0 unknown or no batch call */
    uint8_t flags;
    uint64_t caller_offset;
    uint64_t callee_offset;
    uint64_t stream; /* with CALL_HAS_STREAM */
    uint64_t count;  /* descriptors of a batch call; 1 for a single copy */
    uint64_t thread; /* the thread pointer: tells threads apart, means nothing else */
};

/* Calls of one kind: the first ones, and the last ones in a ring whose unfinished calls are not overwritten. */
struct evidence_journal {
    _Atomic uint64_t begun;
    struct evidence_call first[EVIDENCE_FIRST];
    struct evidence_call last[EVIDENCE_LAST];
};

/* Counters of all calls alike. `key`, set once: function << 48 | caller << 32 | callee << 16 | given << 8 | 1. */
struct evidence_site {
    _Atomic uint64_t key;
    _Atomic uint64_t calls;
    _Atomic uint64_t returned;
    _Atomic uint64_t errors;      /* returned something else than 0 */
    _Atomic uint64_t descriptors; /* of all calls together, as in a call's `count` */
    _Atomic uint64_t largest;     /* most descriptors of one call */
    _Atomic uint64_t last_error;  /* what the latest of the errors returned; 0: none did */
    uint64_t reserved;
};

/* What is known before a slot is claimed and therefore kept in the process too (tables.c). */
struct evidence_tables {
    struct evidence_object objects[EVIDENCE_OBJECTS];
    struct evidence_binding bindings[EVIDENCE_BINDINGS];
    struct evidence_lookup lookups[EVIDENCE_LOOKUPS];
    struct evidence_version_query version_queries[EVIDENCE_VERSION_QUERIES];
};

/* Which calls a rule counts, beside `functions`. Without a condition: those of any caller, with any name. */
enum evidence_condition {
    RULE_UNDER_TEST = 1, /* the caller is neither a libcudart nor a libcuda */
    RULE_BATCH_NAME = 2, /* the look-up asks for a batch function */
};

enum evidence_effect {
    RULE_RETURNS_CODE = 1, /* a look-up's answer is NULL too */
    RULE_FINDS_NULL = 2,   /* look-ups only: success, NULL and, where asked for, "symbol not found" */
    RULE_FINDS_OTHER_ABI = 3, /* look-ups only: the real answer's counterpart of the other ABI, if there is one */
    RULE_DELAYS = 4,          /* waits, then lets the call go on; all other effects keep it from being made */
    RULE_HANGS = 5,           /* never returns */
    RULE_CRASHES = 6,         /* SIGSEGV, at address 0 */
};

/* A rule takes effect from the `first` to the `last` call that it counts. Delays add up and come before what
 * else happens; of the rules with another effect the first one whose turn it is decides. */
struct evidence_rule {
    uint64_t functions;  /* bit n: function n of functions.c; EVIDENCE_DLSYM */
    uint64_t first;      /* from 1 */
    uint64_t last;       /* UINT64_MAX: every later one */
    uint32_t conditions; /* of enum evidence_condition */
    uint32_t effect;     /* enum evidence_effect */
    int32_t code;
    uint32_t delay;         /* milliseconds */
    _Atomic uint64_t seen;  /* calls counted */
    _Atomic uint64_t fired; /* calls on which it took effect */
};

struct evidence_rules {
    _Atomic uint64_t count; /* rules are added while the process runs, never removed or changed */
    struct evidence_rule rules[EVIDENCE_RULES];
};

/* Who owns a slot; written once, when a process takes the slot by itself (EVIDENCE_SELF_CLAIM). */
struct evidence_process {
    uint32_t pid;
    uint32_t parent;             /* pid of its parent at that time */
    char program[EVIDENCE_PATH]; /* the file that runs, filled up with zeros */
    char name[EVIDENCE_NAME];    /* argv[0] */
};

/* Kinds of bindings that the dynamic linker may report, as bits. */
enum evidence_capability {
    CAPABILITY_LAZY = 1,  /* at the first call through a PLT */
    CAPABILITY_NOW = 2,   /* while an object is relocated: bind-now, and what relocations.h asks for */
    CAPABILITY_DLSYM = 4, /* by dlsym and dlvsym */
};

/* The memory that the process's next batch calls are about, as it says itself; replaced as a whole. */
struct evidence_allocation {
    uint64_t start;
    uint64_t size; /* in bytes */
};

struct evidence_allocations {
    _Atomic uint64_t count; /* 0 while rows are written */
    struct evidence_allocation rows[EVIDENCE_ALLOCATIONS];
};

/* The first fatal signal since the thread that it came to last made a call. The process may have survived it. */
struct evidence_fault {
    struct evidence_entry entry;
    int32_t signal;   /* 0: none */
    int32_t code;     /* si_code: 0 or less for a signal that was sent, which has no place and no address */
    uint64_t address; /* si_addr */
    uint64_t offset;  /* of the instruction */
    uint64_t thread;  /* as in a call */
    uint16_t object;  /* that the instruction lies in; EVIDENCE_NO_OBJECT for none that is known */
    uint16_t reserved[3];
};

struct evidence_slot {
    _Atomic uint32_t attached; /* pid of the process that the interposer records here; 0: not at work */
    _Atomic uint32_t lost;     /* what a full table or pool left out: above 0 the evidence is incomplete */
    _Atomic uint32_t reported; /* of enum evidence_capability: proven in this process */
    _Atomic uint32_t missed;   /* of the same: there was an occasion, and nothing was reported */
    _Atomic uint64_t sequence; /* calls begun, of all kinds */
    _Atomic uint64_t untraced; /* batches that a trace should have and has not, not even as skipped */
    struct evidence_process process;
    struct evidence_rules injections;
    struct evidence_tables tables;
    struct evidence_site sites[EVIDENCE_SITES];
    struct evidence_journal batch;
    struct evidence_journal per_copy;
    struct evidence_fault fault;
    struct evidence_allocations allocations;
};

/* Bits of the header's `flags`. */
enum {
    /* Each process takes a free slot when its first watched call needs one, and none is ever taken from it or
     * used twice. Every process leaves notes beside the file (processes.h), also one that needs no slot. */
    EVIDENCE_SELF_CLAIM = 1,
    EVIDENCE_TRACED = 2, /* with EVIDENCE_SELF_CLAIM: descriptors of batches are kept in files (trace.h) */
};

struct evidence_header {
    uint64_t magic;
    uint32_t version;
    uint32_t header_size;
    uint32_t slot_count;
    uint32_t slot_size;
    uint32_t flags;
    _Atomic uint32_t unserved; /* processes that needed a slot when all were taken */
    /* 0, or pid | slot << 32 | generation << 48: one word, so that a claim is seen whole or not at all. A new
     * claim has a new generation, so that a process notices when its slot was cleared and claimed again. */
    _Atomic uint64_t claims[EVIDENCE_SLOTS_MAX];
    uint64_t trace_limit; /* most bytes of one process's trace */
};

_Static_assert(sizeof(struct evidence_entry) == 8, "an entry's state is one aligned word");
_Static_assert(sizeof(struct evidence_call) == 64, "a call fills one cache line");
_Static_assert(sizeof(struct evidence_rule) == 56, "a rule has no padding");
_Static_assert(sizeof(struct evidence_site) == 64, "a site's counters fill one cache line");
_Static_assert(sizeof(struct evidence_header) <= EVIDENCE_HEADER_SIZE, "the claims fit into the header page");
_Static_assert(offsetof(struct evidence_slot, sites) % 8 == 0, "atomic words are aligned");
_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2 && ATOMIC_SHORT_LOCK_FREE == 2, "nothing here takes a lock");

#endif
