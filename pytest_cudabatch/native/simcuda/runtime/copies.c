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
