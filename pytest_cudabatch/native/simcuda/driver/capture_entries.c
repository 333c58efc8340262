/* Stream capture, and the graphs that it gives. A dead stream's handle is SIGSEGV, a dead graph's an invalid value. */
#include "../engine/capture.h"

#include "../engine/streams.h"
#include "api.h"
#include "state.h"

/* Resolves a handle for the entries below; CUDA_OK and the stream, or a code. */
static int enter(void *handle, enum null_stream null_stream, struct stream **stream)
{
    int code = stream_context_ready(handle);
    if (code != CUDA_OK)
        return code;
    *stream = stream_of(handle, null_stream);
    return *stream == NULL ? CUDA_OUT_OF_MEMORY : CUDA_OK;
}

static int begin(void *handle, int mode, enum null_stream null_stream)
{
    struct stream *stream;
    int code = enter(handle, null_stream, &stream);
    if (code != CUDA_OK)
        return code;
    engine_lock();
    code = capture_begin(stream, mode);
    engine_unlock();
    return code;
}

int cuStreamBeginCapture_v2(void *stream, int mode)
{
    return begin(stream, mode, NULL_IS_LEGACY);
}

int cuStreamBeginCapture_v2_ptsz(void *stream, int mode)
{
    return begin(stream, mode, NULL_IS_PER_THREAD);
}

static int end(void *handle, void **graph, enum null_stream null_stream)
{
    struct stream *stream;
    int code = graph == NULL ? CUDA_INVALID_VALUE : enter(handle, null_stream, &stream);
    if (code != CUDA_OK)
        return code;
    engine_lock();
    code = capture_end(stream, graph);
    engine_unlock();
    return code;
}

int cuStreamEndCapture(void *stream, void **graph)
{
    return end(stream, graph, NULL_IS_LEGACY);
}

int cuStreamEndCapture_ptsz(void *stream, void **graph)
{
    return end(stream, graph, NULL_IS_PER_THREAD);
}

static int is_capturing(void *handle, int *status, enum null_stream null_stream)
{
    struct stream *stream;
    int code = status == NULL ? CUDA_INVALID_VALUE : enter(handle, null_stream, &stream);
    if (code != CUDA_OK)
        return code;
    engine_lock();
    code = capture_status(stream, status);
    engine_unlock();
    return code;
}

int cuStreamIsCapturing(void *stream, int *status)
{
    return is_capturing(stream, status, NULL_IS_LEGACY);
}

int cuStreamIsCapturing_ptsz(void *stream, int *status)
{
    return is_capturing(stream, status, NULL_IS_PER_THREAD);
}

int cuThreadExchangeStreamCaptureMode(int *mode)
{
    int code = mode == NULL ? CUDA_INVALID_VALUE : driver_ready();
    return code == CUDA_OK ? capture_exchange_mode(mode) : code;
}

int cuGraphGetNodes(void *handle, void **nodes, size_t *count)
{
    int code = count == NULL ? CUDA_INVALID_VALUE : driver_ready();
    if (code != CUDA_OK)
        return code;
    engine_lock();
    const struct graph *graph = graph_find(handle);
    if (graph == NULL)
        code = CUDA_INVALID_VALUE;
    else
        *count = graph_nodes(graph, nodes, *count);
    engine_unlock();
    return code;
}

int cuGraphDestroy(void *handle)
{
    int code = driver_ready();
    if (code != CUDA_OK)
        return code;
    engine_lock();
    struct graph *graph = graph_find(handle);
    if (graph == NULL)
        code = CUDA_INVALID_VALUE;
    else
        graph_free(graph);
    engine_unlock();
    return code;
}
