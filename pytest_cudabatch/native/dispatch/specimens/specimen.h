/* What every specimen does right, so that each is wrong in one way only.
 *
 * A specimen takes cudaMemcpyBatchAsync by dlsym(RTLD_DEFAULT), as extensions in the field do. It copies
 * one by one where the symbol is absent, where the call answers "needs a newer driver" or "not
 * supported", and on the legacy default stream, which the call rejects; it leaves empty entries out,
 * sends all copies in one call in stream order, checks every return code and leaves no error behind.
 *
 * A wrong call must fail each time, not by what happens to lie on the stack. So both calls below pass
 * one word more than the function takes: a callee that reads one parameter too many finds in it an
 * address that no memory can have. One that takes as many as given never looks at it (the caller cleans
 * the stack in the x86-64 and aarch64 calling conventions).
 */
#ifndef CUDABATCH_SPECIMEN_H
#define CUDABATCH_SPECIMEN_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* RTLD_DEFAULT */
#endif

#include <stdlib.h>

#include "../cudabatch_dispatch.h" /* for the types and numbers of CUDA's ABI, not for its choices */
#include "../entry_point.h"

/* Non-canonical on x86-64, and above the user's half on aarch64: touching it faults. */
#define SPECIMEN_NO_ADDRESS ((uintptr_t)0xdead000000000000)

#define SPECIMEN_OUT_OF_MEMORY 2 /* cudaErrorMemoryAllocation */

/* What an unclear decision gives: copy one by one. The other values are 8 and 9. */
#define SPECIMEN_NO_BATCH 0

typedef int (*specimen_batch9)(void *const *, const void *const *, const size_t *, size_t,
                               const struct cudabatch_attributes *, const size_t *, size_t, size_t *, void *,
                               uintptr_t beyond);
typedef int (*specimen_batch8)(void *const *, const void *const *, const size_t *, size_t,
                               const struct cudabatch_attributes *, const size_t *, size_t, void *,
                               uintptr_t beyond);

/* The copies to enqueue, without empty ones. The arrays are the caller's, or lie in `scratch`. */
struct specimen_copies {
    void *const *dsts;
    const void *const *srcs;
    const size_t *sizes;
    size_t count;
    void *scratch; /* to be freed; NULL where nothing had to be left out */
};

/* Calls cudaMemcpyBatchAsync with as many parameters as the specimen believes in, 8 or 9. */
static inline int specimen_call(cudabatch_function batch, int parameters, const struct specimen_copies *copies,
                                void *stream)
{
    const struct cudabatch_attributes in_stream_order = {.src_access_order = 1};
    const size_t first = 0;
    size_t fail_idx = SIZE_MAX;
    if (parameters == 9)
        return ((specimen_batch9)batch)(copies->dsts, copies->srcs, copies->sizes, copies->count, &in_stream_order,
                                        &first, 1, &fail_idx, stream, SPECIMEN_NO_ADDRESS);
    return ((specimen_batch8)batch)(copies->dsts, copies->srcs, copies->sizes, copies->count, &in_stream_order,
                                    &first, 1, stream, SPECIMEN_NO_ADDRESS);
}

static inline void specimen_clear_last_error(void)
{
    cudabatch_last_error last_error =
        (cudabatch_last_error)cudabatch_symbol(RTLD_DEFAULT, "cudaGetLastError");
    if (last_error != NULL)
        (void)last_error();
}

static inline int specimen_copy_each(const struct specimen_copies *copies, void *stream)
{
    const int kind_default = 4; /* cudaMemcpyDefault */
    cudabatch_runtime_copy copy = (cudabatch_runtime_copy)cudabatch_symbol(RTLD_DEFAULT, "cudaMemcpyAsync");
    if (copy == NULL)
        return CUDABATCH_NOT_INITIALIZED;
    for (size_t i = 0; i < copies->count; i++) {
        int code = copy(copies->dsts[i], copies->srcs[i], copies->sizes[i], kind_default, stream);
        if (code != CUDABATCH_SUCCESS) {
            specimen_clear_last_error();
            return code;
        }
    }
    return CUDABATCH_SUCCESS;
}

/* Moves the copies that are not empty into scratch memory. Returns 0 when there is none to be had. */
static inline int specimen_leave_out_empty(struct specimen_copies *copies)
{
    size_t kept = 0;
    void **dsts = malloc(copies->count * (2 * sizeof(void *) + sizeof(size_t)));
    if (dsts == NULL)
        return 0;
    const void **srcs = (const void **)(dsts + copies->count);
    size_t *sizes = (size_t *)(srcs + copies->count);
    for (size_t i = 0; i < copies->count; i++) {
        if (copies->sizes[i] == 0)
            continue;
        dsts[kept] = copies->dsts[i];
        srcs[kept] = copies->srcs[i];
        sizes[kept++] = copies->sizes[i];
    }
    *copies = (struct specimen_copies){dsts, srcs, sizes, kept, dsts};
    return 1;
}

static inline int specimen_enqueue(int parameters, const struct specimen_copies *copies, void *stream)
{
    cudabatch_function batch = cudabatch_symbol(RTLD_DEFAULT, "cudaMemcpyBatchAsync");
    int on_default_stream = (uintptr_t)stream <= 1;
    if (copies->count == 0)
        return CUDABATCH_SUCCESS;
    if (batch == NULL || parameters == SPECIMEN_NO_BATCH || on_default_stream)
        return specimen_copy_each(copies, stream);
    int code = specimen_call(batch, parameters, copies, stream);
    if (code == CUDABATCH_SUCCESS)
        return code;
    specimen_clear_last_error();
    return cudabatch_is_unavailable(code) ? specimen_copy_each(copies, stream) : code;
}

/* The whole of a specimen but its choice: `parameters` is 8, 9 or SPECIMEN_NO_BATCH. */
static inline int specimen_copy(int parameters, void *const *dsts, const void *const *srcs, const size_t *sizes,
                                size_t count, void *stream)
{
    struct specimen_copies copies = {dsts, srcs, sizes, count, NULL};
    if (cudabatch_has_empty(sizes, count) && !specimen_leave_out_empty(&copies))
        return SPECIMEN_OUT_OF_MEMORY;
    int code = specimen_enqueue(parameters, &copies, stream);
    free(copies.scratch);
    return code;
}

#endif
