/* cudabatch_dispatch.h: batched CUDA copies that call the ABI which the loaded library has.
 *
 * One self-contained header for any project to vendor (SPDX-License-Identifier: Apache-2.0). C11 or
 * C++17, Linux, 64 bit, gcc or clang. It needs no CUDA header and links nothing of CUDA; with a C
 * library older than glibc 2.34, link -ldl.
 *
 * The problem. cudaMemcpyBatchAsync has two ABIs under one name: nine parameters in CUDA 12.8 and 12.9
 * (failIdx before the stream), eight in 13.x. dlsym hands out either one. Neither the version that the
 * code was compiled with nor the version of the driver says which one it is; called with the wrong
 * parameters it crashes, or takes an address on the caller's stack for the stream.
 *
 * The way out, tried once per process:
 *   1. Ask the loaded libcuda.so.1 with an explicit version: cuGetProcAddress("cuMemcpyBatchAsync",
 *      12080) means the nine-parameter function on every driver from 12.8 on, whatever runtimes are
 *      loaded.
 *   2. Else take the function and cudaRuntimeGetVersion from one and the same libcudart, so that the
 *      version is that of the function.
 *   3. Else copy one by one. A function whose owner is unknown is never called.
 *
 * Use:
 *      int code = cudabatch_enqueue(dsts, srcs, sizes, count, stream);
 *
 * Facts: cuda.h and cuda_runtime_api.h of CUDA 12.8 to 13.5.
 */
#ifndef CUDABATCH_DISPATCH_H
#define CUDABATCH_DISPATCH_H

#include <assert.h>
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The most copies that one batch call gets. Driver 580.159.04 was seen to crash on host-to-device
 * batches of mixed sizes from 2,048 copies on, never at 1,024; smaller calls are no slower. */
#ifndef CUDABATCH_MOST_PER_CALL
#define CUDABATCH_MOST_PER_CALL 1024
#endif

/* Return codes that this header knows; cudaError_t and CUresult share these numbers. */
enum {
    CUDABATCH_SUCCESS = 0,
    CUDABATCH_NOT_INITIALIZED = 3,    /* neither libcuda nor libcudart is loaded */
    CUDABATCH_STUB_LIBRARY = 34,      /* a link-time stub is loaded instead of a driver */
    CUDABATCH_NO_DRIVER = 35,         /* none, or one too old for the runtime */
    CUDABATCH_NEEDS_NEWER_DRIVER = 36,
    CUDABATCH_NOT_SUPPORTED = 801
};

/* cudaMemcpyAttributes and CUmemcpyAttributes: the same 24 bytes in every version. */
struct cudabatch_attributes {
    int src_access_order; /* 1: sources are read in stream order; 2: during the call; 3: whenever */
    int src_location_type, src_location_id;
    int dst_location_type, dst_location_id;
    unsigned int flags;
};
static_assert(sizeof(struct cudabatch_attributes) == 24, "the layout that CUDA 12.8 to 13.5 expect");
static_assert(sizeof(void *) == sizeof(uint64_t), "CUDA's batch copies exist on 64-bit systems only");

/* Function types. A stream is a cudaStream_t or CUstream (one and the same handle). The 12.x headers
 * lack the consts below; no version writes through these pointers. */
typedef int (*cudabatch_batch9)(void *const *dsts, const void *const *srcs, const size_t *sizes, size_t count,
                                const struct cudabatch_attributes *attrs, const size_t *attrs_idxs,
                                size_t num_attrs, size_t *fail_idx, void *stream);
typedef int (*cudabatch_batch8)(void *const *dsts, const void *const *srcs, const size_t *sizes, size_t count,
                                const struct cudabatch_attributes *attrs, const size_t *attrs_idxs,
                                size_t num_attrs, void *stream);
