/* Specimen no-capture-check. Its one fault: it takes 900, the answer of the batch call while the stream is captured,
 * for success, as if the copies were part of the graph now. They are not (rmm 2518, cuopt 1753).
 */
#include "specimen.h"

int cudabatch_copy(void *const *dsts, const void *const *srcs, const size_t *sizes, size_t count, void *stream)
{
    const int capture_unsupported = 900; /* cudaErrorStreamCaptureUnsupported */
    int code = specimen_copy(&specimen_right_steps, dsts, srcs, sizes, count, stream);
    return code == capture_unsupported ? CUDABATCH_SUCCESS : code;
}
