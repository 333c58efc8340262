/* What every specimen does right, as steps. A specimen replaces one of them, and is wrong in that way only.
 *
 * The right steps take cudaMemcpyBatchAsync and its parameter list from one and the same libcudart. They copy
 * one by one where there is no such function, where its call answers that it is not available, and on the
 * legacy default stream, which the call rejects; they leave empty entries out, send all copies in one call in
 * stream order, check every return code and leave no error behind.
 *
 * A wrong call must fail each time, not by what happens to lie on the stack. So a batch call passes one word
 * more than the function takes: a callee that reads one parameter too many finds in it an address that no
 * memory can have. One that takes as many as given never looks at it (the caller cleans the stack in the
 * x86-64 and aarch64 calling conventions).
 */
#ifndef CUDABATCH_SPECIMEN_H
#define CUDABATCH_SPECIMEN_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* RTLD_DEFAULT */
#endif

#include <stdlib.h>

#include "../cudabatch_dispatch.h" /* for the types and numbers of CUDA's ABI, and its way to a runtime */
#include "../entry_point.h"

/* Non-canonical on x86-64, and above the user's half on aarch64: touching it faults. */
#define SPECIMEN_NO_ADDRESS ((uintptr_t)0xdead000000000000)

#define SPECIMEN_OUT_OF_MEMORY 2 /* cudaErrorMemoryAllocation */

/* As a number of parameters: there is no batch function, copy one by one. The other values are 8 and 9. */
#define SPECIMEN_NO_BATCH 0

typedef int (*specimen_batch9)(void *const *, const void *const *, const size_t *, size_t,
                               const struct cudabatch_attributes *, const size_t *, size_t, size_t *, void *,
                               uintptr_t beyond);
typedef int (*specimen_batch8)(void *const *, const void *const *, const size_t *, size_t,
                               const struct cudabatch_attributes *, const size_t *, size_t, void *,
                               uintptr_t beyond);

/* The functions to call. Where `parameters` is not SPECIMEN_NO_BATCH, `batch` gets called, whatever it is. */
struct specimen_functions {
    cudabatch_function batch;
    int parameters;
    cudabatch_runtime_copy copy;
    cudabatch_last_error last_error;
};

/* The copies to enqueue. The arrays are the caller's, or lie in `scratch`. */
struct specimen_copies {
    void *const *dsts;
    const void *const *srcs;
    const size_t *sizes;
    size_t count;
    void *scratch; /* to be freed; NULL where nothing had to be left out */
};

/* The steps, in the order in which they are taken. All codes are CUDA's, 0 is success. */
struct specimen_steps {
    /* Makes empty copies disappear. */
    int (*leave_out_empty)(struct specimen_copies *copies);
    /* Finds the functions; an error is the whole's. `found` is zeroed before. */
    int (*find)(struct specimen_functions *found);
    /* May the batch call get this stream? */
    int (*takes_stream)(void *stream);
    /* Does this answer of the batch call mean that there is no such thing here? */
    int (*is_unavailable)(int code);
    /* Clears the runtime's last error before copying one by one instead. */
    void (*forget_error)(const struct specimen_functions *functions);
    int (*copy_each)(const struct specimen_functions *functions, const struct specimen_copies *copies, void *stream);
};

/* ---- the right steps -------------------------------------------------------------------------- */

/* Moves the copies that are not empty into scratch memory, if there are others. */
static inline int specimen_leave_out_empty(struct specimen_copies *copies)
{
    size_t kept = 0;
    if (!cudabatch_has_empty(copies->sizes, copies->count))
        return CUDABATCH_SUCCESS;
    void **dsts = malloc(copies->count * (2 * sizeof(void *) + sizeof(size_t)));
    if (dsts == NULL)
        return SPECIMEN_OUT_OF_MEMORY;
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
    return CUDABATCH_SUCCESS;
}

/* Takes single copies and the last error from whichever runtime dlsym finds. */
static inline void specimen_find_single_copies(struct specimen_functions *found)
{
    found->copy = (cudabatch_runtime_copy)cudabatch_symbol(RTLD_DEFAULT, "cudaMemcpyAsync");
    found->last_error = (cudabatch_last_error)cudabatch_symbol(RTLD_DEFAULT, "cudaGetLastError");
}