typedef int (*cudabatch_driver_copy)(void *dst, const void *src, size_t size, void *stream);
typedef int (*cudabatch_runtime_copy)(void *dst, const void *src, size_t size, int kind, void *stream);
typedef int (*cudabatch_get_proc_address)(const char *name, void **found, int version, uint64_t flags, int *status);
typedef int (*cudabatch_get_version)(int *version);
typedef int (*cudabatch_last_error)(void);
typedef int (*cudabatch_get_context)(void **context);
typedef int (*cudabatch_set_context)(void *context);
typedef int (*cudabatch_stream_context)(void *stream, void **context);
typedef void (*cudabatch_function)(void);

/* What was found in this process; NULL where it was not. Batches go to the driver before a runtime, single
 * copies to a runtime before the driver (it gives a new thread its context). The libraries' handles are
 * never closed, so the pointers stay good until the process ends. */
struct cudabatch_functions {
    cudabatch_batch9 driver_batch9;
    cudabatch_batch9 runtime_batch9;
    cudabatch_batch8 runtime_batch8;
    cudabatch_driver_copy driver_copy;
    cudabatch_runtime_copy runtime_copy;
    cudabatch_last_error last_error; /* of the libcudart that runtime_* come from */
    cudabatch_get_context get_context; /* the driver's, as the two below */
    cudabatch_set_context set_context;
    cudabatch_stream_context stream_context;
};

/* ---- finding the functions ------------------------------------------------------------------- */

/* ISO C has no cast between object and function pointers, POSIX makes them alike: copy the bits. */
static inline cudabatch_function cudabatch_as_function(void *address)
{
    cudabatch_function function;
    memcpy(&function, &address, sizeof function);
    return function;
}

static inline cudabatch_function cudabatch_symbol(void *library, const char *name)
{
    return cudabatch_as_function(dlsym(library, name));
}

/* Route one. Drivers were seen to report success with a NULL pointer: that is "not there" as well. */
static inline cudabatch_batch9 cudabatch_ask_driver(cudabatch_get_proc_address get_proc_address)
{
    void *found = NULL;
    int status = 0;
    if (get_proc_address == NULL)
        return NULL;
    if (get_proc_address("cuMemcpyBatchAsync", &found, 12080, 0, &status) != CUDABATCH_SUCCESS || status != 0)
        return NULL;
    return (cudabatch_batch9)cudabatch_as_function(found);
}

static inline void cudabatch_find_context_functions(struct cudabatch_functions *found, void *driver)
{
    found->get_context = (cudabatch_get_context)cudabatch_symbol(driver, "cuCtxGetCurrent");
    found->set_context = (cudabatch_set_context)cudabatch_symbol(driver, "cuCtxSetCurrent");
    found->stream_context = (cudabatch_stream_context)cudabatch_symbol(driver, "cuStreamGetCtx");
}

static inline void cudabatch_find_in_driver(struct cudabatch_functions *found)
{
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (driver == NULL)
        return;
    found->driver_copy = (cudabatch_driver_copy)cudabatch_symbol(driver, "cuMemcpyAsync");
    found->driver_batch9 = cudabatch_ask_driver(
        (cudabatch_get_proc_address)cudabatch_symbol(driver, "cuGetProcAddress_v2"));
    cudabatch_find_context_functions(found, driver);
}

/* A failed runtime call is also kept for cudaGetLastError, where the caller's next launch check would
 * find it. The code goes back by value only. */
static inline int cudabatch_take_error(const struct cudabatch_functions *functions, int code)
{
    if (code != CUDABATCH_SUCCESS && functions->last_error != NULL)
        (void)functions->last_error();
    return code;
}

