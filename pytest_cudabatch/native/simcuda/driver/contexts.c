/*
 * The devices' primary contexts; there are no others.
 *
 * A handle is the address of the state below, so it stays valid for the process; whether the context is alive
 * is its count of retains, or a retain after a reset.
 */
#include "../engine/capture.h"
#include "../engine/devices.h"
#include "../engine/events.h"
#include "../engine/memory.h"
#include "../engine/streams.h"
#include "api.h"
#include "state.h"

/* Guarded by the engine's lock; `active` is also read without it, by context_ready. */
static struct context {
    int retained;
    bool active;
} primaries[MOST_DEVICES];

/* The thread's current context: NULL or one of the above. */
static _Thread_local struct context *current;

static bool is_active(const struct context *context)
{
    return __atomic_load_n(&context->active, __ATOMIC_ACQUIRE);
}

static void set_active(struct context *context, bool active)
{
    __atomic_store_n(&context->active, active, __ATOMIC_RELEASE);
}

static bool is_context(const void *handle)
{
    for (int device = 0; device < device_count(); device++)
        if (handle == &primaries[device])
            return true;
    return false;
}

static int device_of(const struct context *context)
{
    return (int)(context - primaries);
}

void *context_of_device(int device)
{
    return &primaries[device];
}

int context_ready(void)
{
    int code = driver_ready();
    if (code != CUDA_OK)
        return code;
    if (current == NULL)
        return CUDA_INVALID_CONTEXT;
    return is_active(current) ? CUDA_OK : CUDA_CONTEXT_IS_DESTROYED;
}

int unsafe_ready(void)
{
    int code = context_ready();
    if (code != CUDA_OK)
        return code;
    engine_lock();
    code = capture_permits_unsafe();
    engine_unlock();
    return code;
}

int stream_context_ready(const void *handle)
{
    return stream_is_default(handle) ? context_ready() : driver_ready();
}

int device_ready(int device)
{
    int code = driver_ready();
    return code == CUDA_OK && (device < 0 || device >= device_count()) ? CUDA_INVALID_DEVICE : code;
}

/* Ends all that the device's context owns, when all work is done. Needs the lock. */
static void clear(int device)
{
    schedule_wait_device(ANY_DEVICE);
    capture_abandon_all(device);
    graph_free_all(device);
    event_destroy_all(device);
    stream_destroy_all(device);
    memory_free_all(device);
    set_active(&primaries[device], false);
}

int cuDevicePrimaryCtxRetain(void **context, int device)
{
    int code = context == NULL ? CUDA_INVALID_VALUE : device_ready(device);
    if (code != CUDA_OK)
        return code;
    engine_lock();
    primaries[device].retained++;
    set_active(&primaries[device], true);
    engine_unlock();
    *context = &primaries[device];
    return CUDA_OK;
}

int cuDevicePrimaryCtxRelease_v2(int device)
{
    int code = device_ready(device);
    if (code != CUDA_OK)
        return code;
    engine_lock();
    if (primaries[device].retained == 0)
        code = CUDA_INVALID_CONTEXT;
    else if (--primaries[device].retained == 0)
        clear(device);
    engine_unlock();
    return code;
}

int cuDevicePrimaryCtxReset_v2(int device)
{
    int code = device_ready(device);
    if (code != CUDA_OK)
        return code;
    engine_lock();
    clear(device);
    engine_unlock();
    return CUDA_OK;
}

int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active)
{
    int code = flags == NULL || active == NULL ? CUDA_INVALID_VALUE : device_ready(device);
    if (code != CUDA_OK)
        return code;
    *flags = 0;
    *active = is_active(&primaries[device]);
    return CUDA_OK;
}

int cuCtxSetCurrent(void *context)
{
    int code = driver_ready();
    if (code == CUDA_OK && context != NULL && !is_context(context))
        code = CUDA_INVALID_CONTEXT;
    if (code != CUDA_OK)
        return code;
    current = context;
    device_set_current(context == NULL ? 0 : device_of(context));
    return CUDA_OK;
}

int cuCtxGetCurrent(void **context)
{
    int code = context == NULL ? CUDA_INVALID_VALUE : driver_ready();
    if (code == CUDA_OK)
        *context = current;
    return code;
}

/* A default stream's context is the thread's, any other's the one that it was made in. */
static int get_stream_context(void *handle, void **context, enum null_stream null_stream)
{
    int code = context == NULL ? CUDA_INVALID_VALUE : stream_context_ready(handle);
    if (code != CUDA_OK)
        return code;
    const struct stream *stream = stream_of(handle, null_stream);
    if (stream == NULL)
        return CUDA_OUT_OF_MEMORY;
    *context = &primaries[stream->object.device];
    return CUDA_OK;
}

int cuStreamGetCtx(void *stream, void **context)
{
    return get_stream_context(stream, context, NULL_IS_LEGACY);
}

int cuStreamGetCtx_ptsz(void *stream, void **context)
{
    return get_stream_context(stream, context, NULL_IS_PER_THREAD);
}

#if SIM_DRIVER_OWN >= FIRST_VERSION_WITH_BATCH
/* Since 12.5 there is a second form, which cuGetProcAddress prefers; no stream is of a green context here. */
static int get_stream_contexts(void *handle, void **context, void **green, enum null_stream null_stream)
{
    int code = green == NULL ? CUDA_INVALID_VALUE : get_stream_context(handle, context, null_stream);
    if (code == CUDA_OK)
        *green = NULL;
    return code;
}

int cuStreamGetCtx_v2(void *stream, void **context, void **green)
{
    return get_stream_contexts(stream, context, green, NULL_IS_LEGACY);
}

int cuStreamGetCtx_v2_ptsz(void *stream, void **context, void **green)
{
    return get_stream_contexts(stream, context, green, NULL_IS_PER_THREAD);
}
#endif

int cuCtxGetDevice(int *device)
{
    int code = device == NULL ? CUDA_INVALID_VALUE : context_ready();
    if (code == CUDA_OK)
        *device = device_of(current);
    return code;
}

int cuCtxSynchronize(void)
{
    int code = unsafe_ready();
    if (code != CUDA_OK)
        return code;
    engine_lock();
    schedule_wait_device(device_of(current));
    engine_unlock();
    return CUDA_OK;
}

int cuCtxGetStreamPriorityRange(int *lowest, int *highest)
{
    int code = context_ready();
    if (code != CUDA_OK)
        return code;
    if (lowest != NULL)
        *lowest = STREAM_PRIORITY_LOWEST;
    if (highest != NULL)
        *highest = STREAM_PRIORITY_HIGHEST;
    return CUDA_OK;
}

#if SIM_DRIVER_OWN >= FIRST_VERSION_WITHOUT_FAIL_INDEX
/* Since 13.0 these take the context; NULL is the thread's own. */
static int named_context_ready(const void *context)
{
    if (context == NULL)
        return context_ready();
    int code = driver_ready();
    if (code == CUDA_OK && !is_context(context))
        code = CUDA_INVALID_CONTEXT;
    return code;
}

int cuCtxGetDevice_v2(int *device, void *context)
{
    int code = device == NULL ? CUDA_INVALID_VALUE : named_context_ready(context);
    if (code == CUDA_OK)
        *device = device_of(context == NULL ? current : context);
    return code;
}

int cuCtxSynchronize_v2(void *context)
{
    int code = named_context_ready(context);
    if (code != CUDA_OK)
        return code;
    engine_lock();
    code = capture_permits_unsafe();
    if (code == CUDA_OK)
        schedule_wait_device(device_of(context == NULL ? current : context));
    engine_unlock();
    return code;
}
#endif