/* Takes all of them from one runtime, whose version says how many parameters its batch function has. */
static inline int specimen_find_in_owner(struct specimen_functions *found)
{
    struct cudabatch_functions owner;
    memset(&owner, 0, sizeof owner);
    cudabatch_find_in_runtime(&owner, "libcudart.so.13", 13);
    if (owner.runtime_batch8 == NULL)
        cudabatch_find_in_runtime(&owner, "libcudart.so.12", 12);
    found->copy = owner.runtime_copy;
    found->last_error = owner.last_error;
    if (owner.runtime_batch8 != NULL) {
        found->batch = (cudabatch_function)owner.runtime_batch8;
        found->parameters = 8;
    } else if (owner.runtime_batch9 != NULL) {
        found->batch = (cudabatch_function)owner.runtime_batch9;
        found->parameters = 9;
    }
    return CUDABATCH_SUCCESS;
}

static inline int specimen_takes_stream(void *stream)
{
    return (uintptr_t)stream > 1; /* neither NULL nor cudaStreamLegacy */
}

static inline void specimen_forget_error(const struct specimen_functions *functions)
{
    if (functions->last_error != NULL)
        (void)functions->last_error();
}

static inline int specimen_copy_each(const struct specimen_functions *functions, const struct specimen_copies *copies,
                                     void *stream)
{
    const int kind_default = 4; /* cudaMemcpyDefault */
    if (functions->copy == NULL)
        return CUDABATCH_NOT_INITIALIZED;
    for (size_t i = 0; i < copies->count; i++) {
        int code = functions->copy(copies->dsts[i], copies->srcs[i], copies->sizes[i], kind_default, stream);
        if (code != CUDABATCH_SUCCESS) {
            specimen_forget_error(functions);
            return code;
        }
    }
    return CUDABATCH_SUCCESS;
}

static const struct specimen_steps specimen_right_steps = {
    .leave_out_empty = specimen_leave_out_empty,
    .find = specimen_find_in_owner,
    .takes_stream = specimen_takes_stream,
    .is_unavailable = cudabatch_is_unavailable,
    .forget_error = specimen_forget_error,
    .copy_each = specimen_copy_each,
};

/* ---- a wrong one that several specimens share -------------------------------------------------- */

/* Takes whatever batch function dlsym finds, and believes that it has so many parameters. */
static inline int specimen_find_by_name(struct specimen_functions *found, int parameters)
{
    specimen_find_single_copies(found);
    found->batch = cudabatch_symbol(RTLD_DEFAULT, "cudaMemcpyBatchAsync");
    found->parameters = found->batch == NULL ? SPECIMEN_NO_BATCH : parameters;
    return CUDABATCH_SUCCESS;
}

/* ---- taking them ------------------------------------------------------------------------------ */

static inline int specimen_call(const struct specimen_functions *functions, const struct specimen_copies *copies,
                                void *stream)
{
    const struct cudabatch_attributes in_stream_order = {.src_access_order = 1};
    const size_t first = 0;
    size_t fail_idx = SIZE_MAX;
    if (functions->parameters == 9)
        return ((specimen_batch9)functions->batch)(copies->dsts, copies->srcs, copies->sizes, copies->count,
                                                   &in_stream_order, &first, 1, &fail_idx, stream,
                                                   SPECIMEN_NO_ADDRESS);
    return ((specimen_batch8)functions->batch)(copies->dsts, copies->srcs, copies->sizes, copies->count,
                                               &in_stream_order, &first, 1, stream, SPECIMEN_NO_ADDRESS);
}

static inline int specimen_enqueue(const struct specimen_steps *steps, const struct specimen_copies *copies,
                                   void *stream)
{
    struct specimen_functions functions = {NULL, SPECIMEN_NO_BATCH, NULL, NULL};
    if (copies->count == 0)
        return CUDABATCH_SUCCESS;
    int code = steps->find(&functions);
    if (code != CUDABATCH_SUCCESS)
        return code;
    if (functions.parameters == SPECIMEN_NO_BATCH || !steps->takes_stream(stream))
        return steps->copy_each(&functions, copies, stream);
    code = specimen_call(&functions, copies, stream);
    if (code == CUDABATCH_SUCCESS)
        return code;
    if (steps->is_unavailable(code)) {
        steps->forget_error(&functions);
        return steps->copy_each(&functions, copies, stream);
    }
    specimen_forget_error(&functions);
    return code;
}

static inline int specimen_copy(const struct specimen_steps *steps, void *const *dsts, const void *const *srcs,
                                const size_t *sizes, size_t count, void *stream)
{
    struct specimen_copies copies = {dsts, srcs, sizes, count, NULL};
    int code = steps->leave_out_empty(&copies);
    if (code == CUDABATCH_SUCCESS)
        code = specimen_enqueue(steps, &copies, stream);
    free(copies.scratch);
    return code;
}

#endif
