/* Specimen missing-order. Its one fault: it copies on a stream of its own which does not wait for the stream that
 * it was given, so that sources are read before the work that writes them (vLLM 45704). What the caller queues
 * afterwards does wait for the copies.
 */
#include "side_stream.h"

int cudabatch_copy(void *const *dsts, const void *const *srcs, const size_t *sizes, size_t count, void *stream)
{
    const struct side_stream *own = side_stream_for(stream);
    if (own == NULL)
        return specimen_copy(&specimen_right_steps, dsts, srcs, sizes, count, stream);
    if (own->code != CUDABATCH_SUCCESS)
        return own->code;
    int code = specimen_copy(&specimen_right_steps, dsts, srcs, sizes, count, own->stream);
    int ordered = side_stream_order(own, own->stream, stream); /* also behind the copies before one that failed */
    return code == CUDABATCH_SUCCESS ? ordered : code;
}
