/* Single copies and fills: the kind selects the driver's function. */
#include "api.h"
#include "forward.h"

enum kind { HOST_TO_HOST, HOST_TO_DEVICE, DEVICE_TO_HOST, DEVICE_TO_DEVICE, KIND_DEFAULT };

static int copy(const struct driver_functions *functions, void *destination, const void *source, size_t size, int kind)
{
    cuda_address to = (cuda_address)destination, from = (cuda_address)source;
    switch ((enum kind)kind) {
    case HOST_TO_DEVICE:
        return functions->copy_htod(to, source, size);
    case DEVICE_TO_HOST:
        return functions->copy_dtoh(destination, from, size);
    case DEVICE_TO_DEVICE:
        return functions->copy_dtod(to, from, size);
    case HOST_TO_HOST:
    case KIND_DEFAULT:
        return functions->copy(to, from, size);
    }
    return CUDA_INVALID_MEMCPY_DIRECTION;
}

static int copy_async(const struct driver_functions *functions, void *destination, const void *source, size_t size,
                      int kind, void *stream)
{
    cuda_address to = (cuda_address)destination, from = (cuda_address)source;
    switch ((enum kind)kind) {
    case HOST_TO_DEVICE:
        return functions->copy_htod_async(to, source, size, stream);
    case DEVICE_TO_HOST:
        return functions->copy_dtoh_async(destination, from, size, stream);
    case DEVICE_TO_DEVICE:
        return functions->copy_dtod_async(to, from, size, stream);
    case HOST_TO_HOST:
    case KIND_DEFAULT:
        return functions->copy_async(to, from, size, stream);
    }
    return CUDA_INVALID_MEMCPY_DIRECTION;
}

int cudaMemcpy(void *destination, const void *source, size_t size, int kind)
{
    WITH_DRIVER(copy(&driver->legacy, destination, source, size, kind));
}

int cudaMemcpy_ptds(void *destination, const void *source, size_t size, int kind)
{
    WITH_DRIVER(copy(&driver->per_thread, destination, source, size, kind));
}

int cudaMemcpyAsync(void *destination, const void *source, size_t size, int kind, void *stream)
{
    WITH_DRIVER(copy_async(&driver->legacy, destination, source, size, kind, stream));
}

int cudaMemcpyAsync_ptsz(void *destination, const void *source, size_t size, int kind, void *stream)
{
    WITH_DRIVER(copy_async(&driver->per_thread, destination, source, size, kind, stream));
}

/* The driver's types of the two ends of a copy of that kind. */
static int types_of(int kind, int *to, int *from)
{
    static const struct {
        int to, from;
    } types[] = {
        [HOST_TO_HOST] = {MEMORY_TYPE_HOST, MEMORY_TYPE_HOST},
        [HOST_TO_DEVICE] = {MEMORY_TYPE_DEVICE, MEMORY_TYPE_HOST},
        [DEVICE_TO_HOST] = {MEMORY_TYPE_HOST, MEMORY_TYPE_DEVICE},
        [DEVICE_TO_DEVICE] = {MEMORY_TYPE_DEVICE, MEMORY_TYPE_DEVICE},
        [KIND_DEFAULT] = {MEMORY_TYPE_UNIFIED, MEMORY_TYPE_UNIFIED},
    };
    if (kind < HOST_TO_HOST || kind > KIND_DEFAULT)
        return CUDA_INVALID_MEMCPY_DIRECTION;
    *to = types[kind].to;
    *from = types[kind].from;
    return CUDA_OK;
}

/* Describes rows to the driver. */
static int describe(struct copy_2d *copy, void *destination, size_t destination_pitch, const void *source,
                    size_t source_pitch, size_t width, size_t height, int kind)
{
    int to, from;
    int code = types_of(kind, &to, &from);
    if (code == CUDA_OK && (destination_pitch < width || source_pitch < width))
        code = CUDA_INVALID_PITCH;
    if (code != CUDA_OK)
        return code;
    *copy = (struct copy_2d){
        .source = {.type = from, .host = source, .device = (cuda_address)source, .pitch = source_pitch},
        .destination = {.type = to, .host = destination, .device = (cuda_address)destination, .pitch = destination_pitch},
        .width_bytes = width,
        .height = height,
    };
    return CUDA_OK;
}

#define ROWS destination, destination_pitch, source, source_pitch, width, height, kind

/* The body of a copy of rows: `call` gets the description. */
#define WITH_ROWS(call)                            \
    do {                                           \
        struct copy_2d rows;                       \
        const struct driver *driver;               \
        int code = runtime_ready(&driver);         \
        if (code == CUDA_OK)                       \
            code = describe(&rows, ROWS);          \
        return record(code == CUDA_OK ? (call) : code); \
    } while (0)

int cudaMemcpy2D(void *destination, size_t destination_pitch, const void *source, size_t source_pitch, size_t width,
                 size_t height, int kind)
{
    WITH_ROWS(driver->legacy.copy_2d(&rows));
}

int cudaMemcpy2D_ptds(void *destination, size_t destination_pitch, const void *source, size_t source_pitch,
                      size_t width, size_t height, int kind)
{
    WITH_ROWS(driver->per_thread.copy_2d(&rows));
}

int cudaMemcpy2DAsync(void *destination, size_t destination_pitch, const void *source, size_t source_pitch,
                      size_t width, size_t height, int kind, void *stream)
{
    WITH_ROWS(driver->legacy.copy_2d_async(&rows, stream));
}

int cudaMemcpy2DAsync_ptsz(void *destination, size_t destination_pitch, const void *source, size_t source_pitch,
                           size_t width, size_t height, int kind, void *stream)
{
    WITH_ROWS(driver->per_thread.copy_2d_async(&rows, stream));
}

static int set(const struct driver_functions *functions, void *destination, int value, size_t size)
{
    return functions->set((cuda_address)destination, (unsigned char)value, size);
}

static int set_async(const struct driver_functions *functions, void *destination, int value, size_t size, void *stream)
{
    return functions->set_async((cuda_address)destination, (unsigned char)value, size, stream);
}

int cudaMemset(void *destination, int value, size_t size)
{
    WITH_DRIVER(set(&driver->legacy, destination, value, size));
}

int cudaMemset_ptds(void *destination, int value, size_t size)
{
    WITH_DRIVER(set(&driver->per_thread, destination, value, size));
}

int cudaMemsetAsync(void *destination, int value, size_t size, void *stream)
{
    WITH_DRIVER(set_async(&driver->legacy, destination, value, size, stream));
}

int cudaMemsetAsync_ptsz(void *destination, int value, size_t size, void *stream)
{
    WITH_DRIVER(set_async(&driver->per_thread, destination, value, size, stream));
}
