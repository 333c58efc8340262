/* Implementation "per-copy": what batches are compared with, a loop over cudaMemcpyAsync that skips empty
 * copies, stops at the first error and returns it, and leaves none behind.
 */
#include "single_copies.h"

int cudabatch_copy(void *const *dsts, const void *const *srcs, const size_t *sizes, size_t count, void *stream)
{
    const struct cudabatch_functions functions = find_single_copies();
    return cudabatch_enqueue_each(&functions, dsts, srcs, sizes, count, stream);
}
