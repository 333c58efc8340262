/* Memory of the program, and what a pointer is. */
#include "api.h"
#include "forward.h"

int cudaMalloc(void **address, size_t size)
{
    const struct driver *driver;
    cuda_address allocated;
    int code = address == NULL ? CUDA_INVALID_VALUE : runtime_ready(&driver);
    if (code != CUDA_OK)
        return record(code);
    if (size == 0) {
        *address = NULL; /* success, unlike cuMemAlloc */
        return CUDA_OK;
    }
    code = driver->legacy.allocate(&allocated, size);
    if (code == CUDA_OK)
        *address = (void *)allocated;
    return record(code);
}

int cudaFree(void *address)
{
    FORWARD(legacy, free, (cuda_address)address);
}

int cudaHostAlloc(void **address, size_t size, unsigned flags)
{
    const struct driver *driver;
    int code = address == NULL ? CUDA_INVALID_VALUE : runtime_ready(&driver);
    if (code != CUDA_OK)
        return record(code);
    if (size == 0) {
        *address = NULL;
        return CUDA_OK;
    }
    return record(driver->legacy.host_allocate(address, size, flags));
}

int cudaMallocHost(void **address, size_t size)
{
    return cudaHostAlloc(address, size, 0);
}

int cudaFreeHost(void *address)
{
    FORWARD(legacy, host_free, address);
}

int cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
    FORWARD(legacy, get_info, free_bytes, total_bytes);
}

int cudaPointerGetAttributes(struct pointer_attributes *attributes, const void *address)
{
    static const int asked[] = {POINTER_MEMORY_TYPE, POINTER_DEVICE_ORDINAL, POINTER_DEVICE_POINTER,
                                POINTER_HOST_POINTER};
    const struct driver *driver;
    int code = attributes == NULL ? CUDA_INVALID_VALUE : runtime_ready(&driver);
    if (code != CUDA_OK)
        return record(code);
    *attributes = (struct pointer_attributes){0};
    void *answers[] = {&attributes->type, &attributes->device, &attributes->device_pointer,
                       &attributes->host_pointer};
    code = driver->legacy.pointer_get_attributes(sizeof asked / sizeof *asked, asked, answers, (cuda_address)address);
    if (code == CUDA_OK && attributes->type == MEMORY_TYPE_UNREGISTERED)
        attributes->host_pointer = (void *)address; /* unchecked, as the header says */
    return record(code);
}
