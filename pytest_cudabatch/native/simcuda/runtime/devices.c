/* Devices. cudaSetDevice makes the primary context current, as it does from 12.0 on. */
#include "api.h"
#include "forward.h"

int cudaGetDeviceCount(int *count)
{
    FORWARD(legacy, device_get_count, count);
}

int cudaGetDevice(int *device)
{
    FORWARD(legacy, context_get_device, device);
}

int cudaSetDevice(int device)
{
    WITH_DRIVER(runtime_use_device(driver, device));
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
    int device;
    int code = runtime_ready(&driver);
    if (code == CUDA_OK)
        code = driver->legacy.context_get_device(&device);
    if (code != CUDA_OK)
        return record(code);
    runtime_forget_context(device);
    return record(driver->legacy.context_reset(device));
}
