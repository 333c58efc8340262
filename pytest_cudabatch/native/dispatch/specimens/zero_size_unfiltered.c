/* Specimen zero-size-unfiltered. Its one fault: it passes empty copies on to the batch call, which then
 * rejects all of the batch with "invalid value". Seen in cuDF and rmm 2509.
 */
#include "specimen.h"

static int leave_all_in(struct specimen_copies *copies)
{
    (void)copies;
    return CUDABATCH_SUCCESS;
}

int cudabatch_copy(void *const *dsts, const void *const *srcs, const size_t *sizes, size_t count, void *stream)
{
    struct specimen_steps steps = specimen_right_steps;
    steps.leave_out_empty = leave_all_in;
    return specimen_copy(&steps, dsts, srcs, sizes, count, stream);
}
