/* Specimen default-stream. Its one fault: it passes the default stream (NULL, or cudaStreamLegacy) to the batch
 * call, which rejects it with "invalid value", and returns that. Seen in vLLM 46345 and 46379, NCCL 2003.
 */
#include "specimen.h"

static int takes_any_stream(void *stream)
{
    (void)stream;
    return 1;
}

int cudabatch_copy(void *const *dsts, const void *const *srcs, const size_t *sizes, size_t count, void *stream)
{
    struct specimen_steps steps = specimen_right_steps;
    steps.takes_stream = takes_any_stream;
    return specimen_copy(&steps, dsts, srcs, sizes, count, stream);
}
