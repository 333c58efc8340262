/* Stream capture. A dead stream's handle is SIGSEGV. */
#include "../engine/capture.h"

#include "../engine/streams.h"
#include "api.h"
#include "state.h"

/* Where the newer forms of cuStreamGetCaptureInfo are to write what the first does not give; NULL: nowhere. */
struct capture_details {
    void **graph;
    const void **nodes, **edges;
    size_t *count;
};

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

/* Writes what the newer forms of the call were asked for. */
static void tell(const struct capture_state *state, const struct capture_details *asked)
{
    static const uint64_t ordinary_edge; /* a CUgraphEdgeData of zeros: all edges here are */
    if (asked->graph != NULL)
        *asked->graph = state->graph;
    if (asked->nodes != NULL)
        *asked->nodes = (const void *)state->nodes;
    if (asked->edges != NULL)
        *asked->edges = state->count == 0 ? NULL : &ordinary_edge;
    if (asked->count != NULL)
        *asked->count = state->count;
}

static int get_info(void *handle, int *status, uint64_t *id, const struct capture_details *asked,
                    enum null_stream null_stream)
{
    struct stream *stream;
    struct capture_state state;
    int code = status == NULL ? CUDA_INVALID_VALUE : enter(handle, null_stream, &stream);
    if (code != CUDA_OK)
        return code;
    engine_lock();
    code = capture_status(stream, status);
    if (code == CUDA_OK) {
        capture_state(stream, &state);
        if (id != NULL)
            *id = state.id;
        tell(&state, asked);
    }
    engine_unlock();
    return code;
}

#define INFO_1(name, null_stream)                                         \
    int name(void *stream, int *status, uint64_t *id)                     \
    {                                                                     \
        const struct capture_details none = {NULL, NULL, NULL, NULL};     \
        return get_info(stream, status, id, &none, null_stream);          \
    }
#define INFO_2(name, null_stream)                                                                              \
    int name(void *stream, int *status, uint64_t *id, void **graph, const void **nodes, size_t *count)         \
    {                                                                                                          \
        const struct capture_details asked = {graph, nodes, NULL, count};                                      \
        return get_info(stream, status, id, &asked, null_stream);                                              \
    }
#define INFO_3(name, null_stream)                                                                              \
    int name(void *stream, int *status, uint64_t *id, void **graph, const void **nodes, const void **edges,    \
             size_t *count)                                                                                    \
    {                                                                                                          \
        const struct capture_details asked = {graph, nodes, edges, count};                                     \
        return get_info(stream, status, id, &asked, null_stream);                                              \
    }

INFO_1(cuStreamGetCaptureInfo, NULL_IS_LEGACY)
INFO_1(cuStreamGetCaptureInfo_ptsz, NULL_IS_PER_THREAD)
INFO_2(cuStreamGetCaptureInfo_v2, NULL_IS_LEGACY)
INFO_2(cuStreamGetCaptureInfo_v2_ptsz, NULL_IS_PER_THREAD)
INFO_3(cuStreamGetCaptureInfo_v3, NULL_IS_LEGACY)
INFO_3(cuStreamGetCaptureInfo_v3_ptsz, NULL_IS_PER_THREAD)

int cuThreadExchangeStreamCaptureMode(int *mode)
{
    int code = mode == NULL ? CUDA_INVALID_VALUE : driver_ready();
    return code == CUDA_OK ? capture_exchange_mode(mode) : code;
}
