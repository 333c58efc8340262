/* Specimen unchecked-null. Its one fault: it calls what cuGetProcAddress gave, though the look-up failed, or
 * said success and gave NULL: a jump to address 0 on every driver older than 12.8. vLLM's tests and
 * Fuser 4735 met such answers. It asks at 12080 and passes nine parameters, which is right.
 */
#include "specimen.h"

static int find_unchecked(struct specimen_functions *found)
{
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    void *batch = NULL;
    int status = 0;
    specimen_find_single_copies(found);
    if (driver == NULL)
        return CUDABATCH_SUCCESS;
    cudabatch_get_proc_address look_up =
        (cudabatch_get_proc_address)cudabatch_symbol(driver, "cuGetProcAddress_v2");
    if (look_up == NULL)
        return CUDABATCH_SUCCESS;
    (void)look_up("cuMemcpyBatchAsync", &batch, 12080, 0, &status);
    found->batch = cudabatch_as_function(batch);
    found->parameters = 9;
    return CUDABATCH_SUCCESS;
}

/* The driver's function needs a context, which a thread that has made no CUDA call does not have. */
int cudabatch_copy(void *const *dsts, const void *const *srcs, const size_t *sizes, size_t count, void *stream)
{
    struct specimen_steps steps = specimen_right_steps;
    struct cudabatch_functions contexts;
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    int borrowed;
    memset(&contexts, 0, sizeof contexts);
    if (driver != NULL)
        cudabatch_find_context_functions(&contexts, driver);
    steps.find = find_unchecked;
    int code = cudabatch_borrow_context(&contexts, stream, &borrowed);
    if (code == CUDABATCH_SUCCESS)
        code = specimen_copy(&steps, dsts, srcs, sizes, count, stream);
    return cudabatch_return_context(&contexts, borrowed, code);
}
