/* Specimen off-by-one. Its one fault: the last copy that is not empty is one byte longer than asked for, on
 * whichever path, and overwrites what lies behind its destination.
 */
#include "specimen.h"

int cudabatch_copy(void *const *dsts, const void *const *srcs, const size_t *sizes, size_t count, void *stream)
{
    size_t last = count;
    while (last > 0 && sizes[last - 1] == 0)
        last--;
    if (last == 0)
        return CUDABATCH_SUCCESS;
    size_t *longer = malloc(count * sizeof *longer);
    if (longer == NULL)
        return SPECIMEN_OUT_OF_MEMORY;
    memcpy(longer, sizes, count * sizeof *longer);
    longer[last - 1]++;
    int code = specimen_copy(&specimen_right_steps, dsts, srcs, longer, count, stream);
    free(longer);
    return code;
}
