/* Captures under way, and what they forbid; see capture.h. */
#include "capture.h"

#include <stdlib.h>
#include <string.h>

struct capture {
    struct capture *next;
    struct stream *stream;
    int mode;
    uint64_t thread; /* that began it */
    bool invalidated;
    uint64_t id;
    struct graph *graph; /* owned */
    void *next_depends_on; /* the newest node, when it was last asked for; the program reads it */
};

/* Guarded by the engine's lock. */
static struct capture *captures;
static uint64_t last_thread;
static uint64_t last_id;

/* Of the calling thread: its number, given when it begins its first capture, and its mode. */
static _Thread_local uint64_t this_thread;
static _Thread_local int this_mode = CAPTURE_GLOBAL;

/* Written once, by capture_start. */
static bool takes_batches;

void capture_start(int driver_version)
{
    const int first_with_batch_nodes = 13050;
    const char *text = getenv("CUDABATCH_SIM_CAPTURED_BATCHES");
    takes_batches = driver_version >= first_with_batch_nodes && text != NULL && strcmp(text, "1") == 0;
}

bool capture_takes_batches(void)
{
    return takes_batches;
}

static bool mode_is_valid(int mode)
{
    return mode >= CAPTURE_GLOBAL && mode <= CAPTURE_RELAXED;
}

int capture_begin(struct stream *stream, int mode)
{
    if (!mode_is_valid(mode))
        return CUDA_INVALID_VALUE;
    if (stream->kind == STREAM_IS_LEGACY)
        return CUDA_CAPTURE_UNSUPPORTED; /* assumed, as the next */
    if (stream->capture != NULL)
        return CUDA_ILLEGAL_STATE;
    struct capture *capture = calloc(1, sizeof *capture);
    struct graph *graph = graph_create();
    if (capture == NULL || graph == NULL || !handle_create(&graph->object, OBJECT_GRAPH)) {
        free(capture);
        free(graph);
        return CUDA_OUT_OF_MEMORY;
    }
    if (this_thread == 0)
        this_thread = ++last_thread;
    *capture = (struct capture){
        .next = captures, .stream = stream, .mode = mode, .thread = this_thread, .id = ++last_id, .graph = graph};
    captures = capture;
    graph->captures = true;
    stream->capture = capture;
    return CUDA_OK;
}

/* Takes the capture off its stream and frees it; its graph is the caller's. */
static struct graph *detach(struct capture *capture)
{
    struct graph *graph = capture->graph;
    struct capture **link = &captures;
    while (*link != capture)
        link = &(*link)->next;
    *link = capture->next;
    capture->stream->capture = NULL;
    graph->captures = false;
    free(capture);
    return graph;
}

int capture_end(struct stream *stream, void **graph)
{
    struct capture *capture = stream->capture;
    if (capture == NULL)
        return CUDA_ILLEGAL_STATE; /* assumed */
    if (capture->mode != CAPTURE_RELAXED && capture->thread != this_thread)
        return CUDA_CAPTURE_WRONG_THREAD;
    int code = capture->invalidated ? CUDA_CAPTURE_INVALIDATED : CUDA_OK;
    struct graph *captured = detach(capture);
    *graph = code == CUDA_OK ? captured->object.handle : NULL;
    if (code != CUDA_OK)
        graph_free(captured);
    return code;
}

void capture_abandon(struct stream *stream)
{
    if (stream->capture != NULL)
        graph_free(detach(stream->capture));
}

void capture_abandon_all(int device)
{
    struct capture *next;
    for (struct capture *capture = captures; capture != NULL; capture = next) {
        next = capture->next;
        if (capture->stream->object.device == device)
            graph_free(detach(capture));
    }
}

void capture_state(const struct stream *stream, struct capture_state *state)
{
    struct capture *capture = stream->capture;
    *state = (struct capture_state){.id = 0};
    if (capture == NULL)
        return;
    capture->next_depends_on = capture->graph->last;
    *state = (struct capture_state){.id = capture->id,
                                    .graph = capture->graph->object.handle,
                                    .nodes = &capture->next_depends_on,
                                    .count = capture->graph->last == NULL ? 0 : 1};
}

/* Does work on the legacy stream have to wait for the capture's stream? */
static bool bars_legacy(const struct capture *capture, const struct stream *legacy)
{
    return capture->stream->kind == STREAM_IS_BLOCKING && capture->stream->object.device == legacy->object.device;
}

static bool legacy_is_barred(const struct stream *stream)
{
    if (stream->kind != STREAM_IS_LEGACY)
        return false;
    for (const struct capture *capture = captures; capture != NULL; capture = capture->next)
        if (bars_legacy(capture, stream))
            return true;
    return false;
}

int capture_status(const struct stream *stream, int *status)
{
    if (legacy_is_barred(stream))
        return CUDA_CAPTURE_IMPLICIT;
    if (stream->capture == NULL)
        *status = CAPTURE_NONE;
    else
        *status = stream->capture->invalidated ? CAPTURE_INVALIDATED : CAPTURE_ACTIVE;
    return CUDA_OK;
}

int capture_exchange_mode(int *mode)
{
    int previous = this_mode;
    if (!mode_is_valid(*mode))
        return CUDA_INVALID_VALUE;
    this_mode = *mode;
    *mode = previous;
    return CUDA_OK;
}

/* The rules of cuThreadExchangeStreamCaptureMode. */
static bool forbids_unsafe(const struct capture *capture)
{
    if (this_mode == CAPTURE_RELAXED || capture->mode == CAPTURE_RELAXED)
        return false;
    bool own = capture->thread == this_thread;
    return own || (this_mode == CAPTURE_GLOBAL && capture->mode == CAPTURE_GLOBAL);
}

int capture_permits_unsafe(void)
{
    int code = CUDA_OK;
    for (struct capture *capture = captures; capture != NULL; capture = capture->next)
        if (forbids_unsafe(capture)) {
            capture->invalidated = true;
            code = CUDA_CAPTURE_UNSUPPORTED;
        }
    return code;
}

/* Assumed: use of the legacy stream invalidates the captures that it would have to wait for. */
static int bar_legacy(const struct stream *legacy)
{
    for (struct capture *capture = captures; capture != NULL; capture = capture->next)
        if (bars_legacy(capture, legacy))
            capture->invalidated = true;
    return CUDA_CAPTURE_IMPLICIT;
}

int capture_permits_wait(struct stream *stream)
{
    if (legacy_is_barred(stream))
        return bar_legacy(stream);
    if (stream->capture == NULL)
        return CUDA_OK;
    stream->capture->invalidated = true;
    return CUDA_CAPTURE_UNSUPPORTED;
}

int capture_isolates(struct stream *stream)
{
    stream->capture->invalidated = true;
    return CUDA_CAPTURE_ISOLATION;
}

static int capture_work(struct capture *capture, struct work *work)
{
    if (capture->invalidated)
        return CUDA_CAPTURE_INVALIDATED;
    if (work->kind == WORK_RECORD || work->kind == WORK_WAIT || work->kind == WORK_FREE)
        return CUDA_NOT_SUPPORTED;
    graph_add(capture->graph, work);
    return CUDA_OK;
}

int capture_or_submit(struct stream *stream, struct work *work)
{
    int code = CUDA_OK;
    if (legacy_is_barred(stream))
        code = bar_legacy(stream);
    else if (stream->capture == NULL)
        return schedule_submit(stream, work);
    else
        code = capture_work(stream->capture, work);
    if (code != CUDA_OK)
        work_free(work);
    return code;
}
