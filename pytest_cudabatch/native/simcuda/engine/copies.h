/*
 * Copies: what a call may ask for, and the work that it becomes. Takes the engine's lock itself.
 */
#ifndef CUDABATCH_COPIES_H
#define CUDABATCH_COPIES_H

#include "memory.h"
#include "streams.h"

/* What the copy's name promises about its two addresses. */
enum direction { COPY_ANY, COPY_HOST_TO_DEVICE, COPY_DEVICE_TO_HOST, COPY_DEVICE_TO_DEVICE };

enum completion { COMPLETION_LATER, COMPLETION_BEFORE_RETURN };

/*
 * Enqueues one copy of `size` bytes and returns a cuda_code: CUDA_INVALID_VALUE for a range that runs out
 * of its allocation or does not fit the direction. Unmapped host memory is SIGSEGV, as on a real driver.
 * With pageable memory on either side it returns when the copy is done, whatever `completion` says
 * (cuda_runtime_api.h, API synchronization behavior); the adversarial schedule waits for no more than these
 * words promise. A capturing stream takes the copy into its graph.
 */
int copy_one(struct stream *stream, cuda_address destination, cuda_address source, size_t size,
             enum direction direction, enum completion completion);

/* Copies of `count` rows of `size` bytes that begin a pitch apart. */
struct rows {
    cuda_address destination, source;
    size_t destination_pitch, source_pitch;
    size_t size, count;
};

/* The same for rows, as one copy. */
int copy_rows(struct stream *stream, const struct rows *rows, enum direction direction, enum completion completion);

/* A fill of `count` elements of `width` bytes: 1, 2 or 4. */
struct fill {
    cuda_address destination;
    uint32_t value;
    unsigned width;
    size_t count;
};

/* CUDA_INVALID_VALUE for an address that is not aligned to the elements, or a range that is not in one allocation. */
int copy_fill(struct stream *stream, const struct fill *fill, enum completion completion);

/* One batch as the API describes it; all arrays belong to the caller. */
struct batch {
    const cuda_address *destinations;
    const cuda_address *sources;
    const size_t *sizes;
    size_t count;
    const struct copy_attributes *attributes;
    const size_t *first_copies; /* attrsIdxs: attributes[k] applies from copy first_copies[k] on */
    size_t attribute_count;
};

/*
 * Enqueues a batch and returns a cuda_code, by the answers that real drivers gave. `failed` becomes the
 * index of the copy at fault, SIZE_MAX where no single copy is. The copies before one at fault are made.
 */
int copy_batch(struct stream *stream, const struct batch *batch, size_t *failed);

/*
 * Enqueues copies of boxes, each as the copies of its rows; `failed` becomes the index of the operation at
 * fault, and then nothing is copied (assumed; a batch of one operation was all that was measured).
 */
int copy_batch_3d(struct stream *stream, const struct copy_3d *operations, size_t count, size_t *failed);

/* Are order, flags and location hints such as there are? */
bool copy_attributes_are_valid(const struct copy_attributes *attributes);

/* Is the stream being captured, so that a batch, flat or 3D, is CUDA_CAPTURE_UNSUPPORTED? */
bool copy_is_barred_by_capture(const struct stream *stream);

/* Faults here and now if a page of the host range cannot be read, or written. */
void copy_probe_source(cuda_address source, size_t size);
void copy_probe_destination(cuda_address destination, size_t size);

#endif
