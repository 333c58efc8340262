/* Specimen swapped-pages. Its one fault: of the first two copies of one size that lie close together in the
 * batch, each goes where the other should, on whichever path. No guard byte is touched; a batch without
 * two such copies comes right.
 */
#include "specimen.h"

/* How far apart in the batch two pages are looked for: more than the different sizes of any test's plan. */
enum { NEIGHBOURHOOD = 32 };

static void swap_first_two_alike(void **dsts, const size_t *sizes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (size_t j = i + 1; j < count && j - i <= NEIGHBOURHOOD; j++)
            if (sizes[i] != 0 && sizes[i] == sizes[j]) {
                void *other = dsts[j];
                dsts[j] = dsts[i];
                dsts[i] = other;
                return;
            }
}

int cudabatch_copy(void *const *dsts, const void *const *srcs, const size_t *sizes, size_t count, void *stream)
{
    if (count == 0)
        return CUDABATCH_SUCCESS;
    void **swapped = malloc(count * sizeof *swapped);
    if (swapped == NULL)
        return SPECIMEN_OUT_OF_MEMORY;
    memcpy(swapped, dsts, count * sizeof *swapped);
    swap_first_two_alike(swapped, sizes, count);
    int code = specimen_copy(&specimen_right_steps, swapped, srcs, sizes, count, stream);
    free(swapped);
    return code;
}