/* Route two: all from one library. Its SONAME and what it says of itself must agree on the ABI. */
static inline void cudabatch_find_in_runtime(struct cudabatch_functions *found, const char *soname, int major)
{
    void *runtime = dlopen(soname, RTLD_LAZY | RTLD_NOLOAD);
    int version = 0;
    if (runtime == NULL)
        return;
    cudabatch_function batch = cudabatch_symbol(runtime, "cudaMemcpyBatchAsync");
    cudabatch_get_version get_version = (cudabatch_get_version)cudabatch_symbol(runtime, "cudaRuntimeGetVersion");
    found->runtime_copy = (cudabatch_runtime_copy)cudabatch_symbol(runtime, "cudaMemcpyAsync");
    found->last_error = (cudabatch_last_error)cudabatch_symbol(runtime, "cudaGetLastError");
    if (get_version == NULL || cudabatch_take_error(found, get_version(&version)) != CUDABATCH_SUCCESS ||
        version / 1000 != major)
        return;
    if (major == 13)
        found->runtime_batch8 = (cudabatch_batch8)batch;
    else
        found->runtime_batch9 = (cudabatch_batch9)batch;
}

static inline struct cudabatch_functions cudabatch_find(void)
{
    struct cudabatch_functions found;
    memset(&found, 0, sizeof found);
    cudabatch_find_in_driver(&found);
    cudabatch_find_in_runtime(&found, "libcudart.so.13", 13);
    if (found.runtime_batch8 == NULL)
        cudabatch_find_in_runtime(&found, "libcudart.so.12", 12);
    return found;
}

/* The search's result, kept for the process (one copy in each file that includes this header). Whoever
 * is first writes it and then sets the state, once; nobody waits: a thread that comes in between uses
 * the result of its own search. No lock is held across a CUDA call, or could be lost in a fork. */
enum { CUDABATCH_UNPUBLISHED, CUDABATCH_BEING_WRITTEN, CUDABATCH_PUBLISHED };
static struct cudabatch_functions cudabatch_published;
static int cudabatch_publication = CUDABATCH_UNPUBLISHED;

/* Set once a batch call has answered "needs a newer driver", which no later call can change. */
static int cudabatch_driver_too_old = 0;

/* Returns the process's functions; `own` is room for them in case they are not published yet. */
static inline const struct cudabatch_functions *cudabatch_functions_here(struct cudabatch_functions *own)
{
    int unpublished = CUDABATCH_UNPUBLISHED;
    if (__atomic_load_n(&cudabatch_publication, __ATOMIC_ACQUIRE) == CUDABATCH_PUBLISHED)
        return &cudabatch_published;
    *own = cudabatch_find();
    if (own->driver_copy == NULL && own->runtime_copy == NULL)
        return own; /* CUDA is not loaded yet: look again next time */
    if (__atomic_compare_exchange_n(&cudabatch_publication, &unpublished, CUDABATCH_BEING_WRITTEN, 0,
                                    __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
        cudabatch_published = *own;
        __atomic_store_n(&cudabatch_publication, CUDABATCH_PUBLISHED, __ATOMIC_RELEASE);
    }
    return own;
}

/* ---- calling them ---------------------------------------------------------------------------- */

/* One batch call. attrs and attrs_idxs have num_attrs entries, not count: one covers all copies. */
static inline int cudabatch_call(const struct cudabatch_functions *functions, void *const *dsts,
                                 const void *const *srcs, const size_t *sizes, size_t count, void *stream)
{
    const struct cudabatch_attributes in_stream_order = {1, 0, 0, 0, 0, 0};
    const size_t first = 0;
    size_t fail_idx = SIZE_MAX;
    if (functions->driver_batch9 != NULL)
        return functions->driver_batch9(dsts, srcs, sizes, count, &in_stream_order, &first, 1, &fail_idx, stream);
    if (functions->runtime_batch8 != NULL)
        return cudabatch_take_error(
            functions, functions->runtime_batch8(dsts, srcs, sizes, count, &in_stream_order, &first, 1, stream));
    return cudabatch_take_error(functions, functions->runtime_batch9(dsts, srcs, sizes, count, &in_stream_order,
                                                                     &first, 1, &fail_idx, stream));
}

static inline int cudabatch_copy_one(const struct cudabatch_functions *functions, void *dst, const void *src,
                                     size_t size, void *stream)
{
    const int kind_default = 4; /* cudaMemcpyDefault: the addresses say the direction */
    if (functions->runtime_copy != NULL)
        return cudabatch_take_error(functions, functions->runtime_copy(dst, src, size, kind_default, stream));
    if (functions->driver_copy != NULL)
        return functions->driver_copy(dst, src, size, stream);
    return CUDABATCH_NOT_INITIALIZED;
}

static inline int cudabatch_enqueue_each(const struct cudabatch_functions *functions, void *const *dsts,
                                         const void *const *srcs, const size_t *sizes, size_t count, void *stream)
{
    for (size_t i = 0; i < count; i++) {
        if (sizes[i] == 0)
            continue;
        int code = cudabatch_copy_one(functions, dsts[i], srcs[i], sizes[i], stream);
        if (code != CUDABATCH_SUCCESS)
            return code;
    }
    return CUDABATCH_SUCCESS;
}

/* Without an early exit, so that compilers vectorise it. */
static inline int cudabatch_has_empty(const size_t *sizes, size_t count)
{
    int empty = 0;
    for (size_t i = 0; i < count; i++)
        empty |= sizes[i] == 0;
    return empty;
}

/* The batch call rejects a batch with an empty copy in it: send the others. count is at most
 * CUDABATCH_MOST_PER_CALL; the 24 KiB of stack are used only when there is an empty copy. */
static inline int cudabatch_call_without_empty(const struct cudabatch_functions *functions, void *const *dsts,
                                               const void *const *srcs, const size_t *sizes, size_t count,
                                               void *stream)
{
    void *kept_dsts[CUDABATCH_MOST_PER_CALL];
    const void *kept_srcs[CUDABATCH_MOST_PER_CALL];
    size_t kept_sizes[CUDABATCH_MOST_PER_CALL];
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (sizes[i] == 0)
            continue;
        kept_dsts[kept] = dsts[i];
        kept_srcs[kept] = srcs[i];
        kept_sizes[kept] = sizes[i];
        kept++;
    }
    return kept == 0 ? CUDABATCH_SUCCESS : cudabatch_call(functions, kept_dsts, kept_srcs, kept_sizes, kept, stream);
}

