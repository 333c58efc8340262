/* Specimen fallback-ignores-errors. Its one fault: the loop that copies one by one looks at no return code and
 * says success, whatever became of the copies. Seen in vLLM, kvbm and sglang's JIT kernels. It leaves no
 * error behind.
 */
#include "specimen.h"

static int copy_each_unchecked(const struct specimen_functions *functions, const struct specimen_copies *copies,
                               void *stream)
{
    const int kind_default = 4; /* cudaMemcpyDefault */
    if (functions->copy == NULL)
        return CUDABATCH_NOT_INITIALIZED;
    for (size_t i = 0; i < copies->count; i++)
        if (functions->copy(copies->dsts[i], copies->srcs[i], copies->sizes[i], kind_default, stream) != 0)
            specimen_forget_error(functions);
    return CUDABATCH_SUCCESS;
}

int cudabatch_copy(void *const *dsts, const void *const *srcs, const size_t *sizes, size_t count, void *stream)
{
    struct specimen_steps steps = specimen_right_steps;
    steps.copy_each = copy_each_unchecked;
    return specimen_copy(&steps, dsts, srcs, sizes, count, stream);
}
