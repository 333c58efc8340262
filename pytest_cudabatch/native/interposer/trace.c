/* Implements trace.h. */
#include "trace.h"

#include <sys/uio.h>

#include "objects.h"
#include "system_calls.h"

enum {
    PATH_BYTES = 4096 + 32,
    DESCRIPTORS_MAX = 1 << 24, /* more are a wrong argument, or no batch */
    ATTRIBUTE_BYTES = 24,
    DESTINATIONS = 0, /* indexes of a batch call's parameters */
    SOURCES = 1,
    SIZES = 2,
    COUNT = 3,
    ATTRIBUTES = 4,
    FIRST_COPIES = 5,
    ATTRIBUTE_COUNT = 6,
    PIECES = 6
};

/* <evidence file>.trace.<slot>, which has at most three digits. */
static void trace_path(char *path, uint64_t slot)
{
    static const char suffix[] = ".trace.";
    const char *file = slot_file_path();
    char digits[4];
    size_t length = 0, count = 0;
    for (; file[length] != '\0'; length++)
        path[length] = file[length];
    for (size_t i = 0; suffix[i] != '\0'; i++)
        path[length++] = suffix[i];
    do {
        digits[count++] = (char)('0' + slot % 10);
        slot /= 10;
    } while (slot > 0 && count < sizeof digits);
    while (count > 0)
        path[length++] = digits[--count];
    path[length] = '\0';
}

/* A descriptor of this process's trace, or a negative number where it is as large as it may be. */
static int open_trace(struct slot_lease lease)
{
    char path[PATH_BYTES];
    trace_path(path, lease.claim >> 32 & 0xffff);
    long descriptor =
        system_call(SYS_openat, AT_FDCWD, (long)path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600, 0, 0);
    if (system_failed(descriptor))
        return -1;
    long size = system_call(SYS_lseek, descriptor, 0, 2 /* SEEK_END */, 0, 0, 0);
    if (!system_failed(size) && (uint64_t)size < slot_trace_limit())
        return (int)descriptor;
    system_close((int)descriptor);
    return -1;
}

static void append(const struct trace_record *record, struct slot_lease lease)
{
    int descriptor = open_trace(lease);
    if (descriptor < 0)
        return;
    system_call(SYS_write, descriptor, (long)record, sizeof *record, 0, 0, 0);
    system_close(descriptor);
}

void trace_event(enum trace_kind kind, uint64_t value, uint64_t count, uint64_t attributes, struct slot_lease lease)
{
    struct trace_record record = {
        .magic = TRACE_MAGIC, .kind = kind, .value = value, .count = count, .attributes = attributes};
    if (lease.slot != NULL && slot_is_traced())
        append(&record, lease);
}

void trace_returned(uint64_t sequence, uint32_t code, struct slot_lease lease)
{
    struct trace_record record = {
        .magic = TRACE_MAGIC, .kind = TRACE_RETURNED, .sequence = sequence, .value = code};
    if (code != 0 && lease.slot != NULL && slot_is_traced())
        append(&record, lease);
}

static struct iovec piece(uint64_t address, uint64_t size)
{
    return (struct iovec){(void *)address, size};
}

/* Whether all of the batch was written; what was not is said in the trace. */
static bool write_batch(int descriptor, struct trace_record *record, const struct call_frame *frame)
{
    uint64_t words = record->count * sizeof(uint64_t);
    struct iovec pieces[PIECES] = {
        piece((uint64_t)record, sizeof *record),
        piece(frame->arguments[DESTINATIONS], words),
        piece(frame->arguments[SOURCES], words),
        piece(frame->arguments[SIZES], words),
        piece(frame->arguments[ATTRIBUTES], record->attributes * ATTRIBUTE_BYTES),
        piece(frame->arguments[FIRST_COPIES], record->attributes * sizeof(uint64_t)),
    };
    uint64_t whole = 0;
    for (int i = 0; i < PIECES; i++)
        whole += pieces[i].iov_len;
    long written = system_call(SYS_writev, descriptor, (long)pieces, PIECES, 0, 0, 0);
    if (!system_failed(written) && (uint64_t)written == whole)
        return true;
    record->kind = system_failed(written) ? TRACE_SKIPPED : TRACE_CUT;
    record->value = system_failed(written) ? 0 : (uint64_t)written;
    return false;
}

void trace_batch(const struct call_frame *frame, const struct evidence_call *call, struct slot_lease lease)
{
    if (!slot_is_traced() || !object_is_under_test(call->caller))
        return;
    struct trace_record record = {
        .magic = TRACE_MAGIC,
        .kind = TRACE_BATCH,
        .function = call->function,
        .sequence = call->sequence,
        .value = call->stream,
        .count = call->count,
        .attributes = call_argument(frame, ATTRIBUTE_COUNT),
        .thread = call->thread,
        .given = call->given,
        .flags = call->flags,
    };
    int descriptor = open_trace(lease);
    if (descriptor < 0) {
        atomic_fetch_add(&lease.slot->untraced, 1);
        return;
    }
    bool sensible = watched_functions[call->function].count_at == COUNT && /* 3D batches have other operands */
                    record.count <= DESCRIPTORS_MAX && record.attributes <= DESCRIPTORS_MAX;
    if (!sensible)
        record.kind = TRACE_SKIPPED;
    if (!sensible || !write_batch(descriptor, &record, frame))
        system_call(SYS_write, descriptor, (long)&record, sizeof record, 0, 0, 0);
    system_close(descriptor);
}
