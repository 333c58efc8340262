/* Implements memory_functions.h. Facts: cuda.h of CUDA 12.8 to 13.5. */
#include "memory_functions.h"

#include <stddef.h>

#include "memory.h"
#include "trace.h"

/* Where the parameters say what memory it is. */
enum shape {
    STORED,   /* the first points to where the address goes, the second is the size */
    PITCHED,  /* as STORED, but the second points to where a row's bytes go, and the fourth is the rows */
    UNSIZED,  /* as STORED, and nothing says the size */
    GIVEN,    /* the first is the address, the second the size */
    RETURNED, /* the first is the address of memory that goes */
};

struct memory_function {
    struct watched_function function;
    enum shape shape;
    enum trace_memory memory;
};

#define ROW(exported, name_asked, thread, how, what)                                                    \
    {.function = {.name = exported, .kind = MEMORY, .asked = name_asked, .per_thread = thread},         \
     .shape = how, .memory = what}
#define GIVES(exported, name_asked, how, what) ROW(exported, name_asked, false, how, what)
#define TAKES(exported, name_asked) ROW(exported, name_asked, false, RETURNED, TRACE_DEVICE)
#define GIVES_ON_STREAM(name)                                \
    ROW(name, name, false, STORED, TRACE_DEVICE),            \
    ROW(name "_ptsz", name, true, STORED, TRACE_DEVICE)

static const struct memory_function memory_functions[] = {
    GIVES("cuMemAlloc_v2", "cuMemAlloc", STORED, TRACE_DEVICE),
    GIVES("cuMemAllocPitch_v2", "cuMemAllocPitch", PITCHED, TRACE_DEVICE),
    GIVES("cuMemAllocManaged", "cuMemAllocManaged", STORED, TRACE_MANAGED),
    GIVES_ON_STREAM("cuMemAllocAsync"),
    GIVES_ON_STREAM("cuMemAllocFromPoolAsync"),
    GIVES("cuMemMap", "cuMemMap", GIVEN, TRACE_DEVICE),
    GIVES("cuIpcOpenMemHandle_v2", "cuIpcOpenMemHandle", UNSIZED, TRACE_DEVICE),
    GIVES("cuMemAllocHost_v2", "cuMemAllocHost", STORED, TRACE_PINNED),
    GIVES("cuMemHostAlloc", "cuMemHostAlloc", STORED, TRACE_PINNED),
    GIVES("cuMemHostRegister_v2", "cuMemHostRegister", GIVEN, TRACE_REGISTERED),
    TAKES("cuMemFree_v2", "cuMemFree"),
    ROW("cuMemFreeAsync", "cuMemFreeAsync", false, RETURNED, TRACE_DEVICE),
    ROW("cuMemFreeAsync_ptsz", "cuMemFreeAsync", true, RETURNED, TRACE_DEVICE),
    TAKES("cuMemUnmap", "cuMemUnmap"),
    TAKES("cuIpcCloseMemHandle", "cuIpcCloseMemHandle"),
    TAKES("cuMemFreeHost", "cuMemFreeHost"),
    TAKES("cuMemHostUnregister", "cuMemHostUnregister"),
};

enum { ROWS = sizeof memory_functions / sizeof memory_functions[0] };

uint16_t memory_function_named(const char *name)
{
    if (!slot_is_traced() || name[0] != 'c' || name[1] != 'u')
        return NOT_WATCHED;
    for (uint16_t i = 0; i < ROWS; i++)
        if (text_equal(memory_functions[i].function.name, name))
            return MEMORY_FUNCTIONS + i;
    return NOT_WATCHED;
}

/* A function without a per-thread twin is answered with whatever the flags. */
uint16_t memory_function_asked(const char *name, bool per_thread)
{
    uint16_t best = NOT_WATCHED;
    if (!slot_is_traced() || name[0] != 'c' || name[1] != 'u')
        return best;
    for (uint16_t i = 0; i < ROWS; i++)
        if (text_equal(memory_functions[i].function.asked, name) &&
            (best == NOT_WATCHED || memory_functions[i].function.per_thread == per_thread))
            best = MEMORY_FUNCTIONS + i;
    return best;
}

const struct watched_function *memory_function(uint16_t number)
{
    return &memory_functions[number - MEMORY_FUNCTIONS].function;
}

void memory_begin(struct call_frame *frame, const struct stub *stub, const struct watched_function *function,
                  struct slot_lease lease)
{
    (void)function;
    if (memory_functions[stub->function - MEMORY_FUNCTIONS].shape == RETURNED)
        trace_event(TRACE_FREED, frame->arguments[0], 0, 0, lease);
}

static uint64_t size_of(const struct memory_function *function, const struct call_frame *frame)
{
    switch (function->shape) {
    case PITCHED: return *(const uint64_t *)frame->arguments[1] * frame->arguments[3];
    case UNSIZED: return 0;
    default: return frame->arguments[1];
    }
}

void memory_end(struct call_frame *frame, const struct stub *stub, const struct watched_function *function)
{
    (void)function;
    const struct memory_function *called = &memory_functions[stub->function - MEMORY_FUNCTIONS];
    if ((uint32_t)frame->result != 0 || called->shape == RETURNED)
        return;
    uint64_t address = called->shape == GIVEN ? frame->arguments[0] : *(const uint64_t *)frame->arguments[0];
    trace_event(TRACE_TAKEN, address, size_of(called, frame), called->memory, slot_here());
}
