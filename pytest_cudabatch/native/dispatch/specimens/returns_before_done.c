/* Specimen returns-before-done. Its one fault: it copies on a stream of its own for which the stream that it was
 * given does not wait, so that cudaStreamSynchronize on that one returns before the copies are done. They do wait
 * for what the caller had queued.
 */
#include "side_stream.h"

int cudabatch_copy(void *const *dsts, const void *const *srcs, const size_t *sizes, size_t count, void *stream)
{
    const struct side_stream *own = side_stream_for(stream);
    if (own == NULL)
        return specimen_copy(&specimen_right_steps, dsts, srcs, sizes, count, stream);
    int code = own->code;
    if (code == CUDABATCH_SUCCESS)
        code = side_stream_order(own, stream, own->stream);
    if (code != CUDABATCH_SUCCESS)
        return code;
    return specimen_copy(&specimen_right_steps, dsts, srcs, sizes, count, own->stream);
}
