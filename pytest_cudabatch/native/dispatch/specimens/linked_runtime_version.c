/* Specimen linked-runtime-version. Its one fault: the version is that of the runtime which it is linked with,
 * while the function comes from whichever runtime dlsym finds first. Right in a process with one runtime; beside
 * another major version that was loaded RTLD_GLOBAL before it, the version says one ABI and the function has the
 * other. Where nothing visible exports the function, as beside a static runtime only, it copies one by one
 * without a word. This is the design that the field took for the mend of driver-version (the guard in
 * sgl-kernel's transfer.cu).
 *
 * The build links it with each kind of runtime: libcudart.so.12, libcudart.so.13, and static ones.
 */
#include "specimen.h"

/* The linked runtime's, whichever that is. */
int cudaRuntimeGetVersion(int *version);
int cudaMemcpyAsync(void *dst, const void *src, size_t size, int kind, void *stream);
int cudaGetLastError(void);

/* A call, and not the function's address: that it is seen does not hang on how the address is bound. */
static int copy_by_linked_runtime(void *dst, const void *src, size_t size, int kind, void *stream)
{
    return cudaMemcpyAsync(dst, src, size, kind, stream);
}

static int find_by_linked_version(struct specimen_functions *found)
{
    int version = 0;
    found->copy = copy_by_linked_runtime;
    found->last_error = cudaGetLastError;
    if (cudaRuntimeGetVersion(&version) != CUDABATCH_SUCCESS) {
        specimen_forget_error(found);
        return CUDABATCH_SUCCESS;
    }
    found->batch = cudabatch_symbol(RTLD_DEFAULT, "cudaMemcpyBatchAsync");
    if (found->batch != NULL)
        found->parameters = version >= 13000 ? 8 : 9;
    return CUDABATCH_SUCCESS;
}

int cudabatch_copy(void *const *dsts, const void *const *srcs, const size_t *sizes, size_t count, void *stream)
{
    struct specimen_steps steps = specimen_right_steps;
    steps.find = find_by_linked_version;
    return specimen_copy(&steps, dsts, srcs, sizes, count, stream);
}
