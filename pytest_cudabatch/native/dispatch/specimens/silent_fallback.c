/* Specimen silent-fallback. Its one fault: it asks the driver for the function by the runtime's name, which no
 * driver knows. So it always copies one by one, with right bytes, while it announces batches: what
 * sglang 36448's tests did not notice. It checks what the look-up says.
 */
#include "specimen.h"

static int find_by_wrong_name(struct specimen_functions *found)
{
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    void *batch = NULL;
    int status = 0;
    specimen_find_single_copies(found);
    if (driver == NULL)
        return CUDABATCH_SUCCESS;
    cudabatch_get_proc_address look_up =
        (cudabatch_get_proc_address)cudabatch_symbol(driver, "cuGetProcAddress_v2");
    if (look_up == NULL || look_up("cudaMemcpyBatchAsync", &batch, 12080, 0, &status) != CUDABATCH_SUCCESS)
        return CUDABATCH_SUCCESS;
    found->batch = cudabatch_as_function(batch);
    found->parameters = batch == NULL ? SPECIMEN_NO_BATCH : 9;
    return CUDABATCH_SUCCESS;
}

int cudabatch_copy(void *const *dsts, const void *const *srcs, const size_t *sizes, size_t count, void *stream)
{
    struct specimen_steps steps = specimen_right_steps;
    steps.find = find_by_wrong_name;
    return specimen_copy(&steps, dsts, srcs, sizes, count, stream);
}
