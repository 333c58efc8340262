/* What both baselines copy with: cudaMemcpyAsync of the runtime that dlsym finds. */
#ifndef CUDABATCH_SINGLE_COPIES_H
#define CUDABATCH_SINGLE_COPIES_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* RTLD_DEFAULT */
#endif

#include "../cudabatch_dispatch.h"
#include "../entry_point.h"

/* No batch function is looked for. Found anew for each call: two look-ups, and no state. */
static inline struct cudabatch_functions find_single_copies(void)
{
    struct cudabatch_functions found;
    memset(&found, 0, sizeof found);
    found.runtime_copy = (cudabatch_runtime_copy)cudabatch_symbol(RTLD_DEFAULT, "cudaMemcpyAsync");
    found.last_error = (cudabatch_last_error)cudabatch_symbol(RTLD_DEFAULT, "cudaGetLastError");
    return found;
}

#endif
