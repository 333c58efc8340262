/* The one device. cudaSetDevice makes its primary context current, as it does from 12.0 on. */
#include "api.h"
#include "forward.h"

int cudaGetDeviceCount(int *count)
{
    FORWARD(legacy, device_get_count, count);
}

int cudaGetDevice(int *device)
{
    const struct driver *driver;
    int code = device == NULL ? CUDA_INVALID_VALUE : runtime_ready(&driver);
    if (code == CUDA_OK)
        *device = 0;
    return record(code);
}

int cudaSetDevice(int device)
{
    const struct driver *driver;
    int code = runtime_ready(&driver);
    return record(code == CUDA_OK && device != 0 ? CUDA_INVALID_DEVICE : code);
}

int cudaDeviceGetAttribute(int *value, int attribute, int device)
{
    FORWARD(legacy, device_get_attribute, value, attribute, device);
}

int cudaDeviceSynchronize(void)
{
    FORWARD(legacy, context_synchronize);
}

int cudaDeviceReset(void)
{
    const struct driver *driver;
    int code = runtime_ready(&driver);
    if (code != CUDA_OK)
        return record(code);
    runtime_forget_context();
    return record(driver->legacy.context_reset(0));
}
