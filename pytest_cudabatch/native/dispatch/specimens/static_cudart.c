/* Specimen static-cudart: right, with a runtime of its own embedded, of CUDA 12.8 and with hidden functions, as a
 * static libcudart has them. It takes cuGetProcAddress_v2 from the driver by dlsym, asks it for the functions of
 * its own version, and calls those: only where they are handed out can it be seen.
 */
#include "specimen.h"

/* ---- the embedded runtime ---------------------------------------------------------------------- */

/* Hidden as in the archive; named as there, so that a backtrace shows the same. */
int cudaMemcpyBatchAsync(void *const *dsts, const void *const *srcs, const size_t *sizes, size_t count,
                         const struct cudabatch_attributes *attributes, const size_t *indices,
                         size_t attribute_count, size_t *fail_idx, void *stream);
int cudaMemcpyAsync(void *dst, const void *src, size_t size, int kind, void *stream);
int cudaGetLastError(void);

static __thread int last_error;

static struct cudabatch_functions driver_functions(void)
{
    struct cudabatch_functions driver;
    memset(&driver, 0, sizeof driver);
    cudabatch_find_in_driver(&driver);
    return driver;
}

static int keep(int code)
{
    if (code != CUDABATCH_SUCCESS)
        last_error = code;
    return code;
}

int cudaGetLastError(void)
{
    int code = last_error;
    last_error = CUDABATCH_SUCCESS;
    return code;
}

int cudaMemcpyBatchAsync(void *const *dsts, const void *const *srcs, const size_t *sizes, size_t count,
                         const struct cudabatch_attributes *attributes, const size_t *indices,
                         size_t attribute_count, size_t *fail_idx, void *stream)
{
    struct cudabatch_functions driver = driver_functions();
    int borrowed;
    if (driver.driver_batch9 == NULL)
        return keep(CUDABATCH_NEEDS_NEWER_DRIVER);
    int code = cudabatch_borrow_context(&driver, stream, &borrowed);
    if (code == CUDABATCH_SUCCESS)
        code = driver.driver_batch9(dsts, srcs, sizes, count, attributes, indices, attribute_count, fail_idx, stream);
    return keep(cudabatch_return_context(&driver, borrowed, code));
}

int cudaMemcpyAsync(void *dst, const void *src, size_t size, int kind, void *stream)
{
    struct cudabatch_functions driver = driver_functions();
    int borrowed;
    (void)kind; /* always by the addresses */
    if (driver.driver_copy == NULL)
        return keep(CUDABATCH_NO_DRIVER);
    int code = cudabatch_borrow_context(&driver, stream, &borrowed);
    if (code == CUDABATCH_SUCCESS)
        code = driver.driver_copy(dst, src, size, stream);
    return keep(cudabatch_return_context(&driver, borrowed, code));
}

/* ---- the implementation, linked with it ---------------------------------------------------------- */

static int find_in_embedded(struct specimen_functions *found)
{
    found->batch = (cudabatch_function)cudaMemcpyBatchAsync;
    found->parameters = 9;
    found->copy = cudaMemcpyAsync;
    found->last_error = cudaGetLastError;
    return CUDABATCH_SUCCESS;
}

int cudabatch_copy(void *const *dsts, const void *const *srcs, const size_t *sizes, size_t count, void *stream)
{
    struct specimen_steps steps = specimen_right_steps;
    steps.find = find_in_embedded;
    return specimen_copy(&steps, dsts, srcs, sizes, count, stream);
}
