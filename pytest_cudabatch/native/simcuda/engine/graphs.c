/* Graphs as lists of work; see graphs.h. */
#include "graphs.h"

#include <stdlib.h>

#include "capture.h"

struct graph *graph_create(void)
{
    return calloc(1, sizeof(struct graph));
}

void graph_free(struct graph *graph)
{
    while (graph->first != NULL) {
        struct work *work = graph->first;
        graph->first = work->next;
        work_free(work);
    }
    if (graph->object.handle != NULL)
        handle_retire(&graph->object);
    free(graph);
}

static void free_all_of(enum object_kind kind, int device)
{
    struct object *object;
    while ((object = handle_any(kind, device)) != NULL)
        graph_free((struct graph *)object);
}

void graph_free_all(int device)
{
    free_all_of(OBJECT_GRAPH, device);
    free_all_of(OBJECT_EXECUTABLE, device);
}

void graph_add(struct graph *graph, struct work *work)
{
    work->next = NULL;
    if (graph->last == NULL)
        graph->first = work;
    else
        graph->last->next = work;
    graph->last = work;
}

struct graph *graph_find(void *handle)
{
    return (struct graph *)handle_find(handle, OBJECT_GRAPH);
}

size_t graph_nodes(const struct graph *graph, void **nodes, size_t limit)
{
    size_t count = 0;
    struct work *work = graph->first;
    for (; work != NULL && (nodes == NULL || count < limit); work = work->next) {
        if (nodes != NULL)
            nodes[count] = work;
        count++;
    }
    for (size_t index = count; nodes != NULL && index < limit; index++)
        nodes[index] = NULL;
    return count;
}

/* A graph without a handle that has the same nodes, or NULL without memory. */
static struct graph *clone(const struct graph *graph)
{
    struct graph *cloned = graph_create();
    for (const struct work *work = graph->first; work != NULL && cloned != NULL; work = work->next) {
        struct work *node = work_clone(work);
        if (node != NULL) {
            graph_add(cloned, node);
        } else {
            graph_free(cloned);
            cloned = NULL;
        }
    }
    return cloned;
}

int graph_instantiate(const struct graph *graph, void **executable)
{
    struct graph *cloned = clone(graph);
    if (cloned == NULL)
        return CUDA_OUT_OF_MEMORY;
    if (!handle_create(&cloned->object, OBJECT_EXECUTABLE)) {
        graph_free(cloned);
        return CUDA_OUT_OF_MEMORY;
    }
    *executable = cloned->object.handle;
    return CUDA_OK;
}

struct graph *graph_find_executable(void *handle)
{
    return (struct graph *)handle_find(handle, OBJECT_EXECUTABLE);
}

/* All of them are made before the first is queued: without the memory for one, none runs. */
int graph_launch(const struct graph *executable, struct stream *stream)
{
    struct graph *launched = clone(executable);
    int code = launched == NULL ? CUDA_OUT_OF_MEMORY : CUDA_OK;
    while (code == CUDA_OK && launched->first != NULL) {
        struct work *work = launched->first;
        launched->first = work->next;
        code = capture_or_submit(stream, work);
    }
    if (launched != NULL)
        graph_free(launched);
    return code;
}
