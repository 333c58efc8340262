/*
 * The table of functions.h. Facts: cuda.h and cuda_runtime_api.h of CUDA 12.8 to 13.5, and
 * cudaTypedefs.h, which says from which version on cuGetProcAddress answers with which variant.
 */
#include "functions.h"

#include <stddef.h>

#include "evidence.h"
#include "memory.h"

#define BATCH(exported, thread, name_asked, version)                                      \
    {.name = exported, .kind = BATCH_COPY, .stream_at = 7, .fail_at = 7, .count_at = 3,   \
     .per_thread = thread, .asked = name_asked, .since = version}
#define BATCH_3D(exported, thread, name_asked, version)                                   \
    {.name = exported, .kind = BATCH_COPY, .stream_at = 3, .fail_at = 2, .count_at = 0,   \
     .per_thread = thread, .asked = name_asked, .since = version}
#define COPY(exported, stream, thread, name_asked) \
    {.name = exported, .kind = SINGLE_COPY, .stream_at = stream, .per_thread = thread, .asked = name_asked}
#define VERSION(exported, name_asked) {.name = exported, .kind = VERSION_QUERY, .asked = name_asked}
#define STREAM(exported, what, name_asked) {.name = exported, .kind = what, .asked = name_asked}
#define LOOK_UP(exported, version, flags, status, thread, name_asked, first)                    \
    {.name = exported, .kind = LOOKUP, .version_at = version, .flags_at = flags,                \
     .status_at = status, .per_thread = thread, .asked = name_asked, .since = first}

const struct watched_function watched_functions[] = {
    BATCH("cudaMemcpyBatchAsync", false, NULL, 0),
    BATCH("cudaMemcpyBatchAsync_ptsz", true, NULL, 0),
    BATCH("cuMemcpyBatchAsync", false, "cuMemcpyBatchAsync", 0),
    BATCH("cuMemcpyBatchAsync_ptsz", true, "cuMemcpyBatchAsync", 0),
    BATCH("cuMemcpyBatchAsync_v2", false, "cuMemcpyBatchAsync", 13000),
    BATCH("cuMemcpyBatchAsync_v2_ptsz", true, "cuMemcpyBatchAsync", 13000),
    BATCH_3D("cudaMemcpy3DBatchAsync", false, NULL, 0),
    BATCH_3D("cudaMemcpy3DBatchAsync_ptsz", true, NULL, 0),
    BATCH_3D("cuMemcpy3DBatchAsync", false, "cuMemcpy3DBatchAsync", 0),
    BATCH_3D("cuMemcpy3DBatchAsync_ptsz", true, "cuMemcpy3DBatchAsync", 0),
    BATCH_3D("cuMemcpy3DBatchAsync_v2", false, "cuMemcpy3DBatchAsync", 13000),
    BATCH_3D("cuMemcpy3DBatchAsync_v2_ptsz", true, "cuMemcpy3DBatchAsync", 13000),
    COPY("cudaMemcpyAsync", 4, false, NULL),
    COPY("cudaMemcpyAsync_ptsz", 4, true, NULL),
    COPY("cudaMemcpyWithAttributesAsync", 4, false, NULL),
    COPY("cudaMemcpyWithAttributesAsync_ptsz", 4, true, NULL),
    COPY("cudaMemcpy3DWithAttributesAsync", 2, false, NULL),
    COPY("cudaMemcpy3DWithAttributesAsync_ptsz", 2, true, NULL),
    COPY("cuMemcpyAsync", 3, false, "cuMemcpyAsync"),
    COPY("cuMemcpyAsync_ptsz", 3, true, "cuMemcpyAsync"),
    COPY("cuMemcpyHtoDAsync_v2", 3, false, "cuMemcpyHtoDAsync"),
    COPY("cuMemcpyHtoDAsync_v2_ptsz", 3, true, "cuMemcpyHtoDAsync"),
    COPY("cuMemcpyDtoHAsync_v2", 3, false, "cuMemcpyDtoHAsync"),
    COPY("cuMemcpyDtoHAsync_v2_ptsz", 3, true, "cuMemcpyDtoHAsync"),
    COPY("cuMemcpyDtoDAsync_v2", 3, false, "cuMemcpyDtoDAsync"),
    COPY("cuMemcpyDtoDAsync_v2_ptsz", 3, true, "cuMemcpyDtoDAsync"),
    COPY("cuMemcpyWithAttributesAsync", 4, false, "cuMemcpyWithAttributesAsync"),
    COPY("cuMemcpyWithAttributesAsync_ptsz", 4, true, "cuMemcpyWithAttributesAsync"),
    COPY("cuMemcpy3DWithAttributesAsync", 2, false, "cuMemcpy3DWithAttributesAsync"),
    COPY("cuMemcpy3DWithAttributesAsync_ptsz", 2, true, "cuMemcpy3DWithAttributesAsync"),
    STREAM("cudaStreamCreate", STREAM_CREATE, NULL),
    STREAM("cudaStreamCreateWithFlags", STREAM_CREATE, NULL),
    STREAM("cudaStreamCreateWithPriority", STREAM_CREATE, NULL),
    STREAM("cudaExecutionCtxStreamCreate", STREAM_CREATE, NULL),
    STREAM("cuStreamCreate", STREAM_CREATE, "cuStreamCreate"),
    STREAM("cuStreamCreateWithPriority", STREAM_CREATE, "cuStreamCreateWithPriority"),
    STREAM("cuGreenCtxStreamCreate", STREAM_CREATE, "cuGreenCtxStreamCreate"),
    STREAM("cudaStreamDestroy", STREAM_DESTROY, NULL),
    STREAM("cuStreamDestroy", STREAM_DESTROY, NULL),
    STREAM("cuStreamDestroy_v2", STREAM_DESTROY, "cuStreamDestroy"),
    LOOK_UP("cuGetProcAddress", 2, 3, NO_PARAMETER, false, "cuGetProcAddress", 0),
    LOOK_UP("cuGetProcAddress_v2", 2, 3, 4, false, "cuGetProcAddress", 12000),
    LOOK_UP("cudaGetDriverEntryPoint", NO_PARAMETER, 2, 3, false, NULL, 0),
    LOOK_UP("cudaGetDriverEntryPoint_ptsz", NO_PARAMETER, 2, 3, true, NULL, 0),
    LOOK_UP("cudaGetDriverEntryPointByVersion", 2, 3, 4, false, NULL, 0),
    LOOK_UP("cudaGetDriverEntryPointByVersion_ptsz", 2, 3, 4, true, NULL, 0),
    VERSION("cudaDriverGetVersion", NULL),
    VERSION("cuDriverGetVersion", "cuDriverGetVersion"),
    VERSION("cudaRuntimeGetVersion", NULL),
    {.name = "dlsym", .kind = SYMBOL_LOOKUP},
    {.name = "dlvsym", .kind = SYMBOL_LOOKUP},
    {.name = NULL},
};

