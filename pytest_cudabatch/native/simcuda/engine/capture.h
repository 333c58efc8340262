/*
 * Stream capture: from its begin to its end a stream's work becomes nodes of a graph and does not run.
 * Returned ints are cuda_codes. Everything needs the engine's lock, except capture_exchange_mode.
 *
 * Copies, fills and host functions are captured. A batch is not: the driver answers
 * CUDA_CAPTURE_UNSUPPORTED and the capture goes on (measured, 580.159.04; see capture_start). What waits for the device or
 * allocates invalidates the capture, as cuda.h says of "potentially unsafe" calls. Events do not carry a
 * capture from stream to stream yet: CUDA_NOT_SUPPORTED, where a real driver forks the capture.
 */
#ifndef CUDABATCH_CAPTURE_H
#define CUDABATCH_CAPTURE_H

#include "graphs.h"

/*
 * From 13.5 on there is a graph node for batches, and nothing public says whether a captured stream takes them
 * then: CUDABATCH_SIM_CAPTURED_BATCHES=1 says that it does. Called once, by cuInit, with the driver's version.
 */
void capture_start(int driver_version);
bool capture_takes_batches(void);

int capture_begin(struct stream *stream, int mode);

/* Gives the graph's handle, NULL when the capture was invalidated: that is an error. */
int capture_end(struct stream *stream, void **graph);

/* Ends a capture with its stream, or all of a device with their context. */
void capture_abandon(struct stream *stream);
void capture_abandon_all(int device);

/* What cuStreamGetCaptureInfo can tell of a capture; all 0 where there is none. */
struct capture_state {
    uint64_t id; /* no other capture of the process has it */
    void *graph; /* its handle; only to be looked at before the capture ends */
    void *const *nodes; /* what the next node will depend on; valid until the next call about the stream */
    size_t count;
};

void capture_state(const struct stream *stream, struct capture_state *state);

/* CAPTURE_NONE, ACTIVE or INVALIDATED; CUDA_CAPTURE_IMPLICIT for the legacy stream beside a blocking capture. */
int capture_status(const struct stream *stream, int *status);

/* Swaps the calling thread's mode: what it may do while streams are captured. */
int capture_exchange_mode(int *mode);

/* May the calling thread allocate, free, or wait for the device now? If not, the captures are invalidated. */
int capture_permits_unsafe(void);

/* May somebody wait for the stream now? If not, its capture is invalidated. */
int capture_permits_wait(struct stream *stream);

/* A captured stream cannot wait for what was not captured with it; assumed: to try invalidates the capture. */
int capture_isolates(struct stream *stream);

/* Captures the work, or queues it where nothing is captured. Takes ownership. */
int capture_or_submit(struct stream *stream, struct work *work);

#endif
