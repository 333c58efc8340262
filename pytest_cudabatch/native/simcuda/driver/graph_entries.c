/* Graphs: their nodes, and making and launching executable ones. A dead graph's handle is an invalid value. */
#include "../engine/graphs.h"

#include "../engine/streams.h"
#include "api.h"
#include "state.h"

/* CUgraphInstantiate_flags; AUTO_FREE_ON_LAUNCH, UPLOAD, DEVICE_LAUNCH and USE_NODE_PRIORITY change nothing here. */
enum { INSTANTIATE_FLAGS_ALL = 15 };

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

static int destroy(struct graph *(*find)(void *), void *handle)
{
    int code = driver_ready();
    if (code != CUDA_OK)
        return code;
    engine_lock();
    struct graph *graph = find(handle);
    if (graph == NULL || graph->captures) /* the second is assumed */
        code = CUDA_INVALID_VALUE;
    else
        graph_free(graph);
    engine_unlock();
    return code;
}

int cuGraphDestroy(void *graph)
{
    return destroy(graph_find, graph);
}

int cuGraphExecDestroy(void *executable)
{
    return destroy(graph_find_executable, executable);
}

int cuGraphInstantiateWithFlags(void **executable, void *handle, unsigned long long flags)
{
    int code = executable == NULL || flags > INSTANTIATE_FLAGS_ALL ? CUDA_INVALID_VALUE : context_ready();
    if (code != CUDA_OK)
        return code;
    engine_lock();
    const struct graph *graph = graph_find(handle);
    code = graph == NULL ? CUDA_INVALID_VALUE : graph_instantiate(graph, executable);
    engine_unlock();
    return code;
}

/* Of CUDA 11: what is said of a node at fault never comes to pass. */
int cuGraphInstantiate_v2(void **executable, void *graph, void **node, char *text, size_t size)
{
    if (node != NULL)
        *node = NULL;
    if (text != NULL && size > 0)
        *text = '\0';
    return cuGraphInstantiateWithFlags(executable, graph, 0);
}

static int launch(void *executable, void *handle, enum null_stream null_stream)
{
    int code = stream_context_ready(handle);
    if (code != CUDA_OK)
        return code;
    struct stream *stream = stream_of(handle, null_stream);
    if (stream == NULL)
        return CUDA_OUT_OF_MEMORY;
    engine_lock();
    const struct graph *graph = graph_find_executable(executable);
    code = graph == NULL ? CUDA_INVALID_VALUE : graph_launch(graph, stream);
    engine_unlock();
    return code;
}

int cuGraphLaunch(void *executable, void *stream)
{
    return launch(executable, stream, NULL_IS_LEGACY);
}

int cuGraphLaunch_ptsz(void *executable, void *stream)
{
    return launch(executable, stream, NULL_IS_PER_THREAD);
}
