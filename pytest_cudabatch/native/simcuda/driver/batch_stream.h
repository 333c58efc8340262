/*
 * The stream of a batch call, flat or 3D.
 */
#ifndef CUDABATCH_DRIVER_BATCH_STREAM_H
#define CUDABATCH_DRIVER_BATCH_STREAM_H

#include "../engine/streams.h"

/*
 * Resolves the stream of a batch, and says whether this thread may use it: unlike a single copy the batch
 * call needs a current context even for a stream that has one, and says so by CUDA_INVALID_VALUE, with
 * failIdx SIZE_MAX (measured). The handle is read first, so that a false one faults whatever the thread has.
 * Assumed: a default stream is CUDA_INVALID_CONTEXT, as for a single copy.
 */
int batch_stream(void *handle, enum null_stream null_stream, struct stream **stream);

#endif
