/*
 * A program that drives the simulated driver hard, linked with its sources and run under a sanitizer.
 *
 * Threads of their own each make streams, memory, registrations, batches flat and 3D, events and captures,
 * good and bad ones, at once; then the context is reset under what is left. Exit status 0 says that every
 * answer was one that the contract allows; the sanitizer says the rest.
 */
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "driver/api.h"
#include "engine/streams.h"

enum { THREADS = 4, ROUNDS = 60, COPIES = 200, SPAN = 1 << 16, PAGE = 4096 };

#define EXPECT(expected, call)                                                                \
    do {                                                                                      \
        int answer = (call);                                                                  \
        if (answer != (expected)) {                                                           \
            fprintf(stderr, "%s:%d: %s answered %d\n", __FILE__, __LINE__, #call, answer);   \
            exit(1);                                                                          \
        }                                                                                     \
    } while (0)

struct room {
    void *stream, *event, *context;
    cuda_address device;
    char *pinned, *pages;
    unsigned seed;
};

static void count_call(void *counter)
{
    __atomic_fetch_add((unsigned *)counter, 1, __ATOMIC_RELAXED);
}

/* Reads the engine's own state: nothing else says when a thread has begun to wait. */
static bool engine_has_waiter(void *stream)
{
    const struct stream *found = stream_of(stream, NULL_IS_LEGACY);
    engine_lock();
    bool waits = found->waiters != 0;
    engine_unlock();
    return waits;
}

static void enter(struct room *room)
{
    EXPECT(CUDA_OK, cuDevicePrimaryCtxRetain(&room->context, 0));
    EXPECT(CUDA_OK, cuCtxSetCurrent(room->context));
    EXPECT(CUDA_OK, cuStreamCreate(&room->stream, room->seed % 2));
    EXPECT(CUDA_OK, cuEventCreate(&room->event, 0));
    EXPECT(CUDA_OK, cuMemAlloc_v2(&room->device, SPAN));
    EXPECT(CUDA_OK, cuMemHostAlloc((void **)&room->pinned, SPAN, 0));
    room->pages = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room->pages == MAP_FAILED)
        exit(1);
    memset(room->pages, 1, 4 * PAGE);
}

static void leave(struct room *room)
{
    EXPECT(CUDA_OK, cuStreamDestroy_v2(room->stream)); /* with work in it */
    EXPECT(CUDA_OK, cuEventDestroy_v2(room->event));
    EXPECT(CUDA_OK, cuMemFree_v2(room->device));
    EXPECT(CUDA_OK, cuMemFreeHost(room->pinned));
    munmap(room->pages, 4 * PAGE);
}

static void copy_flat(struct room *room, int order, size_t bad_size)
{
    cuda_address to[COPIES], from[COPIES];
    size_t sizes[COPIES], first[] = {0, COPIES / 2}, failed = 7;
    const struct copy_attributes attributes[] = {{.source_access_order = order}, {.source_access_order = ORDER_STREAM}};
    for (size_t index = 0; index < COPIES; index++) {
        sizes[index] = 1 + (size_t)rand_r(&room->seed) % 300;
        to[index] = room->device + index * 320;
        from[index] = (cuda_address)room->pinned + (size_t)rand_r(&room->seed) % (SPAN - 300);
    }
    EXPECT(CUDA_OK, cuMemcpyBatchAsync(to, from, sizes, COPIES, attributes, first, 2, &failed, room->stream));
    sizes[COPIES - 1] = bad_size;
    EXPECT(CUDA_INVALID_VALUE,
           cuMemcpyBatchAsync_v2(to, from, sizes, COPIES, attributes, first, 2, room->stream));
}

static void copy_boxes(struct room *room)
{
    struct copy_3d boxes[3];
    size_t failed;
    for (size_t index = 0; index < 3; index++)
        boxes[index] = (struct copy_3d){
            .source = {OPERAND_POINTER, {{(cuda_address)room->pinned + index, 64, 8, {0, 0}}}},
            .destination = {OPERAND_POINTER, {{room->device + index * 8192, 50, 0, {0, 0}}}},
            .width = 50, .height = 7, .depth = 5, .source_access_order = 1 + (int)index};
    EXPECT(CUDA_OK, cuMemcpy3DBatchAsync(3, boxes, &failed, 0, room->stream));
    boxes[1].height = SIZE_MAX / 2;
    EXPECT(CUDA_INVALID_VALUE, cuMemcpy3DBatchAsync_v2(3, boxes, 0, room->stream));
    boxes[1] = boxes[0];
    boxes[1].depth = SPAN;
    EXPECT(CUDA_INVALID_VALUE, cuMemcpy3DBatchAsync(3, boxes, &failed, 0, room->stream));
}

static void copy_registered(struct room *room)
{
    cuda_address across = (cuda_address)room->pages + 2 * PAGE - 32;
    EXPECT(CUDA_OK, cuMemHostRegister_v2(room->pages, 2 * PAGE, 0));
    EXPECT(CUDA_OK, cuMemHostRegister_v2(room->pages + 2 * PAGE, 2 * PAGE, 0));
    EXPECT(CUDA_INVALID_VALUE, cuMemcpyAsync(room->device, across, 64, room->stream));
    EXPECT(CUDA_OK, cuMemcpyAsync(room->device, across - 64, 64, room->stream));
    EXPECT(CUDA_OK, cuMemHostUnregister(room->pages));
    EXPECT(CUDA_OK, cuMemHostUnregister(room->pages + 2 * PAGE));
}

