/*
 * Graphs: work that was captured and not run. Needs the engine's lock.
 *
 * A node is a piece of work as a stream would queue it, and nodes stand in the order of capture, in which
 * each depends on the one before. An executable graph has nodes of its own, so the graph may change or go;
 * to launch it is to queue copies of them on a stream, each time.
 */
#ifndef CUDABATCH_GRAPHS_H
#define CUDABATCH_GRAPHS_H

#include "schedule.h"

struct graph {
    struct object object; /* first, see handles.h */
    bool captures;        /* a capture adds to it, which owns it until it ends */
    struct work *first, *last;
};

struct graph *graph_create(void); /* NULL without memory */
void graph_free(struct graph *graph);
void graph_free_all(int device); /* those that have a handle, executable ones too */

/* Takes ownership of `work`. */
void graph_add(struct graph *graph, struct work *work);

/* Returns the graph of a handle, or NULL for anything else. */
struct graph *graph_find(void *handle);

/*
 * Writes the first `limit` nodes to `nodes`, NULL behind the last, and returns how many it found. Without
 * `nodes` it only counts.
 */
size_t graph_nodes(const struct graph *graph, void **nodes, size_t limit);

/* Makes an executable graph, which has the same nodes; gives its handle. */
int graph_instantiate(const struct graph *graph, void **executable);

/* Returns the executable graph of a handle, or NULL for anything else. */
struct graph *graph_find_executable(void *handle);

/* Queues what the executable graph does, or captures it where the stream is captured. */
int graph_launch(const struct graph *executable, struct stream *stream);

#endif