/* Batch calls until all is enqueued or one fails. *done is how many copies need no further care. */
static inline int cudabatch_enqueue_batches(const struct cudabatch_functions *functions, void *const *dsts,
                                            const void *const *srcs, const size_t *sizes, size_t count,
                                            void *stream, size_t *done)
{
    while (*done < count) {
        size_t start = *done;
        size_t taken = count - start < CUDABATCH_MOST_PER_CALL ? count - start : CUDABATCH_MOST_PER_CALL;
        int code = (cudabatch_has_empty(sizes + start, taken) ? cudabatch_call_without_empty : cudabatch_call)(
            functions, dsts + start, srcs + start, sizes + start, taken, stream);
        if (code != CUDABATCH_SUCCESS)
            return code;
        *done += taken;
    }
    return CUDABATCH_SUCCESS;
}

/* The batch call rejects the legacy default stream under both of its names: NULL and cudaStreamLegacy.
 * It takes the per-thread default stream (0x2). */
static inline int cudabatch_can_batch(const struct cudabatch_functions *functions, void *stream)
{
    if ((uintptr_t)stream <= 1 || __atomic_load_n(&cudabatch_driver_too_old, __ATOMIC_RELAXED))
        return 0;
    return functions->driver_batch9 != NULL || functions->runtime_batch8 != NULL || functions->runtime_batch9 != NULL;
}

/* Only these mean "there is no batch copy here". Anything else, invalid value above all, is the
 * caller's or the device's error, and a fallback would hide it. */
static inline int cudabatch_is_unavailable(int code)
{
    return code == CUDABATCH_STUB_LIBRARY || code == CUDABATCH_NO_DRIVER || code == CUDABATCH_NEEDS_NEWER_DRIVER ||
           code == CUDABATCH_NOT_SUPPORTED;
}

