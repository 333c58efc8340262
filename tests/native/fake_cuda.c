/* A CUDA of host memory that answers as a test tells it: the answers that no driver gives on request.
 *
 * Built three times: with FAKE_DRIVER as libcuda.so.1, with FAKE_RUNTIME=12 or 13 as libcudart. The test
 * writes the fake_* variables below before the first call and reads the counters afterwards, in one
 * thread. Copies are made at once. A batch call checks its arguments and answers 1 for a wrong one.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

/* What the test asks for. */
EXPORT int fake_batch_code = 0;    /* answer of batch calls ... */
EXPORT int fake_batch_code_at = 0; /* ... from this one on, counted from 0 */
EXPORT int fake_copy_code = 0;     /* answer of single copies ... */
EXPORT int fake_copy_code_at = 0;  /* ... from this one on */
EXPORT int fake_lookup = 0;        /* 0 found, 1 error, 2 success + NULL, 3 success with a bad status */
EXPORT int fake_version = 0;       /* what cudaRuntimeGetVersion says; set below */
EXPORT int fake_version_code = 0;  /* and what it returns */
EXPORT int fake_driver_version_code = 0; /* what cudaDriverGetVersion returns */
EXPORT int fake_most_bytes = 0;    /* a larger single copy is an invalid value; 0: no limit */
EXPORT int fake_needs_context = 0; /* whether to answer a thread without a context as driver 580.159.04 */
EXPORT int fake_get_context_code = 0;    /* what the functions for contexts return: the thread's own, */
EXPORT int fake_stream_context_code = 0; /* the stream's, */
EXPORT int fake_borrow_context_code = 0; /* making a context current, */
EXPORT int fake_return_context_code = 0; /* and none */

/* What the test reads. */
EXPORT int fake_batch_calls = 0;
EXPORT int fake_copies = 0;
EXPORT size_t fake_largest_batch = 0;
EXPORT void *fake_stream = NULL; /* of the last call */
EXPORT int fake_last_error = 0;
EXPORT int fake_lookup_version = 0;
EXPORT int fake_contexts_borrowed = 0;
EXPORT int fake_contexts_returned = 0;

static __thread void *current_context = NULL;

struct attributes {
    int words[6];
};

static int batch(void **dsts, void **srcs, size_t *sizes, size_t count, const struct attributes *attrs,
                 const size_t *indices, size_t attributes, void *stream)
{
    int call = fake_batch_calls++;
    fake_stream = stream;
    if (count > fake_largest_batch)
        fake_largest_batch = count;
    if (fake_needs_context && current_context == NULL)
        return (uintptr_t)stream <= 2 ? 201 : 1;
    if (fake_batch_code != 0 && call >= fake_batch_code_at)
        return fake_batch_code;
    if (count == 0 || attributes != 1 || indices[0] != 0 || attrs->words[0] != 1 || (uintptr_t)stream <= 1)
        return 1;
    for (size_t i = 0; i < count; i++)
        if (sizes[i] == 0 || dsts[i] == NULL || srcs[i] == NULL)
            return 1;
    for (size_t i = 0; i < count; i++)
        memcpy(dsts[i], srcs[i], sizes[i]);
    return 0;
}

static int copy(void *dst, const void *src, size_t size, void *stream)
{
    fake_stream = stream;
    if (fake_needs_context && current_context == NULL && (uintptr_t)stream <= 2)
        return 201;
    if (fake_copies++ >= fake_copy_code_at && fake_copy_code != 0)
        return fake_copy_code;
    if (fake_most_bytes != 0 && size > (size_t)fake_most_bytes)
        return 1;
    memcpy(dst, src, size);
    return 0;
}

#ifdef FAKE_DRIVER

static int batch9(void **dsts, void **srcs, size_t *sizes, size_t count, const struct attributes *attrs,
                  const size_t *indices, size_t attributes, size_t *fail_idx, void *stream)
{
    return *fail_idx == SIZE_MAX ? batch(dsts, srcs, sizes, count, attrs, indices, attributes, stream) : 1;
}

EXPORT int cuGetProcAddress_v2(const char *name, void **found, int version, uint64_t flags, int *status)
{
    int (*function)(void **, void **, size_t *, size_t, const struct attributes *, const size_t *, size_t, size_t *,
                    void *) = batch9;
    fake_lookup_version = version;
    if (fake_lookup == 1 || strcmp(name, "cuMemcpyBatchAsync") != 0 || flags != 0)
        return 500;
    *status = fake_lookup == 3 ? 2 : 0;
    if (fake_lookup == 2)
        *found = NULL;
    else
        memcpy(found, &function, sizeof *found);
    return 0;
}

EXPORT int cuCtxGetCurrent(void **context)
{
    *context = current_context;
    return fake_get_context_code;
}

EXPORT int cuStreamGetCtx(void *stream, void **context)
{
    *context = stream; /* any value will do, but not for a default stream */
    return (uintptr_t)stream <= 2 ? 201 : fake_stream_context_code;
}

EXPORT int cuCtxSetCurrent(void *context)
{
    int code = context != NULL ? fake_borrow_context_code : fake_return_context_code;
    if (code != 0)
        return code;
    current_context = context;
    if (context != NULL)
        fake_contexts_borrowed++;
    else
        fake_contexts_returned++;
    return 0;
}

EXPORT int cuMemcpyAsync(void *dst, void *src, size_t size, void *stream)
{
    return copy(dst, src, size, stream);
}

#else

static int keep(int code)
{
    if (code != 0)
        fake_last_error = code;
    return code;
}

EXPORT int cudaGetLastError(void)
{
    int code = fake_last_error;
    fake_last_error = 0;
    return code;
}

EXPORT int cudaRuntimeGetVersion(int *version)
{
    *version = fake_version != 0 ? fake_version : FAKE_RUNTIME * 1000;
    return keep(fake_version_code);
}

EXPORT int cudaDriverGetVersion(int *version)
{
    *version = fake_driver_version_code == 0 ? FAKE_RUNTIME * 1000 : 0;
    return keep(fake_driver_version_code);
}

EXPORT int cudaMemcpyAsync(void *dst, const void *src, size_t size, int kind, void *stream)
{
    return keep(kind == 4 ? copy(dst, src, size, stream) : 1);
}

#if FAKE_RUNTIME == 12
EXPORT int cudaMemcpyBatchAsync(void **dsts, void **srcs, size_t *sizes, size_t count, struct attributes *attrs,
                                size_t *indices, size_t attributes, size_t *fail_idx, void *stream)
{
    if (*fail_idx != SIZE_MAX)
        return keep(1);
    return keep(batch(dsts, srcs, sizes, count, attrs, indices, attributes, stream));
}
#else
EXPORT int cudaMemcpyBatchAsync(void **dsts, void **srcs, const size_t *sizes, size_t count, struct attributes *attrs,
                                size_t *indices, size_t attributes, void *stream)
{
    return keep(batch(dsts, srcs, (size_t *)sizes, count, attrs, indices, attributes, stream));
}
#endif
#endif
