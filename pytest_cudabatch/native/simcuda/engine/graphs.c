/* Graphs as lists of work; see graphs.h. */
#include "graphs.h"

#include <stdlib.h>

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

void graph_free_all(void)
{
    struct object *object;
    while ((object = handle_any(OBJECT_GRAPH)) != NULL)
        graph_free((struct graph *)object);
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
