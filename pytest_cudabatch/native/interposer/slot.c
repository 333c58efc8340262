/* Implements slot.h: reads the environment, maps the file, and finds the process's claim. */
#include "slot.h"

#include <linux/mman.h>
#include <sys/stat.h>

#include "faults.h"
#include "memory.h"
#include "processes.h"
#include "system_calls.h"
#include "tables.h"

enum { PATH_BYTES = 4096, MEMORY_BYTES = 4096 };

static const char variable[] = "CUDABATCH_EVIDENCE=";

/* Set once by slot_open_file, before the program runs; read-only afterwards. */
static struct evidence_header *file;
static char file_path[PATH_BYTES];

/* A private page that the kernel empties in a forked child: the claim found last, and our pid. */
struct process_memory {
    _Atomic uint64_t claim; /* found or made last, or chosen to be made */
    _Atomic uint32_t pid;
    _Atomic uint32_t unserved; /* 1: all slots were taken */
};
static struct process_memory *memory;
static bool memory_is_wiped; /* false without MADV_WIPEONFORK: ask for the pid each time */

struct environment_reader {
    size_t matched;   /* characters of `variable` seen at the start of the current entry */
    bool mismatched;  /* the current entry is another variable */
    size_t length;
    bool found;
    char *path;
};

static void take_environment(struct environment_reader *reader, char c)
{
    if (reader->found)
        return;
    if (reader->matched == sizeof variable - 1) {
        reader->found = c == '\0' || reader->length == PATH_BYTES - 1;
        if (!reader->found)
            reader->path[reader->length++] = c;
    } else if (c == '\0') {
        reader->matched = 0;
        reader->mismatched = false;
    } else if (!reader->mismatched && c == variable[reader->matched]) {
        reader->matched++;
    } else {
        reader->mismatched = true;
    }
}

/* Reads the variable as exec gave it; `path` has PATH_BYTES bytes of zeros. */
static bool evidence_path(char *path)
{
    struct environment_reader reader = {.path = path};
    char piece[1024];
    int descriptor = system_open("/proc/self/environ", O_RDONLY);
    if (descriptor < 0)
        return false;
    long size;
    while (!reader.found && (size = system_read(descriptor, piece, sizeof piece)) > 0)
        for (long i = 0; i < size; i++)
            take_environment(&reader, piece[i]);
    system_close(descriptor);
    return reader.found && reader.length > 0;
}

static bool has_this_layout(const struct evidence_header *header, uint64_t file_size)
{
    return header->magic == EVIDENCE_MAGIC && header->version == EVIDENCE_VERSION &&
           header->header_size == EVIDENCE_HEADER_SIZE && header->slot_count <= EVIDENCE_SLOTS_MAX &&
           header->slot_size >= sizeof(struct evidence_slot) && header->slot_size % 8 == 0 &&
           file_size >= EVIDENCE_HEADER_SIZE + (uint64_t)header->slot_count * header->slot_size;
}

static struct evidence_header *map_file(const char *path)
{
    struct stat status;
    int descriptor = system_open(path, O_RDWR);
    if (descriptor < 0)
        return NULL;
    struct evidence_header *header = NULL;
    if (!system_failed(system_call(SYS_fstat, descriptor, (long)&status, 0, 0, 0, 0)) &&
        status.st_size >= EVIDENCE_HEADER_SIZE)
        header = system_map((size_t)status.st_size, MAP_SHARED, descriptor);
    system_close(descriptor);
    return header != NULL && has_this_layout(header, (uint64_t)status.st_size) ? header : NULL;
}

/* True where a forked child is sure to find the memory empty. Kernels refuse advice that they do not know; an
 * emulator that takes every advice for a hint, as qemu-user 7.2 does, is told by one that nobody knows. */
static bool wipe_on_fork(void *start, long size)
{
    enum { UNKNOWN_ADVICE = 0x7fff };
    return !system_failed(system_call(SYS_madvise, (long)start, size, MADV_WIPEONFORK, 0, 0, 0)) &&
           system_failed(system_call(SYS_madvise, (long)start, size, UNKNOWN_ADVICE, 0, 0, 0));
}

