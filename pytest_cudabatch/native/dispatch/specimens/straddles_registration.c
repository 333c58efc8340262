/* Specimen straddles-registration. Its one fault: it merges copies that follow one another, in the batch and in both
 * memories, into one, and does not ask whether they lie in one allocation or registered range. CUDA refuses a copy
 * that reaches from one into the next, and with it the batch (sglang 26691, 36798).
 */
#include "specimen.h"

/* Does copy `next` begin in both memories where a copy of `size` bytes from `at` on ends? */
static int follows(void *const *dsts, const void *const *srcs, size_t at, size_t size, size_t next)
{
    return (uintptr_t)dsts[next] == (uintptr_t)dsts[at] + size && (uintptr_t)srcs[next] == (uintptr_t)srcs[at] + size;
}

int cudabatch_copy(void *const *dsts, const void *const *srcs, const size_t *sizes, size_t count, void *stream)
{
    size_t kept = 0;
    if (count == 0)
        return CUDABATCH_SUCCESS;
    void **merged = malloc(count * (2 * sizeof(void *) + sizeof(size_t)));
    if (merged == NULL)
        return SPECIMEN_OUT_OF_MEMORY;
    const void **sources = (const void **)(merged + count);
    size_t *lengths = (size_t *)(sources + count);
    for (size_t i = 0; i < count; kept++) {
        merged[kept] = dsts[i];
        sources[kept] = srcs[i];
        lengths[kept] = sizes[i];
        size_t first = i++;
        while (i < count && sizes[i] != 0 && follows(dsts, srcs, first, lengths[kept], i))
            lengths[kept] += sizes[i++];
    }
    int code = specimen_copy(&specimen_right_steps, merged, sources, lengths, kept, stream);
    free(merged);
    return code;
}
