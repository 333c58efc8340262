/* Host memory of the program that is made known to CUDA: the driver's, under the runtime's names. */
#include "api.h"
#include "forward.h"

int cudaHostRegister(void *address, size_t size, unsigned flags)
{
    FORWARD(legacy, host_register, address, size, flags);
}

int cudaHostUnregister(void *address)
{
    FORWARD(legacy, host_unregister, address);
}

int cudaHostGetDevicePointer(void **device_pointer, void *address, unsigned flags)
{
    FORWARD(legacy, host_get_device_pointer, (cuda_address *)device_pointer, address, flags);
}

int cudaHostGetFlags(unsigned *flags, void *address)
{
    FORWARD(legacy, host_get_flags, flags, address);
}