_Static_assert(sizeof watched_functions / sizeof watched_functions[0] - 1 <= EVIDENCE_DLSYM,
               "a rule has one bit for each function, and one for EVIDENCE_DLSYM");

static bool has_per_thread_twin(enum function_kind kind)
{
    return kind == BATCH_COPY || kind == SINGLE_COPY;
}

uint16_t function_named(const char *name)
{
    bool may_be = (name[0] == 'c' && name[1] == 'u') || (name[0] == 'd' && name[1] == 'l');
    if (!may_be) /* spares fifty comparisons for nearly all names */
        return NOT_WATCHED;
    for (uint16_t i = 0; watched_functions[i].name != NULL; i++)
        if (text_equal(watched_functions[i].name, name))
            return i;
    return NOT_WATCHED;
}

uint16_t function_asked(const char *name, uint32_t version, bool per_thread)
{
    uint16_t best = NOT_WATCHED;
    if (name[0] != 'c' || name[1] != 'u')
        return best;
    for (uint16_t i = 0; watched_functions[i].name != NULL; i++) {
        const struct watched_function *function = &watched_functions[i];
        if (function->asked == NULL || !text_equal(function->asked, name) || function->since > version)
            continue;
        if (has_per_thread_twin(function->kind) && function->per_thread != per_thread)
            continue;
        if (best == NOT_WATCHED || function->since >= watched_functions[best].since)
            best = i;
    }
    return best;
}

uint16_t function_of_other_abi(uint16_t function)
{
    const struct watched_function *one = &watched_functions[function];
    if (one->kind != BATCH_COPY || one->asked == NULL)
        return NOT_WATCHED;
    for (uint16_t i = 0; watched_functions[i].name != NULL; i++) {
        const struct watched_function *other = &watched_functions[i];
        if (other->kind == BATCH_COPY && other->asked != NULL && text_equal(other->asked, one->asked) &&
            other->per_thread == one->per_thread && other->since != one->since)
            return i;
    }
    return NOT_WATCHED;
}
