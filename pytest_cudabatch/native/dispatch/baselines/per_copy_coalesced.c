/* Implementation "per-copy-coalesced": as per-copy, but copies that follow one another in the batch, and whose
 * ranges do so in the source and in the destination, are made as one.
 *
 * Two allocations may lie side by side by chance, and CUDA refuses a copy across them as an invalid value:
 * the parts of such a copy are then made one by one.
 */
#include "single_copies.h"

enum { INVALID_VALUE = 1 };

/* Copies first to end - 1 of the batch, which make one range of `size` bytes. */
struct run {
    size_t first, end, size;
};

/* The run that begins with copy `first`, which is not empty; empty copies in between belong to it. */
static struct run take_run(void *const *dsts, const void *const *srcs, const size_t *sizes, size_t count,
                           size_t first)
{
    struct run run = {first, first + 1, sizes[first]};
    uintptr_t dst = (uintptr_t)dsts[first], src = (uintptr_t)srcs[first];
    while (run.end < count && (sizes[run.end] == 0 || ((uintptr_t)dsts[run.end] == dst + run.size &&
                                                       (uintptr_t)srcs[run.end] == src + run.size)))
        run.size += sizes[run.end++];
    return run;
}

int cudabatch_copy(void *const *dsts, const void *const *srcs, const size_t *sizes, size_t count, void *stream)
{
    const struct cudabatch_functions functions = find_single_copies();
    size_t at = 0;
    while (at < count) {
        if (sizes[at] == 0) {
            at++;
            continue;
        }
        struct run run = take_run(dsts, srcs, sizes, count, at);
        int code = cudabatch_copy_one(&functions, dsts[at], srcs[at], run.size, stream);
        if (code == INVALID_VALUE && run.size != sizes[at])
            code = cudabatch_enqueue_each(&functions, dsts + at, srcs + at, sizes + at, run.end - at, stream);
        if (code != CUDABATCH_SUCCESS)
            return code;
        at = run.end;
    }
    return CUDABATCH_SUCCESS;
}
