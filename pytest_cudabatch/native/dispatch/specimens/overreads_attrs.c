/* Specimen overreads-attrs. Its one fault: to find where an attribute ends it compares each size with the next one,
 * and so reads a size behind the last. What it finds there changes nothing.
 */
#include "specimen.h"

/* How many attributes it would take if each were for neighbours of one size. */
static size_t count_attributes(const size_t *sizes, size_t count)
{
    size_t attributes = 0;
    for (size_t i = 0; i < count; i++)
        attributes += ((const volatile size_t *)sizes)[i + 1] != sizes[i];
    return attributes;
}

int cudabatch_copy(void *const *dsts, const void *const *srcs, const size_t *sizes, size_t count, void *stream)
{
    if (count_attributes(sizes, count) > count) /* never: all copies get the one attribute that there is */
        return SPECIMEN_OUT_OF_MEMORY;
    return specimen_copy(&specimen_right_steps, dsts, srcs, sizes, count, stream);
}
