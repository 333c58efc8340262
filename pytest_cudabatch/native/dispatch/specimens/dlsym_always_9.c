/* Specimen dlsym-always-9. Its one fault: it was compiled against CUDA 12.8 or 12.9 and calls with nine
 * parameters, whatever dlsym finds: wrong on every 13.x runtime. Such a choice at compile time was
 * seen in sglang 36302 and 36448 and in flashinfer 5145.
 */
#include "specimen.h"

static int find_with_nine(struct specimen_functions *found)
{
    return specimen_find_by_name(found, 9);
}

int cudabatch_copy(void *const *dsts, const void *const *srcs, const size_t *sizes, size_t count, void *stream)
{
    struct specimen_steps steps = specimen_right_steps;
    steps.find = find_with_nine;
    return specimen_copy(&steps, dsts, srcs, sizes, count, stream);
}