bool slot_open_file(void)
{
    if (!evidence_path(file_path))
        return false;
    memory = system_map(MEMORY_BYTES, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    if (memory == NULL)
        return false;
    memory_is_wiped = wipe_on_fork(memory, MEMORY_BYTES);
    file = map_file(file_path);
    return file != NULL;
}

static uint32_t own_pid(void)
{
    uint32_t pid = memory_is_wiped ? atomic_load_explicit(&memory->pid, memory_order_relaxed) : 0;
    if (pid == 0) {
        pid = system_getpid();
        atomic_store_explicit(&memory->pid, pid, memory_order_relaxed);
    }
    return pid;
}

static struct evidence_slot *slot_of(uint64_t claim)
{
    uint64_t index = claim >> 32 & 0xffff;
    return (struct evidence_slot *)((char *)file + EVIDENCE_HEADER_SIZE + index * file->slot_size);
}

static bool is_current(uint64_t claim)
{
    if (claim == 0 || (!memory_is_wiped && (uint32_t)claim != own_pid()))
        return false;
    return atomic_load_explicit(&file->claims[claim >> 32 & 0xffff], memory_order_acquire) == claim;
}

static uint64_t find_claim(void)
{
    uint32_t pid = own_pid();
    for (uint32_t i = 0; i < file->slot_count; i++) {
        uint64_t claim = atomic_load_explicit(&file->claims[i], memory_order_acquire);
        if ((uint32_t)claim == pid && (claim >> 32 & 0xffff) == i)
            return claim;
    }
    return 0;
}

/* The slot gets what was known before. An entry that another thread adds meanwhile is not lost: either it is
 * copied here, or that thread finds the claim, which is there before. */
static struct slot_lease begin(uint64_t claim)
{
    struct evidence_slot *slot = slot_of(claim);
    atomic_thread_fence(memory_order_seq_cst);
    tables_copy_to(slot);
    atomic_store(&slot->attached, (uint32_t)claim);
    faults_watch();
    return (struct slot_lease){slot, claim};
}

/* Several threads may come here at once; each does the same, and tables_copy_to copies an entry once. */
struct slot_lease slot_here(void)
{
    uint64_t claim = atomic_load(&memory->claim);
    if (is_current(claim))
        return (struct slot_lease){slot_of(claim), claim};
    claim = slot_is_self_claimed() ? 0 : find_claim();
    if (claim == 0)
        return (struct slot_lease){NULL, 0};
    struct slot_lease lease = begin(claim);
    atomic_store(&memory->claim, claim);
    return lease;
}

static uint64_t with_next_generation(uint64_t claim, uint32_t slot, uint32_t pid)
{
    return pid | (uint64_t)slot << 32 | ((claim >> 48) + 1) << 48;
}

/* A claim of the first free slot, not made yet; 0 where there is none. */
static uint64_t claim_of_free_slot(uint32_t pid)
{
    for (uint32_t i = 0; i < file->slot_count; i++) {
        uint64_t there = atomic_load(&file->claims[i]);
        if ((uint32_t)there == 0)
            return with_next_generation(there, i, pid);
    }
    return 0;
}

/* Makes the claim, whichever thread chose it; false where another process has taken that slot. */
static bool make(uint64_t claim)
{
    _Atomic uint64_t *place = &file->claims[claim >> 32 & 0xffff];
    uint64_t there = atomic_load(place);
    if (there == claim)
        return true;
    bool is_free = (uint32_t)there == 0 && (there >> 48) + 1 == claim >> 48;
    return is_free && (atomic_compare_exchange_strong(place, &there, claim) || there == claim);
}

/* The threads of a process agree on a claim first, in `memory`, and then each of them makes it: so a process
 * takes one slot, and never another one for a moment that a process beside it would miss. 0: none is free. */
static uint64_t take_slot(void)
{
    uint32_t pid = own_pid();
    uint64_t chosen = atomic_load(&memory->claim);
    while ((uint32_t)chosen != pid || !make(chosen)) {
        uint64_t before = chosen, next = claim_of_free_slot(pid);
        if (next != 0) {
            if (atomic_compare_exchange_strong(&memory->claim, &chosen, next))
                chosen = next;
            continue;
        }
        chosen = atomic_load(&memory->claim); /* what was the last free slot may be ours by now */
        if (chosen == before)
            return 0;
    }
    return chosen;
}

struct slot_lease slot_needed(void)
{
    struct slot_lease lease = slot_here();
    if (lease.slot != NULL || !slot_is_self_claimed() || atomic_load(&memory->unserved) != 0)
        return lease;
    uint64_t claim = take_slot();
    if (claim == 0) {
        if (atomic_exchange(&memory->unserved, 1) == 0)
            atomic_fetch_add(&file->unserved, 1);
        return lease;
    }
    struct evidence_process process;
    process_describe(&process);
    slot_of(claim)->process = process; /* whole, since several threads may come here; each writes the same */
    return begin(claim);
}

bool slot_is_self_claimed(void)
{
    return (file->flags & EVIDENCE_SELF_CLAIM) != 0;
}

bool slot_is_traced(void)
{
    return (file->flags & EVIDENCE_TRACED) != 0;
}

uint64_t slot_trace_limit(void)
{
    return file->trace_limit;
}

const char *slot_file_path(void)
{
    return file_path;
}
