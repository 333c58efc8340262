/*
 * What every driver entry asks first: may this process, and this thread, use the driver now?
 */
#ifndef CUDABATCH_DRIVER_STATE_H
#define CUDABATCH_DRIVER_STATE_H

#include "../abi.h"

/* The version this driver reports; 0 where the environment asks for one that it cannot be. */
int driver_version(void);

/*
 * CUDA_OK after cuInit; CUDA_NOT_INITIALIZED before it, and in a child forked after it, as on a real driver; and
 * the code of a context that was lost.
 */
int driver_ready(void);

/* driver_ready, and the calling thread has a live current context. */
int context_ready(void);

/* The same for what is done in one stream: a stream of the program brings its own context, a default one does not. */
int stream_context_ready(const void *handle);

/* The handle of the device's primary context, alive or not. */
void *context_of_device(int device);

/* CUDA_OK for the number of a device; driver_ready comes first. */
int device_ready(int device);

/* context_ready, and no stream capture forbids this thread to allocate, free or wait for the device. */
int unsafe_ready(void);

#endif
