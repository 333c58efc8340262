/*
 * The 3D batch call's two ABIs: five parameters (12.8), with failIdx, and four (13.0).
 *
 * All of them fit in registers. The wrong arity puts a pointer in the place of the flags, which must be 0, so
 * that it is CUDA_INVALID_VALUE with nothing touched, unless the stream faults, which is read before: with one
 * argument too many the flags' 0 is a NULL stream, with one too few it is whatever the caller's fifth
 * register holds. Measured: SIGSEGV for a word there that is no address, CUDA_INVALID_VALUE for another.
 */
#include "../engine/copies.h"

#include "api.h"
#include "batch_stream.h"
#include "state.h"

#if SIM_DRIVER_OWN >= FIRST_VERSION_WITH_BATCH
/* failIdx stays untouched for a NULL stream, as in the flat call, and under capture, unlike there. */
static int copy_3d(size_t count, const struct copy_3d *operations, size_t *fail_index, unsigned long long flags,
                   void *handle, enum null_stream null_stream)
{
    struct stream *stream;
    size_t failed = SIZE_MAX;
    int code = driver_ready();
    if (code != CUDA_OK)
        return code;
    if (handle == STREAM_NULL && null_stream == NULL_IS_LEGACY)
        return CUDA_INVALID_VALUE;
    code = batch_stream(handle, null_stream, &stream);
    if (code == CUDA_OK && flags != 0)
        return CUDA_INVALID_VALUE;
    if (code == CUDA_OK && copy_is_barred_by_capture(stream))
        return CUDA_CAPTURE_UNSUPPORTED;
    if (code == CUDA_OK)
        code = copy_batch_3d(stream, operations, count, &failed);
    if (fail_index != NULL)
        *fail_index = failed;
    return code;
}

int cuMemcpy3DBatchAsync(size_t count, const struct copy_3d *operations, size_t *fail_index, unsigned long long flags,
                         void *stream)
{
    return copy_3d(count, operations, fail_index, flags, stream, NULL_IS_LEGACY);
}

int cuMemcpy3DBatchAsync_ptsz(size_t count, const struct copy_3d *operations, size_t *fail_index,
                              unsigned long long flags, void *stream)
{
    return copy_3d(count, operations, fail_index, flags, stream, NULL_IS_PER_THREAD);
}
#endif

#if SIM_DRIVER_OWN >= FIRST_VERSION_WITHOUT_FAIL_INDEX
int cuMemcpy3DBatchAsync_v2(size_t count, const struct copy_3d *operations, unsigned long long flags, void *stream)
{
    return copy_3d(count, operations, NULL, flags, stream, NULL_IS_LEGACY);
}

/* A NULL stream is refused here too, as by the flat call's v2 twin. */
int cuMemcpy3DBatchAsync_v2_ptsz(size_t count, const struct copy_3d *operations, unsigned long long flags, void *stream)
{
    return copy_3d(count, operations, NULL, flags, stream, NULL_IS_LEGACY);
}
#endif