/* A relaxed capture, which lets the other threads alone. */
static void capture(struct room *room, unsigned *calls)
{
    void *graph, *stream, *nodes[4];
    size_t count = 4;
    EXPECT(CUDA_OK, cuStreamCreate(&stream, STREAM_FLAG_NON_BLOCKING));
    EXPECT(CUDA_OK, cuStreamBeginCapture_v2(stream, CAPTURE_RELAXED));
    EXPECT(CUDA_OK, cuMemcpyAsync(room->device, (cuda_address)room->pages, 64, stream));
    EXPECT(CUDA_OK, cuLaunchHostFunc(stream, count_call, calls));
    EXPECT(CUDA_NOT_SUPPORTED, cuEventRecord(room->event, stream));
    EXPECT(CUDA_OK, cuStreamEndCapture(stream, &graph));
    EXPECT(CUDA_OK, cuGraphGetNodes(graph, nodes, &count));
    EXPECT(2, (int)count);
    EXPECT(CUDA_OK, cuGraphDestroy(graph));
    EXPECT(CUDA_OK, cuStreamBeginCapture_v2(stream, CAPTURE_RELAXED));
    EXPECT(CUDA_OK, cuMemsetD8Async(room->device, 0, 64, stream));
    EXPECT(CUDA_CAPTURE_UNSUPPORTED, cuStreamQuery(stream));
    EXPECT(CUDA_CAPTURE_INVALIDATED, cuMemsetD8Async(room->device, 0, 64, stream));
    EXPECT(CUDA_OK, cuStreamDestroy_v2(stream)); /* its capture with it */
}

static void *synchronise(void *stream)
{
    void *context;
    EXPECT(CUDA_OK, cuStreamGetCtx(stream, &context));
    EXPECT(CUDA_OK, cuCtxSetCurrent(context));
    EXPECT(CUDA_OK, cuStreamSynchronize(stream));
    return NULL;
}

static void wait_for_open_gate(void *gate)
{
    while (!__atomic_load_n((bool *)gate, __ATOMIC_ACQUIRE))
        sched_yield();
}

/* A thread waits for a stream that another one destroys. */
static void destroy_under_waiter(struct room *room)
{
    void *stream;
    pthread_t waiter;
    bool gate = false;
    EXPECT(CUDA_OK, cuStreamCreate(&stream, STREAM_FLAG_NON_BLOCKING));
    EXPECT(CUDA_OK, cuLaunchHostFunc(stream, wait_for_open_gate, &gate));
    EXPECT(CUDA_OK, cuMemsetD8Async(room->device, 1, 64, stream));
    EXPECT(0, pthread_create(&waiter, NULL, synchronise, stream));
    while (!engine_has_waiter(stream))
        sched_yield();
    EXPECT(CUDA_OK, cuStreamDestroy_v2(stream));
    __atomic_store_n(&gate, true, __ATOMIC_RELEASE);
    pthread_join(waiter, NULL);
}

static void *drive(void *argument)
{
    struct room room = {.seed = (unsigned)(size_t)argument};
    static unsigned calls; /* of all threads; atomic */
    for (int round = 0; round < ROUNDS; round++) {
        enter(&room);
        copy_flat(&room, ORDER_STREAM + round % 3, round % 2 == 0 ? 0 : SPAN);
        EXPECT(CUDA_OK, cuEventRecord(room.event, room.stream));
        EXPECT(CUDA_OK, cuStreamWaitEvent(STREAM_PER_THREAD, room.event, 0));
        EXPECT(CUDA_OK, cuMemcpyAsync(room.device, (cuda_address)room.pinned, 64, STREAM_PER_THREAD));
        copy_boxes(&room);
        copy_registered(&room);
        capture(&room, &calls);
        destroy_under_waiter(&room);
        EXPECT(CUDA_OK, cuLaunchHostFunc(room.stream, count_call, &calls));
        if (round % 4 == 0)
            EXPECT(CUDA_OK, cuStreamSynchronize(room.stream));
        leave(&room);
    }
    return NULL;
}

/* A reset takes along what is still there: streams with work, a capture, a graph, memory, a registration. */
static void reset(void)
{
    struct room room = {.seed = 1};
    void *graph;
    enter(&room);
    copy_flat(&room, ORDER_DURING_API_CALL, 0);
    EXPECT(CUDA_OK, cuMemHostRegister_v2(room.pages, PAGE, 0));
    EXPECT(CUDA_OK, cuStreamBeginCapture_v2(STREAM_PER_THREAD, CAPTURE_RELAXED));
    EXPECT(CUDA_OK, cuMemsetD8Async(room.device, 0, 64, STREAM_PER_THREAD));
    EXPECT(CUDA_OK, cuStreamEndCapture(STREAM_PER_THREAD, &graph));
    EXPECT(CUDA_OK, cuStreamBeginCapture_v2(room.stream, CAPTURE_GLOBAL));
    EXPECT(CUDA_OK, cuMemsetD8Async(room.device, 0, 64, room.stream));
    EXPECT(CUDA_OK, cuDevicePrimaryCtxReset_v2(0));
    EXPECT(CUDA_INVALID_VALUE, cuGraphDestroy(graph));
    munmap(room.pages, 4 * PAGE);
}

int main(void)
{
    pthread_t threads[THREADS];
    EXPECT(CUDA_OK, cuInit(0));
    for (size_t index = 0; index < THREADS; index++)
        EXPECT(0, pthread_create(&threads[index], NULL, drive, (void *)(index + 1)));
    for (size_t index = 0; index < THREADS; index++)
        pthread_join(threads[index], NULL);
    reset();
    return 0;
}
