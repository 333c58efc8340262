/* Specimen leaves-last-error. Its one fault: after a batch call that was not available it copies one by one,
 * rightly, but leaves the call's error in cudaGetLastError, where the caller's next launch check finds it.
 */
#include "specimen.h"

static void keep_error(const struct specimen_functions *functions)
{
    (void)functions;
}

int cudabatch_copy(void *const *dsts, const void *const *srcs, const size_t *sizes, size_t count, void *stream)
{
    struct specimen_steps steps = specimen_right_steps;
    steps.forget_error = keep_error;
    return specimen_copy(&steps, dsts, srcs, sizes, count, stream);
}
