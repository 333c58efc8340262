/* The C entry point that every implementation library exports: what the tests call.
 *
 * Enqueues `count` copies of sizes[i] bytes from srcs[i] to dsts[i] on `stream` (a cudaStream_t) and
 * returns 0, or the CUDA error code. The arrays belong to the caller and are only read during the call.
 * A CUDA runtime and a driver are loaded. The calling thread may be one that has made no CUDA call yet.
 */
#ifndef CUDABATCH_ENTRY_POINT_H
#define CUDABATCH_ENTRY_POINT_H

#include <stddef.h>

__attribute__((visibility("default"))) int cudabatch_copy(void *const *dsts, const void *const *srcs,
                                                          const size_t *sizes, size_t count, void *stream);

#endif
