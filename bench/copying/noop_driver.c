/* A libcuda.so.1 that does nothing: its batch function returns success at once.
 *
 * Whatever a call of an implementation costs on this driver is the implementation's own. It has only what
 * an implementation that asks the driver needs, and `cudabatch_copy`, the empty implementation, whose cost
 * is that of the call from Python.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

static int batch(void *const *dsts, const void *const *srcs, const size_t *sizes, size_t count, const void *attrs,
                 const size_t *indices, size_t attributes, size_t *fail_idx, void *stream)
{
    (void)dsts, (void)srcs, (void)sizes, (void)count, (void)attrs;
    (void)indices, (void)attributes, (void)fail_idx, (void)stream;
    return 0;
}

EXPORT int cuGetProcAddress_v2(const char *name, void **found, int version, uint64_t flags, int *status)
{
    int (*function)(void *const *, const void *const *, const size_t *, size_t, const void *, const size_t *, size_t,
                    size_t *, void *) = batch;
    (void)version, (void)flags;
    if (strcmp(name, "cuMemcpyBatchAsync") != 0)
        return 500; /* CUDA_ERROR_NOT_FOUND */
    *status = 0;
    memcpy(found, &function, sizeof *found);
    return 0;
}

EXPORT int cuCtxGetCurrent(void **context)
{
    *context = (void *)&batch;
    return 0;
}

/* Being called at all would mean that no batch was made: then the figures would be of something else. */
EXPORT int cuMemcpyAsync(void *dst, const void *src, size_t size, void *stream)
{
    (void)dst, (void)src, (void)size, (void)stream;
    return 801; /* CUDA_ERROR_NOT_SUPPORTED */
}

EXPORT int cudabatch_copy(void *const *dsts, const void *const *srcs, const size_t *sizes, size_t count, void *stream)
{
    (void)dsts, (void)srcs, (void)sizes, (void)count, (void)stream;
    return 0;
}