/* The driver, unlike the runtime, gives a thread no context of itself, and without one it calls a batch on
 * a live stream an invalid value (driver 580.159.04). So a thread that has made no CUDA call yet borrows
 * the stream's. *borrowed says whether it did; then it had none, and is to have none again.
 * The default streams are those of the current context, and cannot lend one. */
static inline int cudabatch_borrow_context(const struct cudabatch_functions *functions, void *stream, int *borrowed)
{
    void *context = NULL;
    *borrowed = 0;
    if ((uintptr_t)stream <= 2 || functions->get_context == NULL || functions->set_context == NULL ||
        functions->stream_context == NULL)
        return CUDABATCH_SUCCESS;
    int code = functions->get_context(&context);
    if (code != CUDABATCH_SUCCESS || context != NULL)
        return code;
    code = functions->stream_context(stream, &context);
    if (code == CUDABATCH_SUCCESS)
        code = functions->set_context(context);
    *borrowed = code == CUDABATCH_SUCCESS;
    return code;
}

/* Ends what cudabatch_borrow_context began. Of two errors the first counts. */
static inline int cudabatch_return_context(const struct cudabatch_functions *functions, int borrowed, int code)
{
    int returned = borrowed ? functions->set_context(NULL) : CUDABATCH_SUCCESS;
    return code != CUDABATCH_SUCCESS ? code : returned;
}

static inline int cudabatch_enqueue_here(const struct cudabatch_functions *functions, void *const *dsts,
                                         const void *const *srcs, const size_t *sizes, size_t count, void *stream)
{
    size_t done = 0;
    if (cudabatch_can_batch(functions, stream)) {
        int code = cudabatch_enqueue_batches(functions, dsts, srcs, sizes, count, stream, &done);
        if (!cudabatch_is_unavailable(code))
            return code;
        if (code == CUDABATCH_NEEDS_NEWER_DRIVER)
            __atomic_store_n(&cudabatch_driver_too_old, 1, __ATOMIC_RELAXED);
    }
    return cudabatch_enqueue_each(functions, dsts + done, srcs + done, sizes + done, count - done, stream);
}

/* ---- the interface --------------------------------------------------------------------------- */

/* Enqueues `count` copies on `stream` and returns without waiting for them.
 *
 * dsts, srcs   addresses, each of device memory or of host memory (pinned, so that the copy is
 *              asynchronous); the directions of the copies may differ.
 * sizes        in bytes. An entry of size 0 is skipped, its addresses are not looked at.
 * count        number of entries in each of the three arrays; 0 is fine, and does nothing.
 * stream       a cudaStream_t or CUstream; NULL and cudaStreamLegacy (the default stream) are copied one
 *              by one, as the batch call rejects them.
 *
 * Returns 0, or the first error as cudaError_t / CUresult. None is left behind in cudaGetLastError,
 * neither one that was handled nor the one that is returned. After an error the copies before the failed
 * one may be under way: synchronise the stream before freeing anything.
 *
 * The three arrays are the caller's, are only read, and may be reused when the call returns. The memory
 * that they point to must stay until the stream has passed the copies. The copies run in no particular
 * order, so their destinations must not overlap one another or any source.
 *
 * Thread-safe, and usable from a thread that has made no CUDA call before; on the per-thread default
 * stream the driver then answers 201 (invalid context). Allocates nothing.
 */
static inline int cudabatch_enqueue(void *const *dsts, const void *const *srcs, const size_t *sizes, size_t count,
                                    void *stream)
{
    struct cudabatch_functions own;
    int borrowed;
    if (count == 0)
        return CUDABATCH_SUCCESS;
    const struct cudabatch_functions *functions = cudabatch_functions_here(&own);
    int code = cudabatch_borrow_context(functions, stream, &borrowed);
    if (code == CUDABATCH_SUCCESS)
        code = cudabatch_enqueue_here(functions, dsts, srcs, sizes, count, stream);
    return cudabatch_return_context(functions, borrowed, code);
}

#endif
