/* Specimen preloaded-dlsym: right, and asks a dlsym that is not the C library's. That one answers with a function
 * of its own (dlsym_layer.c), which passes the call on, as GPU-sharing layers do. A real layer comes first in
 * every process by LD_PRELOAD; so that a cell can have one, this library is linked with it instead, and the
 * symbol's version makes it the layer's dlsym.
 */
#include "specimen.h"

int cudabatch_copy(void *const *dsts, const void *const *srcs, const size_t *sizes, size_t count, void *stream)
{
    return specimen_copy(&specimen_right_steps, dsts, srcs, sizes, count, stream);
}
